"""Template filters: money and shares as people read them."""

from typing import Any

from django.template import Library

from common.money import format_usd
from ledger.charts import percent as format_percent

register = Library()

STATE_TONES = {
    "live": "success", "canary": "warning", "shadow": "info", "candidate": "info", "rejected": "danger",
    "rolled_back": "danger", "retired": "default", "done": "success", "failed": "danger", "skipped": "default",
}  # fmt: skip


@register.filter
def usd(nusd: int | None, places: int = 4) -> str:
    """Format nano-USD, e.g. ``$1.0930``; a dash for nothing."""
    return "-" if nusd is None else format_usd(nusd, places)


@register.filter
def percent(value: Any) -> str:
    """Format a share, e.g. ``97.5%``; a dash for nothing."""
    return format_percent(float(value)) if isinstance(value, int | float) else "-"


@register.filter
def tone(state: str) -> str:
    """Return the badge colour of a version's or a night's state; a running night's is ``info``."""
    return STATE_TONES.get(state, "info")


@register.filter
def words(value: str) -> str:
    """Write a vocabulary value as words, e.g. ``rolled back``."""
    return value.replace("_", " ")
