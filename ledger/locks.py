"""Row locks that serialise decisions, the same way on both engines."""

from django.db import transaction

from ledger.models import Student


def lock_student(student_id: int) -> Student:
    """Take the student's row lock until the transaction ends, and return the row as it is now.

    On PostgreSQL the lock leaves inserts that reference the student free. SQLite has no row locks: there the caller's
    transaction, which must be the IMMEDIATE one of the settings, holds the whole file. Raises ``Student.DoesNotExist``,
    and ``TransactionManagementError`` outside a transaction.
    """
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError("lock_student needs a transaction")
    return Student.objects.select_for_update(no_key=True).get(pk=student_id)


def lock_all_students() -> None:
    """Take every student's row lock, in key order, until the transaction ends."""
    list(Student.objects.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
