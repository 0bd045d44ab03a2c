"""Training by an operator's command."""

import fcntl
import json
import os
import select
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.clock import ManualClock
from gateway.settings import EndpointSettings, GatewaySettings
from ledger.models import Student
from ledger.versions import create_candidate
from nightschool.settings import NightSettings
from nightschool.trainers.base import Row, Trained, TrainingFailed
from nightschool.trainers.command import CommandTrainer
from tests.upstream.fakes import KEY, Reply, Upstream

pytestmark = pytest.mark.usefixtures("ledger")

MESSAGES = [{"role": "system", "content": "Classify."}, {"role": "user", "content": "Grüezi"}]
ROW = Row("h1", "triage", MESSAGES, '{"label":"red"}', {"stop": ["x"]}, 2, "nvidia/nemotron-3-ultra", "OpenMDW-1.1", 1)
RECORD = {
    "prompt": MESSAGES,
    "completion": [{"role": "assistant", "content": '{"label":"red"}'}],
    "chat_template_kwargs": {"enable_thinking": False},
    "task": "triage",
    "params": {"stop": ["x"]},
    "seen": 2,
    "provenance": {
        "hash": "h1", "teacher_model": "nvidia/nemotron-3-ultra", "licence": "OpenMDW-1.1", "redactions": 1,
    },
}  # fmt: skip


class TakenOver(Exception):
    """The night belongs to another worker now."""


def python(code: str, *arguments: str) -> str:
    """A command line that runs Python ``code``; ``arguments`` are its ``sys.argv[1:]``."""
    quoted = code.replace('"', '\\"')
    return " ".join([sys.executable, "-c", f'"{quoted}"', *arguments])


@pytest.fixture
def vllm() -> Iterator[Upstream]:
    upstream = Upstream()
    yield upstream
    upstream.stop()


