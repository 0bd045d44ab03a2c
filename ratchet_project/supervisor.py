"""Runs the processes of one machine together: prefixes their output, restarts what dies, stops them all cleanly."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

BACKOFF_FIRST_S = 1.0
BACKOFF_MAX_S = 30.0
SETTLED_AFTER_S = 10.0
GIVE_UP_AFTER = 3
STOP_WAIT_S = 20.0
POLL_S = 0.1
LEASH = ("setpriv", "--pdeathsig", "TERM")
"""Linux's way to tell a process that its supervisor is gone, however it went: nothing is left running without one."""


class CannotStart(Exception):
    """A process keeps ending before it has settled; the text names it and its exit status."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A process to keep running: a short name for its output, and its command line."""

    name: str
    argv: Sequence[str]
    cwd: Path = field(default_factory=Path.cwd)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the supervisor waits for what, in seconds."""

    backoff_first_s: float = BACKOFF_FIRST_S
    settled_after_s: float = SETTLED_AFTER_S
    stop_wait_s: float = STOP_WAIT_S


class _Child:
    """One supervised process, the leader of its own process group."""

    def __init__(self, spec: ProcessSpec, say: Callable[[str, str], None], patience: Patience) -> None:
        self.spec = spec
        self._say = say
        self._patience = patience
        self._process: subprocess.Popen[str] | None = None
        self._started_at = 0.0
        self._restart_at = 0.0
        self._n_early_ends = 0
        self._has_settled = False
        self._reader: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start it, in a new process group, with its output prefixed line by line."""
        self._process = subprocess.Popen(  # noqa: S603 - the command lines are our own
            _leashed(self.spec.argv),
            cwd=self.spec.cwd,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._started_at = time.monotonic()
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None  # noqa: S101 - it was opened as a pipe
        for line in process.stdout:
            self._say(self.spec.name, line.rstrip("\n"))

    def watch(self) -> None:
        """Restart it if it ended; raises ``CannotStart`` when it never gets to work."""
        if self._process is None:
            if time.monotonic() >= self._restart_at:
                self._start_again()
            return
        status = self._process.poll()
        if status is None:
            return
        self._kill_group()
        self._process = None
        self._count(time.monotonic() - self._started_at)
        if not self._has_settled and self._n_early_ends >= GIVE_UP_AFTER:
            raise CannotStart(
                f"{self.spec.name} cannot start: it ended {describe(status)}, {GIVE_UP_AFTER} times in a row"
            )
        self._back_off(f"ended {describe(status)}")

    def _start_again(self) -> None:
        """Start it; a machine that is short of memory or processes just now is no reason to stop the others."""
        try:
            self.start()
        except OSError as error:
            self._n_early_ends += 1
            self._back_off(f"cannot be started ({error.strerror})")

    def _back_off(self, what: str) -> None:
        wait = min(self._patience.backoff_first_s * 2 ** max(self._n_early_ends - 1, 0), BACKOFF_MAX_S)
        self._restart_at = time.monotonic() + wait
        self._say(self.spec.name, f"{what}; starting it again in {wait:g} s")

    def _count(self, lived_s: float) -> None:
        if lived_s >= self._patience.settled_after_s:
            self._has_settled = True
            self._n_early_ends = 0
        else:
            self._n_early_ends += 1

    def ask_to_stop(self) -> None:
        """Send SIGTERM to the leader; it stops its own children."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGTERM)

    def wait_or_kill(self, deadline: float) -> None:
        """Wait for its end until ``deadline`` (monotonic), then kill the whole group."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._say(self.spec.name, "did not stop in time; killing it")
        self._kill_group()
        self._process.wait()
        if self._reader is not None:
            self._reader.join(1.0)
        self._process = None

    def _kill_group(self) -> None:
        if self._process is not None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return


class Supervisor:
    """Keeps processes running until it is told to stop. They are stopped in the order in which they were given."""

    def __init__(
        self,
        specs: Sequence[ProcessSpec],
        write: Callable[[str], object] = sys.stdout.write,
        patience: Patience | None = None,
    ) -> None:
        self._patience = patience or Patience()
        self._write = write
        self._lock = threading.Lock()
        self._width = max((len(spec.name) for spec in specs), default=0)
        self._is_stopping = False
        self._children = [_Child(spec, self._say, self._patience) for spec in specs]

    @property
    def pids(self) -> dict[str, int]:
        """The process id of each process that runs now, by name."""
        return {child.spec.name: child.pid for child in self._children if child.pid is not None}

    def run(self) -> None:
        """Start everything and watch over it until ``stop`` is called; always leaves nothing running.

        Raises ``CannotStart`` when one of them ends again and again before it has settled, ``OSError`` when its
        command cannot be executed at all.
        """
        try:
            for child in self._children:
                child.start()
            while not self._is_stopping:
                for child in self._children:
                    child.watch()
                time.sleep(POLL_S)
        finally:
            self._stop_all()

    def stop(self) -> None:
        """Make ``run`` stop everything and return. Safe in a signal handler and from another thread.

        It takes no lock: the handler runs in the thread that may hold it, so an ``Event`` here would hang now and then.
        """
        self._is_stopping = True

    def _stop_all(self) -> None:
        deadline = time.monotonic() + self._patience.stop_wait_s
        for child in self._children:
            child.ask_to_stop()
        for child in self._children:
            child.wait_or_kill(deadline)

    def _say(self, name: str, line: str) -> None:
        """Write one line. When nobody can take it (a closed pipe, a full disk) it is dropped, and reading goes on:

        a process whose output nobody reads stops at its next line.
        """
        with self._lock, suppress(OSError, ValueError):
            self._write(f"{name:<{self._width}} | {line}\n")


def _leashed(argv: Sequence[str]) -> list[str]:
    """Return ``argv`` so that its process gets SIGTERM when this one dies, where the system can do that."""
    return [*LEASH, *argv] if shutil.which(LEASH[0]) and shutil.which(argv[0]) else list(argv)


def describe(status: int) -> str:
    """Say how a process ended, for people: ``with status 1`` or ``by SIGKILL``."""
    if status >= 0:
        return f"with status {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:
        return f"by signal {-status}"
