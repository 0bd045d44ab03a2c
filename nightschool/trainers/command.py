"""A LoRA adapter trained by an operator's command (a local GPU script, a cloud job) and loaded at every endpoint."""

import fcntl
import os
import re
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from gateway.settings import GatewaySettings
from gateway.upstream.adapters import reload_adapter
from gateway.upstream.base import UpstreamError
from ledger.models import Version
from nightschool.settings import NightSettings
from nightschool.trainers.base import Progress, Row, Trained, TrainingFailed
from nightschool.trainers.process import POLL_S, run_command

TEMPLATE_KWARGS = {"enable_thinking": False}
"""The template arguments that the student is served with; training must render the same prompt."""
STEPS = 3
_PLACEHOLDER = re.compile(r"\{(?:version|base_model|data)\}")


class CommandTrainer:
    """Writes the training file, runs ``RATCHET_SYNC_CMD`` and ``RATCHET_TRAIN_CMD``, loads the adapter.

    ``{version}``, ``{base_model}`` and ``{data}`` in a command stand for the adapter's name, the model it adapts and
    the training file. One training at a time uses the data folder; a command that outlived a killed worker keeps the
    next one waiting.
    """

    def __init__(self, nights: NightSettings, gateway: GatewaySettings, poll_s: float = POLL_S) -> None:
        self._nights = nights
        self._student = gateway.student
        self._poll_s = poll_s

    def train(
        self,
        adapter: str,
        base_model: str,
        rows: Sequence[Row],
        tasks: dict[str, Any],  # noqa: ARG002 - the trainers' interface
        progress: Progress,
    ) -> Trained:
        """Train ``adapter`` on ``rows``, whatever their tasks: answers train as text. Raises ``TrainingFailed``."""
        endpoints = self._endpoints(adapter)
        folder = Path(self._nights.data_dir).resolve() / "night"
        data = folder / "train.jsonl"
        values = {"{version}": adapter, "{base_model}": base_model, "{data}": str(data)}
        sync = _command("RATCHET_SYNC_CMD", self._nights.sync_cmd, values)
        train = _command("RATCHET_TRAIN_CMD", self._nights.train_cmd, values)
        if not train:
            raise TrainingFailed("RATCHET_TRAIN_CMD is not set: there is nothing to train with")
        folder.mkdir(parents=True, exist_ok=True)
        with self._alone(folder, progress) as held:
            for unfinished in folder.glob(f"{data.name}*.part"):
                unfinished.unlink(missing_ok=True)
            write_training_file(data, rows)
            if sync:
                self._run("RATCHET_SYNC_CMD", sync, folder / "sync.log", held, _ticker(progress, 0, "syncing"))
            self._run("RATCHET_TRAIN_CMD", train, folder / "train.log", held, _ticker(progress, 1, "training"))
        self._load(adapter, endpoints, progress)
        artefact = {"format": "lora", "adapter": adapter, "root": self._nights.adapter_root}
        return Trained(adapter, artefact, notes=f"loaded at {len(endpoints)} endpoint(s)")

    def _endpoints(self, adapter: str) -> list[str]:
        """Return where the adapter will serve; without an endpoint it could not be evaluated, so nothing is spent."""
        version = Version.objects.select_related("student").filter(adapter=adapter).first()
        listed = version.student.endpoints if version else []
        endpoints = [url for url in listed or [self._student.base_url] if url]
        if not endpoints:
            raise TrainingFailed("the student has no endpoint: set RATCHET_STUDENT_BASE or the student's endpoints")
        return endpoints

    @contextmanager
    def _alone(self, folder: Path, progress: Progress) -> Iterator[int]:
        """Hold the folder; the command inherits the lock, so it is held for as long as anyone writes there."""
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._wait_for_lock(descriptor, progress)
            try:
                yield descriptor
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def _wait_for_lock(self, descriptor: int, progress: Progress) -> None:
        started = time.monotonic()
        while time.monotonic() - started < self._nights.train_timeout_s:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            progress(0, STEPS, "waiting for another training to end")
            time.sleep(self._poll_s)
        raise TrainingFailed("another training still uses the data folder")

    def _run(self, name: str, arguments: list[str], log: Path, held: int, tick: Callable[[float], None]) -> None:
        timeout_s = self._nights.train_timeout_s
        run_command(arguments, name=name, log=log, timeout_s=timeout_s, tick=tick, held=(held,), poll_s=self._poll_s)

    def _load(self, adapter: str, endpoints: Sequence[str], progress: Progress) -> None:
        path = f"{self._nights.adapter_root.rstrip('/')}/{adapter}"
        for position, base_url in enumerate(endpoints, 1):
            progress(2, STEPS, f"loading at endpoint {position} of {len(endpoints)}")
            try:
                reload_adapter(base_url, adapter, path, self._student.api_key)
            except UpstreamError as error:
                raise TrainingFailed(f"endpoint {position} did not load the adapter ({error.kind})") from error
        progress(STEPS, STEPS, "loaded")


def write_training_file(path: Path, rows: Sequence[Row]) -> None:
    """Write TRL's conversational prompt-completion rows to ``path``, atomically and readable by us alone."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            for row in rows:
                file.write(orjson.dumps(training_record(row), option=orjson.OPT_APPEND_NEWLINE))
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def training_record(row: Row) -> dict[str, Any]:
    """Return one row as TRL reads conversational prompt-completion data."""
    return {
        "prompt": list(row.messages),
        "completion": [{"role": "assistant", "content": row.completion}],
        "chat_template_kwargs": TEMPLATE_KWARGS,
        "task": row.task,
        "params": row.params,
        "seen": row.seen,
        "provenance": {
            "hash": row.hash,
            "teacher_model": row.teacher_model,
            "licence": row.licence,
            "redactions": row.redactions,
        },
    }


def _command(name: str, text: str, values: Mapping[str, str]) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError:
        raise TrainingFailed(f"{name} cannot be split into words: check its quotes") from None
    return [_PLACEHOLDER.sub(lambda match: values[match[0]], word) for word in words]


def _ticker(progress: Progress, step: int, doing: str) -> Callable[[float], None]:
    return lambda elapsed_s: progress(step, STEPS, f"{doing} for {elapsed_s:.0f} s")
