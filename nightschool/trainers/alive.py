"""Long computations that would hide whether their night is alive, run beside the thread that shows it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TypeVar

from nightschool.trainers.base import Progress

T = TypeVar("T")
Step = Callable[[str], None]
"""``step(detail)``: one more step is done."""


class Stopped(Exception):
    """Ends a computation that nobody waits for any more."""


def run_alive(work: Callable[[Step], T], total: int, progress: Progress, *, beat_s: float) -> T:
    """Run ``work(step)`` of ``total`` steps on a thread and return what it returns.

    ``progress`` is called in the caller's thread, whose database connection it uses: after every step, and every
    ``beat_s`` while a step takes longer. What it raises ends the work at its next step and goes on.
    """
    done: SimpleQueue[str | None] = SimpleQueue()
    is_over = threading.Event()

    def step(detail: str) -> None:
        if is_over.is_set():
            raise Stopped
        done.put(detail)

    def run() -> T:
        try:
            return work(step)
        finally:
            done.put(None)

    with ThreadPoolExecutor(1, "night-work") as pool:
        result = pool.submit(run)
        try:
            _report(done, total, progress, beat_s)
        finally:
            is_over.set()
    return result.result()


def _report(done: "SimpleQueue[str | None]", total: int, progress: Progress, beat_s: float) -> None:
    n_done, detail = 0, "preparing"
    while True:
        try:
            latest = done.get(timeout=beat_s)
        except Empty:
            progress(n_done, total, detail)
            continue
        if latest is None:
            return
        n_done, detail = n_done + 1, latest
        progress(n_done, total, detail)
