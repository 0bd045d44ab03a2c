"""The embedded broker under several processes' worth of readers and writers."""

import threading
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection, Exchange, Queue

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
