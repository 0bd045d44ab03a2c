"""The day table: what was asked, who served it, how it was judged and what it cost, per UTC date (from the rollups)."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from django.db.models import QuerySet, Sum
from django.db.models.functions import TruncDate

from ledger.dayrow import SUMS, DayRow
from ledger.models import HourlyRollup, Student

DEFAULT_DAYS = 14


def day_table(student: Student | None = None, days: int | None = DEFAULT_DAYS) -> list[DayRow]:
    """Return a student's (or everyone's) day rows, oldest first; dates without requests are left out.

    ``days`` counts back from the newest hour with traffic, so an idle system still shows its last days; ``None`` means
    the whole history.
    """
    rollups = HourlyRollup.objects.all() if student is None else HourlyRollup.objects.filter(student=student)
    if days is not None:
        rollups = _last_days(rollups, days)
    grouped = (
        rollups.annotate(on=TruncDate("hour_at", tzinfo=UTC))
        .order_by("on")
        .values("on")
        .annotate(**{f"sum_{name}": Sum(name) for name in SUMS})
    )
    rows = cast("Iterable[dict[str, Any]]", grouped)
    return [DayRow(row["on"], *(int(row[f"sum_{name}"]) for name in SUMS)) for row in rows]


def _last_days(rollups: QuerySet[HourlyRollup], days: int) -> QuerySet[HourlyRollup]:
    newest: datetime | None = rollups.order_by("-hour_at").values_list("hour_at", flat=True).first()
    if newest is None:
        return rollups.none()
    first = (newest - timedelta(days=days - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return rollups.filter(hour_at__gte=first)


def recent_values(column: str, days: int = 30) -> list[str]:
    """Return the distinct values of a rollup key column (``task``, ``route``, ``client``) in the last ``days``."""
    recent = _last_days(HourlyRollup.objects.all(), days)
    return sorted(recent.order_by().values_list(column, flat=True).distinct())
