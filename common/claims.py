"""Claiming work by compare-and-set, the one idiom that is correct on every database engine."""

from typing import Any

from django.db.models import Model, QuerySet


def compare_and_set(rows: QuerySet[Model], **changes: Any) -> bool:
    """Update the one row that still matches ``rows``; return whether this caller won it."""
    return rows.update(**changes) == 1
