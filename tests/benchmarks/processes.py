"""The processes of the benchmark: starting, pinning to a core, their CPU time (Linux only) and ending them."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

BASE = Path(__file__).resolve().parents[2]
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
START_WAIT_S = 60
STOP_WAIT_S = 30


def cores() -> tuple[set[int], set[int]]:
    """Return the core of the server under test and those of everything else; both the same on a single core."""
    usable = sorted(os.sched_getaffinity(0))
    return {usable[0]}, set(usable[1:] or usable)


@contextmanager
def process(
    argv: Sequence[str], environment: Mapping[str, str], on: set[int], log: Path
) -> Iterator[subprocess.Popen[str]]:
    """Run a command on the cores ``on`` and end it on the way out; its errors go to ``log``."""
    with log.open("w") as errors:
        child = subprocess.Popen(argv, cwd=BASE, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            # Before the child has threads of its own: they inherit what the first one has.
            os.sched_setaffinity(child.pid, on)
            yield child
        finally:
            child.terminate()
            try:
                child.wait(STOP_WAIT_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def python_module(module: str, *arguments: object) -> list[str]:
    """Return the command line of a module of this package."""
    return [sys.executable, "-m", f"tests.benchmarks.{module}", *map(str, arguments)]


def wait_until_open(port: int, child: subprocess.Popen[str], log: Path) -> None:
    """Wait until the server accepts connections; fails with its log when it ends or takes too long."""
    deadline = time.monotonic() + START_WAIT_S
    while time.monotonic() < deadline and child.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"the server did not start:\n{log.read_text()}")


def cpu_s(pid: int) -> float:
    """Return the CPU seconds, user and system, that the process and its living descendants have used so far."""
    ticks = 0
    for member in _tree(pid):
        # Fields 14 and 15 of proc(5), counted after the command's name, which may hold spaces.
        fields = Path(f"/proc/{member}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS_PER_S


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in listed.read_text().split():
            yield from _tree(int(child))
