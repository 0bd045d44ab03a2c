"""The beat table: every periodic task in one place, kept as rows that operators edit in the admin.

The rows are the truth: ``sync_schedule`` creates the missing ones and changes none. The stock scheduler of
django-celery-beat writes the configured table over the rows at every start, which would undo an operator's edits.
"""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from celery.schedules import schedstate
from celery.utils.time import maybe_make_aware
from django.db import transaction
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler, ModelEntry

EXPIRES_AFTER_INTERVALS = 3
EXPIRES_MIN_S = 10
SET_BACK_S = 1.0


@dataclass(frozen=True, slots=True)
class BeatEntry:
    """One periodic task. ``every_s`` is its interval in seconds when its row is first created."""

    name: str
    task: str
    queue: str
    every_s: int
    purpose: str


BEAT = (
    BeatEntry("release tick", "release.tick", "gate", 5, "Move releases as far as the evidence goes."),
    BeatEntry("sweep checks", "gateway.sweep_checks", "checks", 15, "Settle audits and shadows that were left behind."),
    BeatEntry("retry spool", "gateway.retry_spool", "maintenance", 60, "Write rows that the ledger refused earlier."),
    BeatEntry(
        "reconcile adapters", "gateway.reconcile_adapters", "maintenance", 30, "Load adapters that endpoints lost."
    ),
    BeatEntry(
        "start due nights", "nightschool.start_due_nights", "maintenance", 60, "Start nights whose time has come."
    ),
    BeatEntry(
        "resume nights", "nightschool.resume_nights", "maintenance", 15, "Go on with nights that lost their worker."
    ),
)


def sync_schedule() -> list[str]:
    """Create the rows of the beat table that are missing, and return their names; existing rows stay as they are."""
    return [entry.name for entry in BEAT if _ensure(entry)]


def _ensure(entry: BeatEntry) -> bool:
    with transaction.atomic():
        if PeriodicTask.objects.filter(name=entry.name).exists():
            return False
        period = {"every": entry.every_s, "period": IntervalSchedule.SECONDS}
        interval = IntervalSchedule.objects.filter(**period).first() or IntervalSchedule.objects.create(**period)
        _, is_created = PeriodicTask.objects.get_or_create(
            name=entry.name,
            defaults={
                "task": entry.task,
                "queue": entry.queue,
                "interval": interval,
                "description": entry.purpose,
                # A tick that waited for several intervals is redundant: without it, a worker that comes back finds no
                # backlog.
                "expire_seconds": max(EXPIRES_MIN_S, EXPIRES_AFTER_INTERVALS * entry.every_s),
            },
        )
        return bool(is_created)


class Entry(ModelEntry):
    """A row of the schedule. A last run in the future was written under a clock that was wrong: it counts as now."""

    last_run_at: datetime

    def is_due(self) -> schedstate:
        """Say whether it is due, and in how many seconds to ask again."""
        self.last_run_at = min(maybe_make_aware(self.last_run_at), self._default_now())
        return super().is_due()


class Scheduler(DatabaseScheduler):
    """Reads the rows of the beat table, after creating the missing ones, and survives a clock that is set back."""

    Entry = Entry
    _wall_ahead_s = float("-inf")

    def setup_schedule(self) -> None:
        """Create missing rows instead of resetting the existing ones."""
        sync_schedule()

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Run one due task; start over from the rows when the clock was set back.

        Otherwise every task, and every edit of a row, waits until the clock is again where it was: an hour, or years.
        """
        ahead_s = time.time() - time.monotonic()
        if ahead_s < self._wall_ahead_s - SET_BACK_S:
            self.sync()
            self._initial_read, self._last_timestamp, self._heap = True, None, None
        self._wall_ahead_s = ahead_s
        return float(super().tick(*args, **kwargs))
