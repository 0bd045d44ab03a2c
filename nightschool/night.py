"""The night: a persisted state machine that any worker can take up where another left it.

``building → training → loading → evaluating → admitting → done``, or ``skipped``, or ``failed`` with its reason. The
database allows one running night per student and one scheduled night per student and date.
"""

import logging
import traceback
from datetime import date, timedelta

from django.db import IntegrityError, InterfaceError, OperationalError, transaction
from django.db.models import Exists, OuterRef, Q

from common.claims import compare_and_set
from common.clock import Clock
from common.errors import RatchetError
from ledger.models import Night, Student
from ledger.vocabulary import NightState
from nightschool.context import NightContext
from nightschool.dataset import DatasetChanged
from nightschool.evaluation import EvaluationFailed
from nightschool.intervals import end_training
from nightschool.lease import Lease, TakenOver, Watch, claim, stale_nights
from nightschool.run import NightRun
from nightschool.steps import STEPS
from nightschool.trainers.base import TrainingFailed

log = logging.getLogger("ratchet.nights")

DISPATCH_GRACE = timedelta(seconds=30)
"""How long a started night waits for the worker it was sent to, before a sweep sends it again."""
LATE_START = timedelta(minutes=30)
"""How long after its time a night still starts when midnight (UTC) has passed since."""
MAX_ATTEMPTS = 5
SPEAKING_ERRORS = (RatchetError, TrainingFailed, EvaluationFailed, DatasetChanged)
"""Errors whose text is written for operators; of any other, only the class is kept (INV-12)."""
PASSING_ERRORS = (OperationalError, InterfaceError)
"""The database went away: nothing is known to be wrong with the night, which is resumed."""


def start_night(student_id: int, *, on: date, clock: Clock, is_scheduled: bool) -> Night | None:
    """Start a student's night; ``None`` when one is running, or one was scheduled for that date already.

    It only records the night; ``run_night`` does the work.
    """
    now = clock.now()
    try:
        with transaction.atomic():
            return Night.objects.create(
                student_id=student_id,
                on=on,
                is_scheduled=is_scheduled,
                held_until_at=now + DISPATCH_GRACE,
                started_at=now,
                updated_at=now,
            )
    except IntegrityError:
        return None


def start_due_nights(clock: Clock) -> list[Night]:
    """Start the scheduled night of every student whose time (UTC) has come and who had none; return them.

    It is today's; shortly after midnight also yesterday's, which a beat that comes once a minute, or one that was down
    for a moment, would otherwise never start for a student whose time is just before midnight.
    """
    now = clock.now()
    start_of_late = now - LATE_START
    started = _start_due(Q(night_at__lte=now.time()), on=now.date(), clock=clock)
    if start_of_late.date() < now.date():
        is_late = Q(night_at__gte=start_of_late.time(), created_at__lte=start_of_late)
        started += _start_due(is_late, on=start_of_late.date(), clock=clock)
    return started


def _start_due(is_due: Q, *, on: date, clock: Clock) -> list[Night]:
    had_one = Night.objects.filter(student=OuterRef("pk"), on=on, is_scheduled=True)
    due = Student.objects.filter(is_due, ~Exists(had_one), is_night_enabled=True)
    started = [start_night(student.pk, on=on, clock=clock, is_scheduled=True) for student in due]
    return [night for night in started if night is not None]


def resume_stale(clock: Clock) -> list[int]:
    """Take back the nights that lost their worker, or were never picked up, and return their ids for dispatch.

    A night that waits in a worker's queue is not sent again with every sweep, nor by two sweeps at once.
    """
    stale = stale_nights(clock.now())
    again_at = clock.now() + DISPATCH_GRACE
    ids = list(stale.order_by("pk").values_list("pk", flat=True))
    return [pk for pk in ids if compare_and_set(stale.filter(pk=pk), holder="", held_until_at=again_at)]


def run_night(night_id: int, context: NightContext, watch: Watch | None = None) -> Night:
    """Run a night to its end from wherever it stands, and return it.

    Returns it unchanged when another worker holds it or it has ended, and as it is when another worker takes it over
    meanwhile. Anything but an ``Exception`` (a kill, an interrupt), and a database that went away, leave it to be
    resumed.
    """
    lease = claim(night_id, context.clock, context.nights.hold_s, watch)
    if lease is not None:
        try:
            _run_steps(lease, context)
        except TakenOver:
            log.warning("night %s was taken over by another worker", night_id)
    return _read(night_id)


def _run_steps(lease: Lease, context: NightContext) -> None:
    night = _read(lease.night_id)
    if night.attempts > 1:
        _resume(night, lease)
    if night.attempts > MAX_ATTEMPTS:
        _fail(NightRun(night, lease, context), f"gave up: {MAX_ATTEMPTS} workers died while running it")
        return
    while night.is_running:
        run = NightRun(night, lease, context)
        try:
            STEPS[night.state](run)
        except (TakenOver, *PASSING_ERRORS):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a step does, the night ends with its reason
            frames = "".join(traceback.format_tb(error.__traceback__))
            log.error("night %s failed while %s: %s\n%s", night.pk, night.state, type(error).__name__, frames)
            _fail(run, _safe_text(error))
            return
        night = _read(lease.night_id)


def _resume(night: Night, lease: Lease) -> None:
    """Note the resumption; a training that a killed worker left open ended when that worker was last seen."""
    with transaction.atomic():
        lease.write(f"resumed ({night.state}), attempt {night.attempts}", updated_at=night.updated_at)
        if night.version is not None:
            end_training(night.version, at=night.updated_at)


def _fail(run: NightRun, reason: str) -> None:
    night = run.night
    outcome = f"{night.state}: {reason}"
    with transaction.atomic():
        run.lease.finish(NightState.FAILED, outcome)
        if night.version is not None:
            end_training(night.version, at=run.context.clock.now())
        run.event("night_failed", f"night of {night.on}: {outcome}", night.version)


def _safe_text(error: Exception) -> str:
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, SPEAKING_ERRORS) else kind


def _read(night_id: int) -> Night:
    return Night.objects.select_related("student", "version__student").get(pk=night_id)