class Bench:
    """A trainer in a folder of its own, with recorded progress."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self.folder = folder
        self.night = NightSettings(data_dir=str(folder), train_cmd=python("pass"), train_timeout_s=60)
        self.gateway = GatewaySettings(student=EndpointSettings(base_url=base_url, api_key=KEY))
        self.progress: list[tuple[int, int, str]] = []
        self.on_progress: Callable[[str], None] = lambda detail: None

    @property
    def data(self) -> Path:
        return self.folder / "night" / "train.jsonl"

    def train(self, adapter: str = "default-v1", **changes: Any) -> Trained:
        def report(done: int, total: int, detail: str) -> None:
            self.progress.append((done, total, detail))
            self.on_progress(detail)

        trainer = CommandTrainer(replace(self.night, **changes), self.gateway, poll_s=0.02)
        return trainer.train(adapter, "open/base", [ROW, ROW], {}, report)


@pytest.fixture
def bench(tmp_path: Path, vllm: Upstream) -> Bench:
    return Bench(tmp_path / "data", vllm.base_url)


def note(word: str) -> str:
    """A command that appends ``word`` and its arguments to the file ``order``, beside the training file."""
    code = (
        "import sys, pathlib; data = pathlib.Path(sys.argv[1]); n = len(data.read_text().splitlines()); "
        f"(data.parent / 'order').open('a').write(' '.join(['{word}', *sys.argv[2:], str(n)]) + ';')"
    )
    return python(code, "{data}", "{version}", "{base_model}")


@pytest.mark.req("FR-4.6", "FR-8.2", "US-10")
def test_it_writes_syncs_trains_and_loads_in_this_order(bench: Bench, vllm: Upstream) -> None:
    trained = bench.train(sync_cmd=note("sync"), train_cmd=note("train"), adapter_root="/mnt/adapters/")
    assert (bench.data.parent / "order").read_text() == "sync default-v1 open/base 2;train default-v1 open/base 2;"
    assert [(seen.path, seen.body) for seen in vllm.seen] == [
        ("/v1/unload_lora_adapter", {"lora_name": "default-v1"}),
        ("/v1/load_lora_adapter", {"lora_name": "default-v1", "lora_path": "/mnt/adapters/default-v1"}),
    ]
    assert vllm.seen[1].headers["Authorization"] == f"Bearer {KEY}"
    artefact = {"format": "lora", "adapter": "default-v1", "root": "/mnt/adapters/"}
    assert trained == Trained("default-v1", artefact, notes="loaded at 1 endpoint(s)")
    assert bench.progress[-2:] == [(2, 3, "loading at endpoint 1 of 1"), (3, 3, "loaded")]


@pytest.mark.req("FR-8.42", "INV-2")
def test_the_training_file_holds_exactly_the_rows(bench: Bench) -> None:
    bench.train()
    assert [json.loads(line) for line in bench.data.read_text().splitlines()] == [RECORD, RECORD]
    assert stat.S_IMODE(bench.data.stat().st_mode) == 0o600
    assert [path.name for path in bench.data.parent.glob("*.part")] == []
    assert not (bench.data.parent / "sync.log").exists()


@pytest.mark.req("FR-4.6")
def test_placeholders_never_split_a_word_or_reach_a_shell(bench: Bench) -> None:
    bench.folder = bench.folder.parent / "my data; rm -rf {version}"
    code = "import sys, pathlib; assert len(sys.argv) == 3; pathlib.Path(sys.argv[1]).stat()"
    bench.train(data_dir=str(bench.folder), train_cmd=python(code, "{data}", "x{version}y"))
    assert bench.data.exists()


@pytest.mark.req("FR-8.2", "NFR-2")
def test_every_replica_of_the_student_loads_the_adapter(bench: Bench, vllm: Upstream, clock: ManualClock) -> None:
    other = Upstream()
    Student.objects.update(endpoints=[vllm.base_url, other.base_url])
    version = create_candidate(Student.objects.get().pk, at=clock.now())
    bench.gateway = GatewaySettings()
    assert bench.train(version.adapter).notes == "loaded at 2 endpoint(s)"
    other.stop()
    assert [len(endpoint.seen) for endpoint in (vllm, other)] == [2, 2]


@pytest.mark.req("FR-8.2")
@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"train_cmd": ""}, "RATCHET_TRAIN_CMD is not set"),
        ({"train_cmd": "train 'it"}, "RATCHET_TRAIN_CMD cannot be split"),
        ({"sync_cmd": "sync 'it"}, "RATCHET_SYNC_CMD cannot be split"),
    ],
)
def test_a_missing_or_broken_setting_fails_before_anything_is_written(
    bench: Bench, vllm: Upstream, changes: dict[str, str], reason: str
) -> None:
    with pytest.raises(TrainingFailed, match=reason):
        bench.train(**changes)
    assert not bench.folder.exists() and vllm.seen == []


@pytest.mark.req("FR-8.2", "US-10")
def test_without_an_endpoint_nothing_is_written_or_spent(bench: Bench) -> None:
    bench.gateway = GatewaySettings()
    with pytest.raises(TrainingFailed, match="RATCHET_STUDENT_BASE"):
        bench.train()
    assert not bench.folder.exists()


@pytest.mark.req("FR-4.6", "INV-12")
def test_a_failed_command_stops_before_loading_and_its_output_stays_in_the_log(bench: Bench, vllm: Upstream) -> None:
    code = "import sys; [print('secret line', n) for n in range(300)]; print('x' * 600, file=sys.stderr); sys.exit(3)"
    with pytest.raises(TrainingFailed) as caught:
        bench.train(train_cmd=python(code))
    assert str(caught.value) == "RATCHET_TRAIN_CMD failed with exit code 3; its output is in train.log"
    log = bench.data.parent / "train.log"
    lines = log.read_text().splitlines()
    assert "secret line 299" in lines and "secret line 0" not in lines
    assert len(lines) <= 200 and log.stat().st_size < 200 * 500
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert vllm.seen == []
    assert all("secret" not in detail for _, _, detail in bench.progress)


@pytest.mark.req("FR-4.6")
def test_a_failed_sync_stops_before_training(bench: Bench, vllm: Upstream) -> None:
    with pytest.raises(TrainingFailed, match="RATCHET_SYNC_CMD failed with exit code 1"):
        bench.train(sync_cmd=python("raise SystemExit(1)"), train_cmd=note("train"))
    assert not (bench.data.parent / "order").exists() and vllm.seen == []


@pytest.mark.req("FR-4.6")
def test_a_command_that_does_not_exist_says_so(bench: Bench) -> None:
    with pytest.raises(TrainingFailed, match=r"RATCHET_TRAIN_CMD cannot be started \(No such file or directory\)"):
        bench.train(train_cmd="/no/such/command")


SLEEPER = (
    "import subprocess, sys, pathlib, time; "
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
    "pathlib.Path(sys.argv[1]).with_name('child').write_text(str(child.pid)); time.sleep(60)"
)
"""A command with a child of its own that would run for a minute."""


def ends(pid: int, within_s: float = 5.0) -> bool:
    """Whether the process has ended, or does so very soon."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], within_s)[0])
    finally:
        os.close(descriptor)


