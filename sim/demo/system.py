"""The running system the demo replays against: its processes, its tasks, and a schedule in a hurry."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from django_celery_beat.models import IntervalSchedule, PeriodicTask

from common.clock import Clock
from ledger.models import Student
from ledger.tasks import save_task
from ledger.vocabulary import DEFAULT_STUDENT, TaskSource
from sim.demo.replay import NIGHT_AT
from sim.demo.tasks import TASKS

START_WAIT_S = 90.0
STOP_WAIT_S = 30.0
HURRIED = {
    "release.tick": 1,
    "nightschool.start_due_nights": 1,
    "nightschool.resume_nights": 2,
    "gateway.sweep_checks": 5,
}
"""Seconds between runs: the demo's days pass in seconds. The rows belong to the operator, and the demo is one."""


class SystemFailed(Exception):
    """A process of the demo did not start or ended by itself; the text names its log."""


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def prepare(clock: Clock) -> None:
    """Register the demo's tasks with the default student, put its night after the messages, and hurry the schedule."""
    student = Student.objects.get(name=DEFAULT_STUDENT)
    student.night_at = NIGHT_AT
    student.save(update_fields=["night_at"])
    for task in TASKS.values():
        save_task(task.name, task.spec, student, TaskSource.BUILTIN, clock)
    for name, seconds in HURRIED.items():
        interval, _ = IntervalSchedule.objects.get_or_create(every=seconds, period=IntervalSchedule.SECONDS)
        for row in PeriodicTask.objects.filter(task=name):
            row.interval = interval
            row.save()


class Process:
    """A child process with its output in a log file and a process group of its own."""

    def __init__(self, name: str, argv: Sequence[str], log: Path, cwd: Path) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - the command lines are our own
                list(argv),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def check(self) -> None:
        """Raise ``SystemFailed`` with the end of its log if it has ended."""
        status = self._process.poll()
        if status is not None:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
            raise SystemFailed(f"{self.name} ended with status {status}; the end of {self.log}:\n{tail}")

    def wait(self) -> None:
        """Wait until it ends."""
        self._process.wait()

    def stop(self) -> None:
        """Stop it, and kill what is left of its group."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextmanager
def running(processes: Mapping[str, Sequence[str]], folder: Path, cwd: Path) -> Iterator[list[Process]]:
    """Run named command lines, each with ``<folder>/<name>.log``, and stop them on the way out, the last one first."""
    started: list[Process] = []
    try:
        for name, argv in processes.items():
            started.append(Process(name, argv, folder / f"{name}.log", cwd))
        yield started
    finally:
        for process in reversed(started):
            process.stop()


def teacher_command(port: int, latency_ms: float) -> list[str]:
    """Return the command line of the label teacher."""
    argv = [sys.executable, "-m", "sim.demo.teacher_server", "--port", str(port)]
    return [*argv, "--latency-ms", str(latency_ms)]


def serve_command(port: int, gateways: int, workers: int) -> list[str]:
    """Return the command line of the system: the same ``serve`` that real use starts."""
    counts = ["--gateways", str(gateways), "--workers", str(workers)]
    return [sys.executable, "manage.py", "serve", "--port", str(port), *counts]


def wait_until_up(url: str, processes: Sequence[Process]) -> None:
    """Wait until ``url`` answers; raises ``SystemFailed`` when a process ends or nothing answers in time."""
    deadline = time.monotonic() + START_WAIT_S
    while True:
        for process in processes:
            process.check()
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - our own loopback URL
                return
        except (urllib.error.URLError, OSError):
            if time.monotonic() > deadline:
                raise SystemFailed(f"{url} did not answer within {START_WAIT_S:g} s") from None
            time.sleep(0.2)
