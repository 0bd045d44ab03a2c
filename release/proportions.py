"""Comparing and printing proportions. Pure."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

# Proportions are quotients of small counts; a difference of this size is rounding, not evidence.
ROUNDING = 1e-9


def is_below(value: float, floor: float) -> bool:
    """Whether ``value`` is under ``floor`` by more than floating-point rounding."""
    return value < floor - ROUNDING


def percent(value: float) -> str:
    """Print a proportion for people, e.g. ``95.0%``."""
    return f"{100 * value:.1f}%"


def number(document: Mapping[str, Any], name: str) -> float | None:
    """Return a finite number of a JSON document, or ``None`` when it holds anything else there."""
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return float(value)
