"""One writer per process: a long-lived thread with its own connection that commits whatever queued up meanwhile.

No timer: while one commit runs, the next group gathers. Waiters are woken together, after the commit. When the database
cannot take a group, its entries go to the spool and their waiters are woken all the same: a request that has an answer
gets it (INV-7), and its row is written as soon as it can be.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from django.db import IntegrityError, close_old_connections, connections
from django.db.utils import DataError, Error

from ledger.models import Request
from ledger.rows import LedgerEntry
from ledger.writer.batch import write_entries
from ledger.writer.spool import EntryRefused, Spool

log = logging.getLogger("ratchet.writer")

MAX_GROUP = 512
RETRY_SPOOL_S = 1.0

Waiter = asyncio.Future[None]


class QueueFull(Exception):
    """More rows wait than the queue may hold; the request must be refused before it is served."""


class LedgerWriter:
    """Commits ledger entries in groups.

    ``on_commit`` is told of every committed entry and ``on_recovery`` how many rows came back from the spool, both on
    the writer's thread.
    """

    def __init__(
        self,
        spool: Spool,
        max_queue: int,
        on_commit: Callable[[Sequence[LedgerEntry]], None],
        *,
        on_recovery: Callable[[int], None] = lambda _: None,
        using: str = "default",
    ) -> None:
        self._on_recovery = on_recovery
        self._spool = spool
        self._max_queue = max_queue
        self._on_commit = on_commit
        self._using = using
        self._queue: deque[tuple[LedgerEntry, Waiter]] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self._is_down = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.n_spooled = 0

    def require_room(self) -> None:
        """Raise ``QueueFull`` when a new request must be refused, before anything is spent on it."""
        if len(self._queue) >= self._max_queue:
            raise QueueFull

    def start(self) -> None:
        """Start the thread; waiters are woken on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Commit (or spool) what is queued and end the thread."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=30)

    async def write(self, entry: LedgerEntry) -> None:
        """Return once ``entry`` is committed, or safely spooled. Never refuses: what has been served is written."""
        assert self._loop is not None  # noqa: S101 - start() comes first
        waiter = self._loop.create_future()
        self._queue.append((entry, waiter))
        if not self._wake.is_set():
            self._wake.set()
        await waiter

    def _run(self) -> None:
        self._spool.adopt()
        while not (self._stopping and not self._queue):
            self._wake.wait(RETRY_SPOOL_S)
            self._wake.clear()
            while self._queue:
                group = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_GROUP))]
                self._commit([entry for entry, _ in group])
                self._resolve([waiter for _, waiter in group])
            self._drain_spool()
        connections[self._using].close()

    def _commit(self, entries: list[LedgerEntry]) -> None:
        if self._is_down:
            self._keep(entries, None)
            return
        try:
            self._write(entries)
        except (IntegrityError, DataError) as error:
            if len(entries) == 1:
                self._keep(entries, error)
            else:
                for entry in entries:
                    self._commit([entry])
        except Exception as error:  # noqa: BLE001 - whatever the driver raises, the rows must survive it
            self._is_down = isinstance(error, Error)
            self._keep(entries, error)

    def _write(self, entries: list[LedgerEntry]) -> None:
        """Write a group; a connection that went stale is replaced once before the group counts as failed."""
        connection = connections[self._using]
        try:
            write_entries(entries, connection)
        except (IntegrityError, DataError):
            raise
        except Error:
            connection.close()
            write_entries(entries, connection)
        self._on_commit(entries)

    def _keep(self, entries: list[LedgerEntry], error: Exception | None) -> None:
        self.n_spooled += len(entries)
        self._spool.keep(entries)
        if error is not None:
            log.error("ledger write failed, %d rows spooled: %s", len(entries), type(error).__name__)

    def _drain_spool(self) -> None:
        if not self._spool.count():
            self._is_down = False
            return
        try:
            close_old_connections()
            n_written = self._spool.drain(lambda entry: write_once(entry, self._using, self._on_commit))
            self._is_down = False
            if n_written:
                log.warning("%d spooled rows were written", n_written)
                self._on_recovery(n_written)
        except Exception as error:  # noqa: BLE001 - tried again in a second
            connections[self._using].close()
            log.warning("spooled rows still cannot be written: %s", type(error).__name__)

    def _resolve(self, waiters: list[Waiter]) -> None:
        assert self._loop is not None  # noqa: S101 - start() comes first
        try:
            self._loop.call_soon_threadsafe(_wake_all, waiters)
        except RuntimeError:
            log.warning("the event loop closed before %d waiters were woken", len(waiters))


def write_once(entry: LedgerEntry, using: str, on_commit: Callable[[Sequence[LedgerEntry]], None]) -> None:
    """Write a spooled entry unless the ledger has it already; raises ``EntryRefused`` when it never will."""
    if Request.objects.using(using).filter(pk=entry.request.id).exists():
        return
    try:
        write_entries([entry], connections[using])
    except (IntegrityError, DataError) as error:
        log.error("the ledger refuses a spooled row for good: %s", type(error).__name__)
        raise EntryRefused from error
    on_commit([entry])


def _wake_all(waiters: list[Waiter]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
