"""What the demo promises, measured: the summary document, the recount from the rows, and the promises that failed."""

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.dayrow import DayRow
from ledger.daytable import day_table
from ledger.models import Event, Version
from ledger.recount import recount
from sim.demo.replay import ReplayedDay
from sim.demo.table import precision

MIN_STUDENT_SHARE = 0.60
MIN_AGREEMENT = 0.95
MIN_TRUE_PRECISION = 0.96


def summarise(days: Sequence[ReplayedDay], teacher: str, wall_s: float) -> dict[str, Any]:
    """Return the summary document (docs/demo.md explains its fields)."""
    rows = {row.on: row for row in day_table(days=None)}
    last = rows[days[-1].on]
    replayed = [rows[day.on] for day in days]
    cost, baseline = sum(row.cost_nusd for row in replayed), sum(row.baseline_nusd for row in replayed)
    return {
        "teacher": teacher,
        "days": len(days),
        "requests": sum(row.n_requests for row in replayed),
        "student_share_last_day": last.student_share,
        "audited_agreement_last_day": last.agreement,
        "true_precision": _ratio(*precision([outcome for day in days for outcome in day.outcomes])),
        "true_precision_last_day": _ratio(*precision(days[-1].outcomes)),
        "cost_nusd": cost,
        "all_teacher_nusd": baseline,
        "saved_nusd": baseline - cost,
        "wall_s": round(wall_s, 1),
        "versions": [_version(version) for version in Version.objects.select_related("student").order_by("pk")],
        "nights": [{"on": str(day.on), "outcome": day.night} for day in days],
        "day_table": [_day(day, rows[day.on]) for day in days],
        "recount_differences": [str(difference) for difference in recount()],
    }


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _day(day: ReplayedDay, row: DayRow) -> dict[str, Any]:
    right, _ = precision(day.outcomes)
    return {
        "day": day.number,
        "on": str(day.on),
        "requests": row.n_requests,
        "student_served": row.n_student_served,
        "student_right": right,
        "escalated": row.n_escalated,
        "audited": row.n_audited,
        "audit_agree": row.n_audit_agree,
        "cost_nusd": row.cost_nusd,
        "all_teacher_nusd": row.baseline_nusd,
    }


def _version(version: Version) -> dict[str, Any]:
    events = Event.objects.filter(version=version).order_by("id")
    return {
        "version": version.adapter,
        "number": version.number,
        "state": version.state,
        "traffic_pct": version.traffic_pct,
        "history": [{"at": event.at.isoformat(), "kind": event.kind, "detail": event.detail} for event in events],
    }


def broken_promises(summary: Mapping[str, Any]) -> list[str]:
    """Return what the demo promises and this summary does not show; empty when everything was met."""
    promises = [
        ("student_share_last_day", MIN_STUDENT_SHARE),
        ("audited_agreement_last_day", MIN_AGREEMENT),
        ("true_precision_last_day", MIN_TRUE_PRECISION),
    ]
    broken = [
        f"{name} is {summary[name]}, promised at least {low}"
        for name, low in promises
        if summary[name] is None or summary[name] < low
    ]
    if not any(event["kind"] == "live" for version in summary["versions"] for event in version["history"]):
        broken.append("no version went live on shadow or canary evidence")
    return broken + [f"the recount differs: {line}" for line in summary["recount_differences"]]
