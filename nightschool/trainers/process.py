"""Running an operator's command: no shell, killed with everything it started, its output kept out of the way."""

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

from nightschool.trainers.base import TrainingFailed

POLL_S = 1.0
GRACE_S = 10.0
TAIL_LINES = 200
LINE_MAX_BYTES = 500


def run_command(
    arguments: Sequence[str],
    *,
    name: str,
    log: Path,
    timeout_s: float,
    tick: Callable[[float], None],
    held: Sequence[int] = (),
    poll_s: float = POLL_S,
) -> None:
    """Run ``arguments`` to its end, writing the tail of its output to ``log``.

    ``tick(seconds)`` is called about every ``poll_s``; what it raises ends the command and goes on. ``held`` are file
    descriptors that the command inherits. Raises ``TrainingFailed`` naming the command (``name``) and its exit code.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - the operator's own command, split without a shell
            list(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=tuple(held),
        )
    except OSError as error:
        raise TrainingFailed(f"{name} cannot be started ({error.strerror})") from None
    output = _Tail(process.stdout)
    try:
        _wait(process, name, timeout_s, tick, poll_s)
    finally:
        if process.poll() is None:
            _kill(process)
        _kill_what_is_left(process)
        output.write_to(log)
    if process.returncode != 0:
        raise TrainingFailed(f"{name} failed with exit code {process.returncode}; its output is in {log.name}")


def _wait(
    process: "subprocess.Popen[bytes]", name: str, timeout_s: float, tick: Callable[[float], None], poll_s: float
) -> None:
    started = time.monotonic()
    while True:
        elapsed = time.monotonic() - started
        if elapsed >= timeout_s:
            raise TrainingFailed(f"{name} did not finish within {timeout_s:g} s")
        tick(elapsed)
        try:
            process.wait(min(poll_s, timeout_s - elapsed))
        except subprocess.TimeoutExpired:
            continue
        return


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End the command's process group: politely, so that a job script can cancel its job, then by force."""
    os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
        return
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _kill_what_is_left(process: "subprocess.Popen[bytes]") -> None:
    """End what the command started and did not wait for.

    The next training would share the data folder with it, and perhaps find the GPU taken.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class _Tail:
    """The last lines of a pipe, each clipped, collected on a thread so that a full pipe never blocks the command."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        self._pipe = pipe
        self._lines: deque[bytes] = deque(maxlen=TAIL_LINES)
        self._thread = threading.Thread(target=self._read, name="command-output", daemon=True)
        self._thread.start()

    def write_to(self, log: Path) -> None:
        """Write what was collected, readable by us alone."""
        self._thread.join(timeout=GRACE_S / 10)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(list(self._lines))

    def _read(self) -> None:
        if self._pipe is not None:
            with self._pipe:
                for line in iter(partial(self._pipe.readline, LINE_MAX_BYTES), b""):
                    self._lines.append(line)
