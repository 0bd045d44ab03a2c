"""Thresholds from golden rows: calibrated on one half, measured on the other (INV-6). Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf
from typing import Any

from gateway.cascade.types import SERVE_NOTHING


@dataclass(frozen=True, slots=True)
class Point:
    """One scored golden row: the student's confidence, and whether its majority answer agrees with the teacher's."""

    task: str
    confidence: float
    agrees: bool
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class GradedTask:
    """A task with golden rows: the spec it is graded under, and its own target and gate floor when it has them."""

    spec_hash: str
    target_precision: float | None = None
    min_precision: float | None = None


@dataclass(frozen=True, slots=True)
class CalibrationRule:
    """The point rule's numbers."""

    target_precision: float = 0.97
    floor: float = 0.5
    min_task_golden: int = 20
    is_per_task: bool = True


def calibrate_threshold(points: Sequence[Point], target: float) -> float:
    """Return the lowest confidence at which the precision of everything at or above it is still ``target``.

    Walks down in groups of equal confidence, so that a tie is never split; ``inf`` when no group qualifies.

    >>> calibrate_threshold([Point("t", 0.9, True), Point("t", 0.8, True), Point("t", 0.8, False)], 0.6)
    0.8
    """
    threshold, served, right = inf, 0, 0
    ordered = sorted(points, key=lambda point: -point.confidence)
    for confidence, group in groupby(ordered, key=lambda point: point.confidence):
        verdicts = [point.agrees for point in group]
        served += len(verdicts)
        right += sum(verdicts)
        if right / served >= target:
            threshold = confidence
    return threshold


def evaluate_points(
    points: Sequence[Point], tasks: Mapping[str, GradedTask], rule: CalibrationRule, *, invalid_refs: int = 0
) -> dict[str, Any]:
    """Return a version's evaluation.

    Even points calibrate, odd ones measure. ``tasks`` names every task with a golden row, also one whose references are
    all invalid; each gets a record, at its own threshold. The numbers at the top are those of the one global threshold,
    the same with and without records. ``invalid_refs`` counts the golden rows that could not be graded.
    """
    halves = points[0::2], points[1::2]
    threshold = _bounded(calibrate_threshold(halves[0], rule.target_precision), rule)
    precision, coverage = _measure(halves[1], threshold)
    return {
        "threshold": threshold,
        "precision": precision,
        "coverage": coverage,
        "test_n": len(halves[1]),
        "golden_n": len(points),
        "golden_agreement": _share(sum(point.agrees for point in points), len(points)),
        "refused_n": sum(point.is_refused for point in points),
        "golden_invalid_refs": invalid_refs,
        "spec_hashes": {name: graded.spec_hash for name, graded in sorted(tasks.items())},
        "tasks": {name: _task_record(name, graded, halves, threshold, rule) for name, graded in sorted(tasks.items())}
        if rule.is_per_task
        else {},
    }


def stale_tasks(evaluation: Mapping[str, Any], current: Mapping[str, str]) -> list[str]:
    """Return the tasks that were measured under another spec than the ``current`` hash of that task, sorted."""
    measured = evaluation.get("spec_hashes") or {}
    return sorted(name for name, spec in current.items() if measured.get(name, spec) != spec)


def _task_record(
    name: str, graded: GradedTask, halves: tuple[Sequence[Point], ...], overall: float, rule: CalibrationRule
) -> dict[str, Any]:
    calibration, test = ([point for point in half if point.task == name] for half in halves)
    target = rule.target_precision if graded.target_precision is None else graded.target_precision
    is_calibrated = len(calibration) >= rule.min_task_golden
    threshold = _bounded(calibrate_threshold(calibration, target), rule) if calibration else overall
    if not is_calibrated:
        # A few lucky rows must not lower a task's threshold below what all rows together support.
        threshold = max(threshold, overall)
    if not test:
        threshold = SERVE_NOTHING
    precision, coverage = _measure(test, threshold)
    n = len(calibration) + len(test)
    own_floor = {} if graded.min_precision is None else {"min_precision": graded.min_precision}
    return {
        "spec_hash": graded.spec_hash,
        "threshold": threshold,
        "precision": precision,
        "coverage": coverage,
        "golden_n": n,
        "test_n": len(test),
        "agreement": _share(sum(point.agrees for point in (*calibration, *test)), n),
        "calibrated": is_calibrated,
        "target_precision": target,
        **own_floor,
    }


def _bounded(threshold: float, rule: CalibrationRule) -> float:
    return min(SERVE_NOTHING, max(rule.floor, threshold))


def _measure(test: Sequence[Point], threshold: float) -> tuple[float, float]:
    """Return the precision of what is served at ``threshold`` (0 when nothing is) and the share that is served."""
    served = [point.agrees for point in test if point.confidence >= threshold]
    return _share(sum(served), len(served)), _share(len(served), len(test))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