def started_child(bench: Bench) -> Path:
    return bench.data.with_name("child")


@pytest.mark.req("FR-4.6", "INV-29")
def test_a_night_that_was_taken_over_kills_the_command_and_its_children(bench: Bench, vllm: Upstream) -> None:
    def lose_when_started(detail: str) -> None:
        if started_child(bench).exists() and started_child(bench).read_text():
            raise TakenOver

    bench.on_progress = lose_when_started
    with pytest.raises(TakenOver):
        bench.train(train_cmd=python(SLEEPER, "{data}"))
    assert ends(int(started_child(bench).read_text()))
    assert vllm.seen == []
    bench.on_progress = lambda detail: None
    assert bench.train().adapter == "default-v1"


LEAVER = (
    "import subprocess, sys, pathlib; "
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
    "pathlib.Path(sys.argv[1]).with_name('child').write_text(str(child.pid)); sys.exit(int(sys.argv[2]))"
)
"""A command that ends at once, with an exit code, and leaves a child behind."""


@pytest.mark.req("FR-4.6", "INV-29")
@pytest.mark.parametrize("exit_code", [0, 3])
def test_a_command_that_ends_leaves_no_children_behind(bench: Bench, vllm: Upstream, exit_code: int) -> None:
    command = python(LEAVER, "{data}", str(exit_code))
    if exit_code:
        with pytest.raises(TrainingFailed, match="failed with exit code 3"):
            bench.train(train_cmd=command)
    else:
        bench.train(train_cmd=command)
    assert ends(int(started_child(bench).read_text()))


@pytest.mark.req("FR-4.6")
def test_a_command_is_killed_at_its_time_limit(bench: Bench, vllm: Upstream) -> None:
    with pytest.raises(TrainingFailed, match=r"RATCHET_TRAIN_CMD did not finish within 1 s"):
        bench.train(train_cmd=python("import time; time.sleep(60)"), train_timeout_s=1)
    assert vllm.seen == []
    assert {detail for _, _, detail in bench.progress} <= {"training for 0 s", "training for 1 s"}
    assert len(bench.progress) > 10


@pytest.mark.req("FR-8.2", "INV-12")
def test_a_replica_that_does_not_load_fails_the_training_without_naming_its_address(
    bench: Bench, vllm: Upstream
) -> None:
    vllm.replies(Reply(404), Reply(500, {"error": {"message": "disk full"}}))
    with pytest.raises(TrainingFailed) as caught:
        bench.train()
    assert str(caught.value) == "endpoint 1 did not load the adapter (http_500)"


@pytest.mark.req("FR-8.2", "NFR-2")
def test_training_again_overwrites_what_it_left_and_an_adapter_that_is_loaded_is_fine(
    bench: Bench, vllm: Upstream
) -> None:
    bench.train()
    vllm.replies(Reply(), Reply(400, {"message": "The lora adapter 'default-v1' has already been loaded."}))
    bench.data.write_text("left behind")
    bench.train()
    assert len(bench.data.read_text().splitlines()) == 2


@pytest.mark.req("INV-12", "FR-4.6")
def test_a_file_that_a_killed_worker_was_writing_does_not_stay(bench: Bench) -> None:
    bench.train()
    unfinished = bench.data.with_name("train.jsonlx7k2.part")
    unfinished.write_text("half of the rows")
    bench.train()
    assert sorted(path.name for path in bench.data.parent.iterdir()) == [".lock", "train.jsonl", "train.log"]


@pytest.mark.req("INV-29")
def test_a_training_waits_until_the_data_folder_is_free(bench: Bench) -> None:
    folder = bench.data.parent
    folder.mkdir(parents=True)
    other = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(other, fcntl.LOCK_EX)

    def release(detail: str) -> None:
        if detail == "waiting for another training to end":
            assert not bench.data.exists()
            fcntl.flock(other, fcntl.LOCK_UN)

    bench.on_progress = release
    bench.train()
    os.close(other)
    assert bench.progress[0] == (0, 3, "waiting for another training to end")
    assert bench.data.exists()


@pytest.mark.req("INV-29")
def test_a_command_that_outlived_its_worker_keeps_the_next_training_waiting(bench: Bench) -> None:
    code = (
        "import os, pathlib, sys; lock = os.stat(pathlib.Path(sys.argv[1]).with_name('.lock')); "
        "held = [fd for fd in pathlib.Path('/proc/self/fd').iterdir() if fd.exists()]; "
        "assert any(os.path.samestat(os.stat(fd), lock) for fd in held)"
    )
    bench.train(train_cmd=python(code, "{data}"))
