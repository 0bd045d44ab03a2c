"""The demo's day table, as lines of text."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from common.money import NUSD_PER_USD, format_usd
from ledger.dayrow import DayRow
from ledger.models import Event
from sim.demo.client import Outcome

NOTED_KINDS = ("shadow", "canary", "live", "rejected", "rollback", "retired", "alert", "task_disabled")
HEADER = "day  date        student  escal.  audit ok    true     $/1k  all-teacher  saved  moves"
LEGEND = (
    "student: share of requests the student served; audit ok: audited answers the teacher agreed with; "
    "true: answers of the student that carry the data set's own label."
)


def share(part: int, whole: int) -> str:
    """Format a share for the table, ``-`` of nothing."""
    return f"{100 * part / whole:.0f}%" if whole else "-"


def precision(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """Return how many student-served answers were right, and how many there were."""
    served = [outcome for outcome in outcomes if outcome.served_by == "student"]
    return sum(outcome.is_right for outcome in served), len(served)


def day_line(number: int, row: DayRow, outcomes: Sequence[Outcome], moves: Sequence[str]) -> str:
    """Return one day's line; money per thousand requests, in USD."""
    right, served = precision(outcomes)
    line = (
        f"{number:>3}  {row.on}  {share(row.n_student_served, row.n_requests):>7}  "
        f"{share(row.n_escalated, row.n_requests):>6}  {share(row.n_audit_agree, row.n_audited):>8}  "
        f"{share(right, served):>6}  {_per_thousand(row.cost_nusd, row):>7}  "
        f"{_per_thousand(row.baseline_nusd, row):>11}  {share(row.saved_nusd, row.baseline_nusd):>5}"
    )
    return f"{line}  {'; '.join(moves)}".rstrip()


def _per_thousand(nusd: int, row: DayRow) -> str:
    return f"{nusd * 1000 / row.n_requests / NUSD_PER_USD:.3f}"


def moves_of(on: date) -> list[str]:
    """Return the release moves of a date, each up to its reason, e.g. ``v1: canary 10%``."""
    events = Event.objects.filter(on=on, kind__in=NOTED_KINDS).order_by("id")
    return [":".join(event.detail.split(":")[:2]) for event in events]


def totals(summary: Mapping[str, Any]) -> str:
    """Return the line under the table: what it cost, and what the teacher alone would have cost."""
    cost, baseline = summary["cost_nusd"], summary["all_teacher_nusd"]
    return (
        f"{summary['requests']} requests cost {format_usd(cost)}; the teacher alone would have cost "
        f"{format_usd(baseline)}; saved {share(baseline - cost, baseline)}"
    )
