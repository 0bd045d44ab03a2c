"""What a simulation found, read from its ledger once it is over."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ledger.dayrow import DayRow, total
from ledger.daytable import day_table
from ledger.models import Event, Version
from ledger.vocabulary import VersionState
from sim.scenario import FIRST_DAY, Scenario

NOTICE = "Simulation: mock models and synthetic traffic; these numbers are not measurements."
HEADER = "day  student  escal. audit ok     $/1k all-teacher  saved"

_OUTCOMES = {
    VersionState.REJECTED: "rejected before deploy",
    VersionState.ROLLED_BACK: "rolled back",
    VersionState.RETIRED: "retired before it was live",
}


@dataclass(frozen=True, slots=True)
class SimulatedEvent:
    """One line of the event log, dated by the simulation's own days."""

    day: int
    kind: str
    version: int | None
    detail: str


def day_line(number: int, row: DayRow) -> str:
    """Return one row of the day table, under ``HEADER``."""
    cost, baseline = (nusd / row.n_requests / 1e6 for nusd in (row.cost_nusd, row.baseline_nusd))
    escalated = row.n_escalated / row.n_requests
    return (
        f"{number:3d}  {_percent(row.student_share):>7} {_percent(escalated):>7} {_percent(row.agreement):>8} "
        f"{cost:8.3f} {baseline:11.3f} {_percent(row.savings):>6}"
    )


def event_log() -> list[SimulatedEvent]:
    """Return the whole event log, oldest first."""
    rows = Event.objects.order_by("pk").values_list("on", "kind", "version__number", "detail")
    return [
        SimulatedEvent((on - FIRST_DAY.date()).days + 1, kind, version, detail) for on, kind, version, detail in rows
    ]


def results(scenario: Scenario, seed: int) -> dict[str, Any]:
    """Return the run's results: shares are fractions, money is nano-USD."""
    rows, events, bad = day_table(days=None), event_log(), scenario.bad_deploy_version
    states = dict(Version.objects.values_list("number", "state"))
    whole = total(rows)
    if whole is None:
        raise ValueError("the simulation served no request")
    return {
        "notice": NOTICE,
        "seed": seed,
        "inputs": scenario.inputs,
        "final_student_share": rows[-1].student_share,
        "final_day_savings": rows[-1].savings,
        "total_savings": whole.savings,
        "min_audited_agreement": min((row.agreement for row in rows if row.agreement is not None), default=None),
        "bad_version_outcome": bad_version_outcome(bad, states.get(bad), events),
        "requests": whole.n_requests,
        "cost_nusd": whole.cost_nusd,
        "all_teacher_nusd": whole.baseline_nusd,
        "days": [_day(row) for row in rows],
        "events": [
            {"day": event.day, "kind": event.kind, "version": event.version, "detail": event.detail} for event in events
        ],
        "versions": [_version(version, events) for version in Version.objects.order_by("number")],
    }


def bad_version_outcome(number: int, state: str | None, events: Sequence[SimulatedEvent]) -> str | None:
    """Say what became of the corrupted version, given its final state; ``None`` when none was to be corrupted.

    A version that was live at any time is ``live``, whatever happened later.
    """
    if number == 0:
        return None
    if state is None:
        return "never trained"
    if any(event.version == number and event.kind == VersionState.LIVE for event in events):
        return "live"
    return _OUTCOMES.get(VersionState(state), f"still in {state}")


def _day(row: DayRow) -> dict[str, Any]:
    return {
        "day": (row.on - FIRST_DAY.date()).days + 1,
        "requests": row.n_requests,
        "student_served": row.n_student_served,
        "escalated": row.n_escalated,
        "audited": row.n_audited,
        "audits_agreed": row.n_audit_agree,
        "cost_nusd": row.cost_nusd,
        "all_teacher_nusd": row.baseline_nusd,
        "student_share": row.student_share,
        "audited_agreement": row.agreement,
        "savings": row.savings,
    }


def _version(version: Version, events: list[SimulatedEvent]) -> dict[str, Any]:
    return {
        "number": version.number,
        "state": version.state,
        "train_examples": version.train_examples,
        "history": [
            {"day": event.day, "kind": event.kind, "detail": event.detail}
            for event in events
            if event.version == version.number
        ],
    }


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
