"""Scoring a version on golden rows, sampled exactly as production samples it (INV-4, INV-6)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from gateway.cascade.confidence import score
from gateway.cascade.serve import student_call
from gateway.cascade.types import Call, CallFailed, CascadeRequest, Params, Purpose
from gateway.snapshot import student_route, version_route
from gateway.upstream.base import UpstreamError
from ledger.models import Version
from ledger.taskspec import TaskSpec
from nightschool.calibration import CalibrationRule, GradedTask, Point, evaluate_points
from nightschool.context import NightContext
from nightschool.dataset import Specs
from nightschool.trainers.base import Progress, Row

REFUSALS = frozenset({400, 413, 422})
"""What an endpoint answers to a request that it will never take: the student's own failing."""
MAX_FAILED_SHARE = 0.02
"""More failed calls than this and nothing is learned about the student: it is as much as a release tolerates."""
PROBED_ROWS = 3


class EvaluationFailed(Exception):
    """The student could not be sampled, which says nothing about its quality; the text holds counts and kinds only."""


class Examiner:
    """Asks one version for its answers to golden rows."""

    def __init__(self, version: Version, specs: Specs, context: NightContext) -> None:
        default = context.gateway.confidence_threshold
        self._version = version_route(version, default)
        self._student = student_route(version.student, (), default)
        self._specs = specs
        self._context = context

    def probe(self, golden: Sequence[Row], progress: Progress) -> None:
        """Make sure that the version answers at all; raises ``EvaluationFailed`` when it does not.

        A row whose task is pinned now is never sampled (INV-10).
        """
        failure = None
        askable = [row for row in golden if not self._specs[row.task].is_pinned]
        for n_done, row in enumerate(askable[:PROBED_ROWS]):
            progress(n_done, PROBED_ROWS, f"loading {self._version.adapter}")
            outcome = self._context.models.ask_sync(self._call(row, self._specs[row.task]))
            if not isinstance(outcome, CallFailed):
                return
            failure = outcome
        kind = failure.kind if failure else "no golden row of a task that is not pinned"
        raise EvaluationFailed(f"{self._version.adapter} cannot be sampled ({kind})")

    def evaluate(self, golden: Sequence[Row], progress: Progress) -> dict[str, Any]:
        """Score every golden row and return the evaluation.

        A row whose task is pinned now is left out, and one whose reference is invalid under its task's current spec is
        counted and not sampled (INV-10, INV-16). A failed call counts as confidence 0 and not agreeing, as production
        escalates it. Calls that fail for other reasons than a refusal of the request may be ``MAX_FAILED_SHARE`` of the
        rows; past that, ``EvaluationFailed`` is raised instead of rejecting a good student for an outage.
        """
        tasks: dict[str, GradedTask] = {}
        points: list[Point] = []
        failures: Counter[str] = Counter()
        n_invalid = 0
        for n_done, row in enumerate(golden):
            # Before every call: a few slow ones take longer than a night is held without a sign of life.
            progress(n_done, len(golden), f"scoring {self._version.adapter}")
            spec = self._specs[row.task]
            if spec.is_pinned:
                continue
            tasks[row.task] = GradedTask(spec.spec_hash, spec.target_precision, spec.min_precision)
            reference = spec.key(row.completion)
            if reference is None:
                n_invalid += 1
            else:
                points.append(self._point(row, spec, reference, failures))
                self._check(failures, len(golden))
        progress(len(golden), len(golden), f"scored {self._version.adapter}")
        return evaluate_points(points, tasks, self._rule(), invalid_refs=n_invalid)

    def _point(self, row: Row, spec: TaskSpec, reference: tuple, failures: Counter[str]) -> Point:
        outcome = self._context.models.ask_sync(self._call(row, spec))
        if isinstance(outcome, CallFailed):
            if _status(outcome) not in REFUSALS:
                failures[outcome.kind] += 1
            return Point(row.task, 0.0, False, is_refused=True)
        scored = score(spec, outcome.completions)
        agrees = scored.key is not None and spec.matches(scored.key, reference)
        return Point(row.task, scored.confidence, agrees)

    def _call(self, row: Row, spec: TaskSpec) -> Call:
        request = CascadeRequest(spec, self._student, row.messages, Params(row.params or {}))
        return student_call(request, self._version, Purpose.SHADOW, self._student.samples)

    def _check(self, failures: Counter[str], n_golden: int) -> None:
        n_failed = failures.total()
        if n_failed > MAX_FAILED_SHARE * n_golden:
            kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(failures.items()))
            raise EvaluationFailed(f"{n_failed} of {n_golden} golden calls to {self._version.adapter} failed ({kinds})")

    def _rule(self) -> CalibrationRule:
        nights = self._context.nights
        return CalibrationRule(
            target_precision=nights.target_precision,
            floor=nights.threshold_floor,
            min_task_golden=nights.min_task_golden,
            is_per_task=nights.is_per_task,
        )


def _status(failure: CallFailed) -> int | None:
    for error in (failure.error, failure.error and failure.error.__cause__):
        if isinstance(error, UpstreamError):
            return error.status
    return None
