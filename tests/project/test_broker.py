"""The embedded broker under several processes' worth of readers and writers."""

import errno
import threading
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection, Exchange, Queue
from kombu.exceptions import ChannelError

from ratchet_project.broker import Transport


def connect(folder: Path) -> Connection:
    for name in ("messages", "control"):
        (folder / name).mkdir(exist_ok=True)
    options = {
        "data_folder_in": str(folder / "messages"),
        "data_folder_out": str(folder / "messages"),
        "control_folder": str(folder / "control"),
    }
    return Connection(transport=Transport, transport_options=options)


@pytest.mark.req("INV-28")
def test_readers_never_meet_a_half_written_message_and_each_message_arrives_once(tmp_path: Path):
    received: list[int] = []
    errors: list[Exception] = []
    n_messages, n_writers = 150, 3

    def write(offset: int) -> None:
        with connect(tmp_path) as connection:
            queue = connection.SimpleQueue("jobs")
            for number in range(n_messages):
                queue.put(offset + number)

    def read(done: threading.Event) -> None:
        try:
            with connect(tmp_path) as connection:
                queue = connection.SimpleQueue("jobs")
                while not done.is_set():
                    try:
                        message = queue.get(block=False)
                    except queue.Empty:
                        continue
                    received.append(message.payload)
                    message.ack()
                    if len(received) == n_messages * n_writers:
                        done.set()
        except Exception as error:
            errors.append(error)
            done.set()

    done = threading.Event()
    threads = [threading.Thread(target=write, args=(1000 * writer,)) for writer in range(n_writers)]
    threads += [threading.Thread(target=read, args=(done,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    done.wait(30)
    done.set()
    for thread in threads:
        thread.join(10)
    assert errors == []
    assert sorted(received) == [1000 * writer + number for writer in range(n_writers) for number in range(n_messages)]


@pytest.mark.req("INV-28")
def test_bindings_made_at_the_same_time_are_all_kept(tmp_path: Path):
    exchange = Exchange("news", type="fanout")
    barrier = threading.Barrier(6)

    def bind(number: int) -> None:
        with connect(tmp_path) as connection:
            channel: Any = connection.channel()
            barrier.wait(10)
            Queue(f"reader-{number}", exchange)(channel).declare()

    threads = [threading.Thread(target=bind, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    with connect(tmp_path) as connection:
        channel: Any = connection.channel()
        assert {bound.queue for bound in channel.get_table("news")} == {f"reader-{number}" for number in range(6)}


def take(queue: Any) -> Any:
    message = queue.get(block=False)
    message.ack()
    return message.payload


def messages(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "messages").iterdir())


@pytest.mark.req("INV-28")
def test_taking_a_message_never_leaves_its_folder_so_that_only_one_worker_can_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Through the temporary folder of another file system, a move is a copy that two workers make of one message."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "no such folder"))
    with connect(tmp_path) as connection:
        queue = connection.SimpleQueue("jobs")
        queue.put("first")
        assert take(queue) == "first"
    assert messages(tmp_path) == []


@pytest.mark.req("INV-28")
@pytest.mark.parametrize("content", ["", '{"body": "eyJ'])
def test_a_message_that_a_crash_of_the_machine_cut_off_is_dropped_and_the_next_one_arrives(
    tmp_path: Path, content: str
):
    with connect(tmp_path) as connection:
        queue = connection.SimpleQueue("jobs")
        queue.put("first")
        (file,) = (tmp_path / "messages").iterdir()
        file.write_text(content)
        queue.put("second")
        assert take(queue) == "second"
    assert messages(tmp_path) == []


@pytest.mark.req("INV-28")
def test_a_table_that_a_crash_of_the_machine_emptied_is_made_again(tmp_path: Path):
    exchange = Exchange("jobs", type="direct")
    with connect(tmp_path) as connection:
        Queue("jobs", exchange, "jobs")(connection.channel()).declare()
    (tmp_path / "control" / "jobs.exchange").write_text("")
    with connect(tmp_path) as connection:
        Queue("jobs", exchange, "jobs")(connection.channel()).declare()
        channel: Any = connection.channel()
        assert [bound.queue for bound in channel.get_table("jobs")] == ["jobs"]


@pytest.mark.req("INV-28")
def test_a_full_disk_is_an_error_of_the_channel_and_leaves_no_part_of_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fill(self: Path, text: str) -> int:
        with self.open("w") as file:
            file.write(text[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    with connect(tmp_path) as connection:
        queue = connection.SimpleQueue("jobs")
        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_text", fill)
            with pytest.raises(ChannelError):
                queue.put("lost")
        assert messages(tmp_path) == []
        queue.put("kept")
        assert take(queue) == "kept"
