"""Writing the release log. Details are for operators and never hold request or answer text (INV-12)."""

from django.db import transaction

from common.clock import Clock
from ledger.locks import lock_student
from ledger.models import Event

DETAIL_MAX = 500


def record_event(
    kind: str, detail: str, *, clock: Clock, student_id: int | None = None, version_id: int | None = None
) -> Event:
    """Append one event, in the caller's transaction if there is one; a detail over 500 characters is cut."""
    now = clock.now()
    return Event.objects.create(
        at=now, on=now.date(), kind=kind, student_id=student_id, version_id=version_id, detail=_clip(detail)
    )


def event_once(kind: str, detail: str, *, clock: Clock, student_id: int, version_id: int) -> bool:
    """Append an event unless one of this kind exists for the version; return whether it was written.

    Holds the student's row lock, so that of any number of processes exactly one writes it (INV-29).
    """
    with transaction.atomic():
        lock_student(student_id)
        if Event.objects.filter(kind=kind, version_id=version_id).exists():
            return False
        record_event(kind, detail, clock=clock, student_id=student_id, version_id=version_id)
    return True


def _clip(detail: str) -> str:
    return detail if len(detail) <= DETAIL_MAX else detail[: DETAIL_MAX - 1] + "…"
