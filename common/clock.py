"""Time comes from an injected clock, so that simulations and tests own it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Protocol


class Clock(Protocol):
    """Anything that knows the current time."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC."""
        ...


class SystemClock:
    """The machine's wall clock."""

    def now(self) -> datetime:
        """Return the wall-clock time in UTC."""
        return datetime.now(UTC)


@dataclass
class ManualClock:
    """A clock that moves only when told to (simulations and tests)."""

    at: datetime

    def now(self) -> datetime:
        """Return the time it was last set to."""
        return self.at

    def advance(self, delta: timedelta) -> None:
        """Move the clock forward by ``delta``."""
        self.at += delta


def clock_from_path(path: str) -> Clock:
    """Build the clock named by a dotted path (``package.module.factory``), as Django does for e-mail back ends.

    Raises ``ValueError`` naming the path when it cannot be imported.
    """
    module, _, attribute = path.rpartition(".")
    try:
        factory: Callable[[], Clock] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"RATCHET_CLOCK: cannot import {path!r} ({error})") from error
    return factory()
