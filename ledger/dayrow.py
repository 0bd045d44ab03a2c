"""One row of the day table. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import date


@dataclass(frozen=True, slots=True)
class DayRow:
    """One student's UTC date, or the sum of several; money in nano-USD."""

    on: date
    n_requests: int = 0
    n_student_served: int = 0
    n_escalated: int = 0
    n_audited: int = 0
    n_audit_agree: int = 0
    n_stored: int = 0
    cost_nusd: int = 0
    baseline_nusd: int = 0

    @property
    def student_share(self) -> float | None:
        """Share of requests that the student served, or ``None`` on a day without requests."""
        return self.n_student_served / self.n_requests if self.n_requests else None

    @property
    def agreement(self) -> float | None:
        """Share of audits that agreed, or ``None`` without audits."""
        return self.n_audit_agree / self.n_audited if self.n_audited else None

    @property
    def saved_nusd(self) -> int:
        """What the teacher alone would have cost more; negative when the cascade cost more."""
        return self.baseline_nusd - self.cost_nusd

    @property
    def savings(self) -> float | None:
        """Savings as a share of the all-teacher cost, or ``None`` when that is zero."""
        return self.saved_nusd / self.baseline_nusd if self.baseline_nusd else None


SUMS = tuple(field.name for field in fields(DayRow) if field.name != "on")


def total(rows: Iterable[DayRow]) -> DayRow | None:
    """Return the sum of day rows, dated as the last one; ``None`` without rows."""
    listed = list(rows)
    if not listed:
        return None
    return DayRow(listed[-1].on, *(sum(getattr(row, name) for row in listed) for name in SUMS))
