"""Changing a student's settings: validated, audited, in one transaction."""

from typing import Any

from django.db import transaction

from common.clock import Clock
from common.errors import Refused
from ledger.models import AdminAction, Student
from release.gate import policy_of
from release.policy import ReleasePolicy

AUDITED = (
    "base_model", "backend", "trainer", "endpoints", "samples", "temperature", "policy", "is_night_enabled", "night_at",
)  # fmt: skip


def save_student(student: Student, *, actor: str, clock: Clock, policy: ReleasePolicy) -> None:
    """Create or change a student; a save that changes nothing writes nothing.

    Raises ``Refused`` naming a release policy override that is unknown or out of range.
    """
    if not isinstance(student.policy, dict):
        raise Refused(f"student {student.name}: the release policy overrides must be an object")
    policy_of(student, policy)
    with transaction.atomic():
        stored = Student.objects.select_for_update(no_key=True).filter(pk=student.pk).first() if student.pk else None
        before, after = _columns(stored), _columns(student)
        if before == after:
            return
        changed = [column for column in AUDITED if before.get(column) != after[column]]
        now = clock.now()
        if stored is None:
            student.created_at = now
        student.save()
        AdminAction.objects.create(
            at=now,
            actor=actor,
            action="save_student",
            target=student.name,
            before={column: before[column] for column in changed if column in before},
            after={column: after[column] for column in changed},
        )


def _columns(student: Student | None) -> dict[str, Any]:
    if student is None:
        return {}
    columns = {column: getattr(student, column) for column in AUDITED}
    return columns | {"night_at": student.night_at.isoformat()}
