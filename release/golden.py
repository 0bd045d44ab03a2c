"""The golden gate's checks, on whole evaluations and per task, and disabled tasks. Pure.

An evaluation holds ``precision``, ``coverage``, ``threshold``, ``test_n`` and, per task, ``tasks`` records of the same
numbers with the ``spec_hash`` they were measured under. Precision is that of the held-out answers it would serve.
"""

from collections.abc import Mapping
from typing import Any

from gateway.cascade.types import SERVE_NOTHING
from release.policy import ReleasePolicy
from release.proportions import is_below, number, percent

Evaluation = Mapping[str, Any]


def golden_problem(evaluation: Evaluation, live: Evaluation | None, policy: ReleasePolicy) -> str | None:
    """Return why the candidate's global numbers reject it, or ``None``."""
    floors = (("precision", policy.min_precision), ("coverage", policy.min_coverage))
    for name, floor in floors:
        value = number(evaluation, name)
        if value is None:
            return f"golden {name} was not measured"
        if is_below(value, floor):
            return f"golden {name} {percent(value)}{_counted(evaluation, name)} is below {percent(floor)}"
    return None if live is None else _regression(evaluation, live, policy)


def _regression(evaluation: Evaluation, live: Evaluation, policy: ReleasePolicy) -> str | None:
    for name in ("precision", "coverage"):
        value, reference = number(evaluation, name), number(live, name)
        if value is None or reference is None:
            return f"the live version has no golden {name} to compare with"
        if is_below(value, reference - policy.tolerance):
            return (
                f"golden {name} {percent(value)}{_counted(evaluation, name)} is more than "
                f"{percent(policy.tolerance)} below live's {percent(reference)}"
            )
    return None


def task_failures(evaluation: Evaluation, live: Evaluation | None, policy: ReleasePolicy) -> dict[str, str]:
    """Return the tasks to disable on the candidate, with the reasons: the global rule, on each task's own rows."""
    references = task_records(live or {})
    failures = {}
    for name, record in task_records(evaluation).items():
        if _answers(record) and (number(record, "test_n") or 0) >= policy.min_task_test_n:
            reason = _task_failure(record, references.get(name, {}), policy)
            if reason:
                failures[name] = reason
    return failures


def _task_failure(record: Evaluation, live: Evaluation, policy: ReleasePolicy) -> str | None:
    precision = number(record, "precision")
    if not number(record, "coverage") or precision is None:
        return f"answers none of its {number(record, 'test_n'):.0f} held-out rows"
    own_floor = number(record, "min_precision")
    floor = policy.min_precision if own_floor is None else own_floor
    measured = f"golden precision {percent(precision)}{_counted(record, 'precision')}"
    if is_below(precision, floor):
        return f"{measured} is below {percent(floor)}"
    reference = number(live, "precision") if _is_comparable(record, live, policy) else None
    if reference is not None and is_below(precision, reference - policy.tolerance):
        return f"{measured} is more than {percent(policy.tolerance)} below live's {percent(reference)}"
    return None


def _is_comparable(record: Evaluation, live: Evaluation, policy: ReleasePolicy) -> bool:
    return (
        _answers(live)
        and bool(number(live, "coverage"))
        and (number(live, "test_n") or 0) >= policy.min_task_test_n
        and live.get("spec_hash") == record.get("spec_hash")
    )


def too_little_left(evaluation: Evaluation, disabled: Mapping[str, str], policy: ReleasePolicy) -> str | None:
    """Return why a candidate with per-task records would serve too little without ``disabled``, or ``None``.

    It would wait for evidence for ever, and no night trains meanwhile.
    """
    records = task_records(evaluation)
    if not records:
        return None
    held_out = sum(number(record, "test_n") or 0.0 for record in records.values())
    answered = sum(
        (number(record, "test_n") or 0.0) * (number(record, "coverage") or 0.0)
        for name, record in records.items()
        if name not in disabled and _answers(record)
    )
    share = answered / held_out if held_out else 0.0
    if not is_below(share, policy.min_coverage):
        return None
    without = f" without {', '.join(f'{name} ({reason})' for name, reason in disabled.items())}" if disabled else ""
    return (
        f"would answer {percent(share)} of {held_out:.0f} held-out rows at its tasks' thresholds{without}, "
        f"below {percent(policy.min_coverage)}"
    )


def task_records(evaluation: Evaluation) -> dict[str, Evaluation]:
    """Return the per-task records of an evaluation by name, sorted; anything that is not a record is left out."""
    tasks = evaluation.get("tasks")
    if not isinstance(tasks, Mapping):
        return {}
    return {name: tasks[name] for name in sorted(tasks) if isinstance(tasks[name], Mapping)}


def disable_tasks(evaluation: Evaluation, disabled: Mapping[str, str]) -> dict[str, Any]:
    """Return the evaluation with ``disabled`` tasks held back: a threshold that nothing reaches, and the reason."""
    if not disabled:
        return dict(evaluation)
    records = task_records(evaluation)
    held = {
        name: {**records.get(name, {}), "threshold": SERVE_NOTHING, "disabled": reason}
        for name, reason in disabled.items()
    }
    return {**evaluation, "tasks": {**records, **held}}


def keep_disabled(old: Evaluation, new: Evaluation) -> dict[str, Any]:
    """Return a re-scored evaluation in which the tasks that ``old`` disabled stay disabled, record or no record."""
    held = {name: record for name, record in task_records(old).items() if record.get("disabled")}
    kept = disable_tasks(new, {name: str(record["disabled"]) for name, record in held.items()})
    for name in held.keys() - task_records(new).keys():
        kept["tasks"][name] = dict(held[name])
    return kept


def summary(evaluation: Evaluation) -> str:
    """Describe an evaluation to an operator in one clause."""
    precision, coverage = number(evaluation, "precision") or 0.0, number(evaluation, "coverage") or 0.0
    return f"golden precision {percent(precision)}{_counted(evaluation, 'precision')}, coverage {percent(coverage)}"


def _answers(record: Evaluation) -> bool:
    threshold = number(record, "threshold")
    return threshold is not None and threshold < SERVE_NOTHING and not record.get("disabled")


def _counted(record: Evaluation, name: str) -> str:
    """Return the rows behind a proportion, when the evaluation says how many were held out."""
    test_n, coverage, precision = number(record, "test_n"), number(record, "coverage"), number(record, "precision")
    if not test_n or coverage is None or precision is None:
        return ""
    answered = round(test_n * coverage)
    part, whole = (answered, round(test_n)) if name == "coverage" else (round(precision * answered), answered)
    return f" ({part} of {whole} rows)"
