"""How far a night is, as pages and the progress endpoint show it."""

from typing import Any

from ledger.models import Night
from ledger.vocabulary import NIGHT_STEPS, NightState


def night_progress(night: Night) -> dict[str, Any]:
    """Return a JSON-ready view of a night: a bar per step, what it does now, its log and its outcome.

    A failed night's outcome starts with the step it failed in; a skipped one ends in its first step.
    """
    return {
        "state": night.state,
        "is_running": night.is_running,
        "steps": [_step(night, index, step) for index, step in enumerate(NIGHT_STEPS)],
        "detail": night.detail or night.outcome,
        "log": [f"{entry.get('at', '')}  {entry.get('line', '')}" for entry in night.log],
        "outcome": night.outcome,
        "version": night.version_id,
    }


def _step(night: Night, index: int, step: NightState) -> dict[str, Any]:
    if night.state == NightState.DONE:
        return _bar(step, "done", 100)
    at = NIGHT_STEPS.index(_reached(night))
    if index != at:
        return _bar(step, "done", 100) if index < at else _bar(step, "todo", 0)
    pct = min(100, 100 * night.done // night.total) if night.total else 0
    status = "now" if night.is_running else str(night.state)
    return _bar(step, status, pct, f"{night.done} of {night.total}" if night.total else "")


def _reached(night: Night) -> NightState:
    step = night.state if night.is_running else night.outcome.partition(":")[0]
    return NightState(step) if step in NIGHT_STEPS else NightState.BUILDING


def _bar(step: NightState, status: str, pct: int, count: str = "") -> dict[str, Any]:
    return {"name": step.value, "status": status, "pct": pct, "count": count}
