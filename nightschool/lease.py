"""Holding a night: one worker at a time, claimed and renewed by compare-and-set (INV-29).

Every write of a running night goes through its lease, so a worker that lost the night can write nothing more.
"""

import os
import socket
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db.models import F, Q, QuerySet

from common.claims import compare_and_set
from common.clock import Clock
from ledger.models import Night
from ledger.vocabulary import NIGHT_STEPS, NightState

PROGRESS_EVERY = timedelta(seconds=1)
MAX_HOLD = timedelta(hours=2)
"""No lease is held further ahead than this (``RATCHET_NIGHT_HOLD_S`` is an hour at most): one that seems to be was
written while a clock was wrong, and would keep its student from every night until then."""
MAX_LOG_LINES = 500
DETAIL_MAX = 200

Watch = Callable[[int, int, str], None]
"""``watch(done, total, detail)``: sees every progress report, for a terminal."""


class TakenOver(Exception):
    """Another worker holds the night now; this one stops."""


class Lease:
    """The right to write one night, until it runs out."""

    def __init__(self, night: Night, clock: Clock, hold_s: int, watch: Watch | None = None) -> None:
        self.night_id = night.pk
        self._holder = night.holder
        self._clock = clock
        self._hold = timedelta(seconds=hold_s)
        self._watch = watch
        self._log: list[dict[str, str]] = list(night.log)
        self._every = min(PROGRESS_EVERY, self._hold / 4)
        self._renew_at = clock.now()

    def write(self, line: str = "", **changes: Any) -> None:
        """Change the night and renew the lease; raises ``TakenOver`` when the night is not ours any more.

        In a transaction this also locks the night's row until the end, so that nobody can take it over in between.
        ``line`` is added to the night's log.
        """
        now = self._clock.now()
        values = {"holder": self._holder, "held_until_at": now + self._hold, "updated_at": now, **changes}
        if line:
            self._log = [*self._log, {"at": now.isoformat(timespec="seconds"), "line": line}][-MAX_LOG_LINES:]
            values["log"] = self._log
        if not compare_and_set(Night.objects.filter(self._is_ours()), **values):
            raise TakenOver(f"night {self.night_id}")
        self._renew_at = now + self._every

    def move(self, state: NightState, line: str, **changes: Any) -> None:
        """Enter the next step."""
        self.write(line, state=state, done=0, total=0, detail="", **changes)

    def finish(self, state: NightState, outcome: str) -> None:
        """Reach an end and give the lease up."""
        outcome = outcome[:DETAIL_MAX]
        self.write(
            f"{state}: {outcome}",
            state=state,
            outcome=outcome,
            detail="",
            finished_at=self._clock.now(),
            holder="",
            held_until_at=None,
        )

    def progress(self, done: int, total: int, detail: str) -> None:
        """Report progress within the step and renew the lease; cheap to call often."""
        if self._watch is not None:
            self._watch(done, total, detail)
        # A clock that was set back must not keep the lease from being renewed until it has caught up.
        is_fresh = self._renew_at - self._every <= self._clock.now() < self._renew_at
        if not is_fresh or done == total:
            self.write(done=done, total=total, detail=detail[:DETAIL_MAX])

    def _is_ours(self) -> Q:
        return Q(pk=self.night_id, holder=self._holder, state__in=NIGHT_STEPS)


def claim(night_id: int, clock: Clock, hold_s: int, watch: Watch | None = None) -> Lease | None:
    """Claim a running night that nobody holds, or whose holder let its lease run out; ``None`` when there is none.

    ``updated_at`` is left alone: until the first write it says when the previous holder was last seen.
    """
    now = clock.now()
    holder = f"{socket.gethostname()[:30]}:{os.getpid()}:{uuid4().hex[:12]}"
    unheld = Night.objects.filter(free_nights(now), pk=night_id)
    if not compare_and_set(
        unheld, holder=holder, held_until_at=now + timedelta(seconds=hold_s), attempts=F("attempts") + 1
    ):
        return None
    return Lease(Night.objects.get(pk=night_id), clock, hold_s, watch)


def free_nights(now: datetime) -> Q:
    """Running nights that may be claimed."""
    return Q(state__in=NIGHT_STEPS) & (Q(holder="") | _is_left(now))


def stale_nights(now: datetime) -> QuerySet[Night]:
    """Return the running nights that nobody works on: never picked up, or left behind by a worker that died."""
    return Night.objects.filter(Q(state__in=NIGHT_STEPS) & _is_left(now))


def _is_left(now: datetime) -> Q:
    return Q(held_until_at=None) | Q(held_until_at__lte=now) | Q(held_until_at__gt=now + MAX_HOLD)
