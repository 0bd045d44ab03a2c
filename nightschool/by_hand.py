"""Starting a night by hand: the night, its audit row and its event in one transaction."""

from django.db import transaction

from common.clock import Clock
from common.errors import Refused
from ledger.events import record_event
from ledger.models import Night, Student
from ledger.switches import read_switches
from ledger.vocabulary import IN_FLIGHT, NIGHT_STEPS
from nightschool.night import start_night
from release.operator import Intent
from release.operator.intent import record_action


def why_not_now(student: Student) -> str | None:
    """Return why a night of this student would train nothing now, or ``None``."""
    if read_switches().training_paused:
        return "training is paused by an operator"
    running = student.nights.filter(state__in=NIGHT_STEPS).first()
    if running is not None:
        return f"the {running} has not ended"
    in_flight = student.versions.filter(state__in=IN_FLIGHT).first()
    return f"v{in_flight.number} is in flight ({in_flight.state}); no night trains meanwhile" if in_flight else None


def run_now(student: Student, intent: Intent, *, clock: Clock) -> Night:
    """Record a night that starts now, beside the scheduled ones; the caller dispatches it.

    Raises ``Refused`` when a night would train nothing, or another one runs.
    """
    reason = why_not_now(student)
    if reason:
        raise Refused(reason)
    with transaction.atomic():
        night = start_night(student.pk, on=clock.now().date(), clock=clock, is_scheduled=False)
        if night is None:
            raise Refused(f"another night of {student} has just started")
        after = {"night": night.pk, "on": night.on.isoformat()}
        record_action("run_night", str(student), intent, before={}, after=after, clock=clock)
        record_event("admin", f"night of {night.on} started by hand: {intent}", clock=clock, student_id=student.pk)
    return night
