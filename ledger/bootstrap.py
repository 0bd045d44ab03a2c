"""What every ledger starts with: the default student, the default task, the state epoch."""

from datetime import UTC, datetime
from typing import Any

from ledger.taskspec import parse_spec
from ledger.vocabulary import DEFAULT_STUDENT, DEFAULT_TASK, TaskSource


def ensure_defaults(student_model: Any, task_model: Any, epoch_model: Any) -> None:
    """Create the first rows if they are missing. Takes the models, so that the first migration can call it."""
    now = datetime.now(UTC)
    epoch_model.objects.get_or_create(pk=1, defaults={"value": 0})
    student, _ = student_model.objects.get_or_create(
        name=DEFAULT_STUDENT,
        defaults={
            "base_model": "linear-text-classifier",
            "backend": "classifier",
            "trainer": "classifier",
            "created_at": now,
        },
    )
    spec = parse_spec(DEFAULT_TASK, {})
    task_model.objects.get_or_create(
        name=DEFAULT_TASK,
        defaults={
            "student": student,
            "spec": spec.document,
            "spec_hash": spec.spec_hash,
            "source": TaskSource.BUILTIN,
            "created_at": now,
            "updated_at": now,
        },
    )
