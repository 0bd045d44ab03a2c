"""The operators' runtime switches as one typed value; a missing or unreadable row is its default."""

from collections.abc import Mapping
from dataclasses import dataclass

from ledger.models import RuntimeFlag
from ledger.vocabulary import Flag

ON, OFF, DEFAULT = "on", "off", "default"


@dataclass(frozen=True, slots=True)
class Switches:
    """The switches at a moment. ``audit_rate`` of ``None`` is the configured rate."""

    student_disabled: bool = False
    releases_frozen: bool = False
    training_paused: bool = False
    audit_rate: float | None = None

    @property
    def may_start_canary(self) -> bool:
        """Whether a version may start taking traffic: without audits it could not be held to anything."""
        return not self.releases_frozen and self.audit_rate != 0


def parse_switches(rows: Mapping[str, str]) -> Switches:
    """Read stored values by name; one that was written by hand and cannot be read counts as the default."""
    return Switches(
        student_disabled=rows.get(Flag.STUDENT_DISABLED) == ON,
        releases_frozen=rows.get(Flag.RELEASES_FROZEN) == ON,
        training_paused=rows.get(Flag.TRAINING_PAUSED) == ON,
        audit_rate=parse_rate(rows.get(Flag.AUDIT_RATE, DEFAULT)),
    )


def read_switches() -> Switches:
    """Read the switches from the database (one query)."""
    return parse_switches(dict(RuntimeFlag.objects.values_list("name", "value")))


def parse_rate(text: str) -> float | None:
    """Return a rate from 0 to 1, or ``None`` for anything else."""
    try:
        rate = float(text)
    except ValueError:
        return None
    return rate if 0.0 <= rate <= 1.0 else None
