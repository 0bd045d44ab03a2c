"""The artefacts a process has loaded: each read once however many requests want it, old ones dropped."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.students.linear.artefact import ArtefactError, read
from gateway.students.linear.model import LinearModel

RETRY_S = 5.0
"""How long a failed read is remembered, so that a missing file is not looked for on every request."""
IDLE_S = 600.0
"""How long an artefact must be unused to be dropped: more versions in use than the cache holds would otherwise push
each other out, and every request would read its artefact from disk."""


@dataclass(slots=True)
class _Entry:
    loading: Future[LinearModel]
    started_at: float
    used_at: float


class ArtefactCache:
    """Loaded models by the SHA-256 of their artefact. Safe between threads.

    Keeps the ``capacity`` used last, and all that were used in the last ``IDLE_S``.
    """

    def __init__(self, root: Path, monotonic: Callable[[], float], capacity: int = 16) -> None:
        self._root = root
        self._monotonic = monotonic
        self._capacity = capacity
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, reference: Mapping[str, Any]) -> LinearModel:
        """Return the artefact's model, reading it in this thread or waiting for the thread that does.

        Raises ``ArtefactError``.
        """
        loading, is_mine = self._claim(reference)
        if is_mine:
            self._load(loading, reference)
        return loading.result()

    async def get_async(self, reference: Mapping[str, Any]) -> LinearModel:
        """Return the artefact's model; it is read in the event loop's executor. Raises ``ArtefactError``."""
        loading, is_mine = self._claim(reference)
        if is_mine:
            asyncio.get_running_loop().run_in_executor(None, self._load, loading, reference)
        return loading.result() if loading.done() else await asyncio.wrap_future(loading)

    def _claim(self, reference: Mapping[str, Any]) -> tuple[Future[LinearModel], bool]:
        key = f"{reference.get('sha256')}:{reference.get('path')}"
        with self._lock:
            now = self._monotonic()
            entry = self._entries.get(key)
            if entry is not None and not self._is_due_again(entry, now):
                entry.used_at = now
                self._entries.move_to_end(key)
                return entry.loading, False
            loading: Future[LinearModel] = Future()
            # A running future cannot be cancelled, so a client that hangs up does not take the others' load with it.
            loading.set_running_or_notify_cancel()
            self._entries[key] = _Entry(loading, started_at=now, used_at=now)
            self._entries.move_to_end(key)
            self._drop_idle(now)
            return loading, True

    def _is_due_again(self, entry: _Entry, now: float) -> bool:
        has_failed = entry.loading.done() and entry.loading.exception() is not None
        return has_failed and now - entry.started_at >= RETRY_S

    def _drop_idle(self, now: float) -> None:
        while len(self._entries) > self._capacity:
            oldest = next(iter(self._entries))
            if now - self._entries[oldest].used_at < IDLE_S:
                return
            del self._entries[oldest]

    def _load(self, loading: Future[LinearModel], reference: Mapping[str, Any]) -> None:
        try:
            model = read(self._root, reference)
            for task in model.tasks.values():
                for block in task.blocks:
                    block.index  # noqa: B018 - built here, off the event loop, not by the first request
            loading.set_result(model)
        except ArtefactError as error:
            loading.set_exception(error)
        except Exception as error:  # noqa: BLE001 - whoever waits must be told
            loading.set_exception(ArtefactError(type(error).__name__))
