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

from django.db import IntegrityError, connections
from django.db.utils import DataError, Error

from ledger.models import Request
from ledger.rows import LedgerEntry
from ledger.writer.batch import write_entries
from ledger.writer.replay import Replay
from ledger.writer.spool import EntryRefused, Spool

log = logging.getLogger("ratchet.writer")

MAX_GROUP = 512
WAKE_S = 1.0
STOP_S = 30.0

REFUSALS = (IntegrityError, DataError, TypeError, ValueError, ArithmeticError, RecursionError)
"""What says that a row, not the database, is at fault: a constraint, or a value that the database or driver refuses."""

Waiter = asyncio.Future[None]


class QueueFull(Exception):
    """More rows wait than the queue may hold; the request must be refused before it is served."""


class LedgerWriter:
    """Commits ledger entries in groups.

    ``on_commit`` is told of every committed entry, on the thread that wrote it, and ``on_recovery`` how many rows came
    back from the spool.
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
        self._replay = Replay(spool, lambda entry: write_once(entry, using, on_commit), on_recovery, using)
        self._max_queue = max_queue
        self._on_commit = on_commit
        self._using = using
        self._queue: deque[tuple[LedgerEntry, Waiter]] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.n_spooled = 0

    def require_room(self) -> None:
        """Raise ``QueueFull`` when a new request must be refused, before anything is spent on it."""
        if len(self._queue) + self._replay.n_in_memory >= self._max_queue:
            raise QueueFull

    def start(self) -> None:
        """Start the threads; waiters are woken on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
        self._thread.start()
        self._replay.start()

    def stop(self) -> None:
        """Commit (or spool) what is queued and end the threads."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(STOP_S)
            self._replay.stop(STOP_S)

    async def write(self, entry: LedgerEntry) -> None:
        """Return once ``entry`` is committed, or safely spooled. Never refuses: what has been served is written."""
        assert self._loop is not None  # noqa: S101 - start() comes first
        waiter = self._loop.create_future()
        self._queue.append((entry, waiter))
        if not self._wake.is_set():
            self._wake.set()
        await waiter

    def _run(self) -> None:
        while not (self._stopping and not self._queue):
            self._wake.wait(WAKE_S)
            self._wake.clear()
            while self._queue:
                group = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_GROUP))]
                self._commit([entry for entry, _ in group])
                self._resolve([waiter for _, waiter in group])
        connections[self._using].close()

    def _commit(self, entries: list[LedgerEntry]) -> None:
        """Commit a group, or keep it for later. A row that is refused is kept alone; the others are written."""
        if self._replay.is_away:
            self._keep(entries)
            return
        try:
            self._write(entries)
        except REFUSALS as error:
            if len(entries) == 1:
                self._keep(entries, error)
                return
            middle = len(entries) // 2
            self._commit(entries[:middle])
            self._commit(entries[middle:])
        except Exception as error:  # noqa: BLE001 - whatever the driver raises, the rows must survive it
            self._replay.is_away = isinstance(error, Error)
            self._keep(entries, error)
        else:
            _tell(self._on_commit, entries)

    def _write(self, entries: list[LedgerEntry]) -> None:
        """Write a group; a connection that went stale is replaced once before the group counts as failed."""
        connection = connections[self._using]
        try:
            write_entries(entries, connection)
        except REFUSALS:
            raise
        except Error:
            connection.close()
            write_entries(entries, connection)

    def _keep(self, entries: list[LedgerEntry], error: Exception | None = None) -> None:
        self.n_spooled += len(entries)
        if error is not None:
            log.error("ledger write failed, %d rows spooled: %s", len(entries), type(error).__name__)
        self._replay.keep(entries)

    def _resolve(self, waiters: list[Waiter]) -> None:
        assert self._loop is not None  # noqa: S101 - start() comes first
        try:
            self._loop.call_soon_threadsafe(_wake_all, waiters)
        except RuntimeError:
            log.warning("the event loop closed before %d waiters were woken", len(waiters))


def write_once(entry: LedgerEntry, using: str, on_commit: Callable[[Sequence[LedgerEntry]], None]) -> None:
    """Write a spooled entry unless the ledger has it already; raises ``EntryRefused`` when it never will."""
    if _has(entry, using):
        return
    try:
        write_entries([entry], connections[using])
    except REFUSALS as error:
        if _has(entry, using):  # another process wrote it just now
            return
        log.error("the ledger refuses a spooled row for good: %s", type(error).__name__)
        raise EntryRefused from error
    _tell(on_commit, [entry])


def _has(entry: LedgerEntry, using: str) -> bool:
    return Request.objects.using(using).filter(pk=entry.request.id).exists()


def _tell(on_commit: Callable[[Sequence[LedgerEntry]], None], entries: Sequence[LedgerEntry]) -> None:
    """Pass committed entries on; what goes wrong then only delays their checks, which the sweep finds."""
    try:
        on_commit(entries)
    except Exception as error:  # noqa: BLE001 - the rows are written, and must not be taken for failed
        log.error("committed rows could not be passed on: %s", type(error).__name__)


def _wake_all(waiters: list[Waiter]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
