"""Failures, written off the request path: refusals and failed calls as rows, throttled events for optional ones.

A failure row names the error's class, status and code, never a message or a text (INV-12).
"""

import logging
import threading
from collections import Counter, deque
from datetime import datetime
from uuid import UUID

from django.db import connections
from django.db.utils import InterfaceError, OperationalError

from ledger.models import Event, Failure

log = logging.getLogger("ratchet.failures")

EVENT_AT = frozenset({1, 10, 100, 1000})
MAX_WAITING = 5000
IDLE_S = 0.5


class FailureLog:
    """Collects failures and writes them in groups on its own thread.

    While the database is away they wait, as many as fit. Those that do not, and those that the database refuses, are
    counted as dropped.
    """

    def __init__(self, using: str = "default") -> None:
        self._using = using
        self._waiting: deque[Failure | Event] = deque()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="failure-log", daemon=True)
        self.counts: Counter[str] = Counter()
        self.n_dropped = 0
        self._is_away = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits and end the thread."""
        self._stop.set()
        self._thread.join(timeout=5)

    def refused(
        self,
        stage: str,
        error: str,
        *,
        at: datetime,
        request_id: UUID | None = None,
        client: str = "",
        task: str = "",
        status: int | None = None,
        cost_nusd: int = 0,
    ) -> None:
        """Record a request that was refused or failed, with what it had spent."""
        self.counts[stage] += 1
        self._put(
            Failure(
                request_id=request_id,
                at=at,
                on=at.date(),
                client=client[:64],
                task=task[:64],
                stage=stage,
                error=error[:120],
                status=status,
                cost_nusd=cost_nusd,
            )
        )

    def optional(
        self, stage: str, error: str, *, at: datetime, request_id: UUID | None = None, client: str = "", task: str = ""
    ) -> None:
        """Record an optional call that failed; the 1st, 10th, 100th and 1000th of a kind are also events."""
        self.refused(stage, error, at=at, request_id=request_id, client=client, task=task)
        if self.counts[stage] in EVENT_AT:
            self.event(stage, f"{task}: {error} (number {self.counts[stage]})", at=at)

    def event(self, kind: str, detail: str, *, at: datetime) -> None:
        """Append to the release log, off the request path."""
        self._put(Event(at=at, on=at.date(), kind=kind, detail=detail[:500]))

    def _put(self, row: Failure | Event) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self.n_dropped += 1
        else:
            self._waiting.append(row)

    def _run(self) -> None:
        while not self._stop.wait(IDLE_S):
            self._write()
        self._write()
        connections[self._using].close()

    def _write(self) -> None:
        rows = [self._waiting.popleft() for _ in range(len(self._waiting))]
        for model in (Failure, Event):
            self._write_group(model, [row for row in rows if isinstance(row, model)])

    def _write_group(self, model: type[Failure | Event], rows: list[Failure | Event]) -> None:
        """Write rows of one kind; when the database refuses the group, one by one, without the ones at fault."""
        if not rows:
            return
        try:
            model.objects.using(self._using).bulk_create(rows)  # type: ignore[arg-type]
            self._is_away = False
        except (OperationalError, InterfaceError) as error:
            connections[self._using].close()
            self._keep(rows, error)
        except Exception as error:  # noqa: BLE001 - whatever a row holds, the thread goes on
            if len(rows) == 1:
                self.n_dropped += 1
                log.error("a failure row could not be written: %s", type(error).__name__)
                return
            for row in rows:
                self._write_group(model, [row])

    def _keep(self, rows: list[Failure | Event], error: Exception) -> None:
        kept = rows[: max(MAX_WAITING - len(self._waiting), 0)]
        self._waiting.extendleft(reversed(kept))
        n_dropped = len(rows) - len(kept)
        self.n_dropped += n_dropped
        if n_dropped or not self._is_away:
            kind = type(error).__name__
            log.error("failure rows cannot be written (%s): %d wait, %d dropped", kind, len(kept), n_dropped)
        self._is_away = True
