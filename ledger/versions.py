"""Creating versions. Only ``release`` moves them afterwards."""

from datetime import datetime

from django.db import transaction
from django.db.models import Max

from ledger.locks import lock_student
from ledger.models import Version


def create_candidate(student_id: int, *, at: datetime, dataset_sha256: str = "") -> Version:
    """Create the student's next version, a candidate with the adapter name ``<student>-v<number>``.

    Holds the student's row lock, so that two callers never take the same number.
    """
    with transaction.atomic():
        student = lock_student(student_id)
        number = (student.versions.aggregate(last=Max("number"))["last"] or 0) + 1
        return Version.objects.create(
            student=student,
            number=number,
            adapter=f"{student.name}-v{number}",
            base_model=student.base_model,
            dataset_sha256=dataset_sha256,
            stage_since_at=at,
            created_at=at,
        )
