"""Keeping the routing snapshot fresh: a change that any process commits is honoured by requests from 100 ms later on.

A thread with its own connection reads the epoch every ``snapshot_poll_s`` (under half of the promise) and rebuilds the
snapshot when it moved. When the database cannot be read, requests go on with the last snapshot.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from time import monotonic

from django.db import connections

from gateway.snapshot import Snapshot

log = logging.getLogger("ratchet.snapshot")

FRESH_S = 0.1
WAIT_S = 0.5


class SnapshotWatcher:
    """Holds the current snapshot of one process."""

    def __init__(self, build: Callable[[], Snapshot], read_epoch: Callable[[], int], poll_s: float) -> None:
        self._build = build
        self._read_epoch = read_epoch
        self._poll_s = poll_s
        self._stop = threading.Event()
        self._started = threading.Event()
        self._first_error: Exception | None = None
        self._snapshot: Snapshot | None = None
        self._checked_at = 0.0
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start watching; returns with the first snapshot, or raises what the database raised."""
        self._thread = threading.Thread(target=self._run, name="snapshot-watcher", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._first_error is not None:
            raise self._first_error

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    async def current(self) -> Snapshot:
        """Return a snapshot whose epoch was read within the last 100 ms, or the last one when the database is away."""
        deadline = monotonic() + WAIT_S
        while monotonic() - self._checked_at > FRESH_S and monotonic() < deadline:
            await asyncio.sleep(0.005)
        return self.latest

    @property
    def latest(self) -> Snapshot:
        """The last snapshot read."""
        assert self._snapshot is not None  # noqa: S101 - start() comes first
        return self._snapshot

    def _look(self) -> None:
        looked_at = monotonic()
        epoch = self._read_epoch()
        if self._snapshot is None or epoch != self._snapshot.epoch:
            self._snapshot = self._build()
        self._checked_at = looked_at

    def _run(self) -> None:
        try:
            self._look()
        except Exception as error:  # noqa: BLE001 - raised again by start()
            self._first_error = error
            return
        finally:
            self._started.set()
        is_away = False
        while not self._stop.wait(self._poll_s):
            try:
                self._look()
                is_away = False
            except Exception as error:  # noqa: BLE001 - the gateway serves on with what it knows
                connections.close_all()
                if not is_away:
                    log.error("routing state cannot be read: %s", type(error).__name__)
                is_away = True
        connections.close_all()
