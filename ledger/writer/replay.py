"""Bringing rows back: what could not be committed waits on disk, or in memory when the disk is full too.

A thread of its own writes them, so that a database that hangs never keeps requests waiting for rows of the past.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from django.db import close_old_connections, connections

from ledger.rows import LedgerEntry
from ledger.writer.spool import EntryRefused, Spool

log = logging.getLogger("ratchet.writer")

RETRY_S = 1.0
BATCH = 500


class Replay:
    """Keeps entries safe and writes them with ``write`` (see ``Spool.drain``) as soon as the database takes them.

    ``on_recovery`` is told how many rows came back, on this thread. ``is_away`` says that the database is known to be
    away: set by the writer, cleared once a row came back or none waits.
    """

    def __init__(
        self, spool: Spool, write: Callable[[LedgerEntry], None], on_recovery: Callable[[int], None], using: str
    ) -> None:
        self._spool = spool
        self._write = write
        self._on_recovery = on_recovery
        self._using = using
        self._unsaved: deque[LedgerEntry] = deque()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger-replay", daemon=True)
        self.is_away = False

    @property
    def n_in_memory(self) -> int:
        """How many entries neither the database nor the disk has taken."""
        return len(self._unsaved)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Try once more what waits, unless the database is away, and end the thread."""
        self._stopping.set()
        self._thread.join(timeout_s)
        if self._unsaved:
            log.critical("%d rows that neither the ledger nor the spool would take are lost", len(self._unsaved))

    def keep(self, entries: Sequence[LedgerEntry]) -> None:
        """Put entries on disk, durably; in memory when that fails. Never raises."""
        try:
            self._spool.keep(entries)
        except Exception as error:  # noqa: BLE001 - whatever the disk raises, the rows must survive it
            self._unsaved.extend(entries)
            log.critical("the spool cannot be written, %d rows wait in memory: %s", len(entries), type(error).__name__)

    def _run(self) -> None:
        pause_s, is_last = 0.0, False
        while not is_last:
            is_last = self._stopping.wait(pause_s)
            if not (is_last and self.is_away):
                pause_s = 0.0 if self._bring_back() == BATCH else RETRY_S
        connections[self._using].close()

    def _bring_back(self) -> int:
        try:
            close_old_connections()
            self._save_what_is_in_memory()
            n_written = self._spool.drain(self._write, BATCH)
            self.is_away = False
            if n_written:
                log.warning("%d spooled rows were written", n_written)
                self._on_recovery(n_written)
        except Exception as error:  # noqa: BLE001 - tried again in a second
            connections[self._using].close()
            log.warning("spooled rows still cannot be written: %s", type(error).__name__)
            return 0
        return n_written

    def _save_what_is_in_memory(self) -> None:
        for _ in range(len(self._unsaved)):
            entry = self._unsaved.popleft()
            try:
                self._save(entry)
            except BaseException:
                self._unsaved.append(entry)
                raise

    def _save(self, entry: LedgerEntry) -> None:
        try:
            self._spool.keep([entry])
        except Exception:  # noqa: BLE001 - still no disk: perhaps the database is back
            try:
                self._write(entry)
            except EntryRefused:
                log.critical("a row that neither the ledger nor the spool will take is lost: %s", entry.request.id)
