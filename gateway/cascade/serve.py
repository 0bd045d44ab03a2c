"""Serving one request: pinned, cold start, or student first with escalation.

``serve`` yields the calls it needs, in order, and returns what was served together with the check that was drawn on
it. Random draws come from ``draws`` in a fixed order, exactly two a request: the canary pick, then the audit draw.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from gateway.cascade.answers import TeacherAnswer, read_teacher
from gateway.cascade.bill import Bill, estimated_baseline
from gateway.cascade.confidence import NOTHING_VALID, Scored, majority_choices, score
from gateway.cascade.generation import is_deterministic, student_params, teacher_params, teacher_temperature
from gateway.cascade.types import (
    SERVE_NOTHING,
    TEACHER_ONLY_ROUTES,
    Answer,
    Call,
    CallFailed,
    CascadePolicy,
    CascadeRequest,
    Completion,
    Draws,
    Outcome,
    Purpose,
    RequiredCallFailed,
    Role,
    Route,
    VersionRoute,
)

Calls = Generator[Call, Outcome, "Served"]


@dataclass(frozen=True, slots=True)
class DrawnCheck:
    """What is still owed on a served request: an audit of the student's answer, a shadow run, or both."""

    wants_audit: bool
    shadow: VersionRoute | None


@dataclass(slots=True)
class Served:
    """What the cascade decided for one request."""

    route: Route
    served_by: Role
    choices: list[Completion]
    bill: Bill
    model: str
    version: VersionRoute | None = None
    scored: Scored = NOTHING_VALID
    is_student_sampled: bool = False
    threshold: float | None = None
    label_p: float | None = None
    student_agree: bool | None = None
    teacher: TeacherAnswer | None = None
    check: DrawnCheck | None = None
    failures: list[CallFailed] = field(default_factory=list)

    @property
    def escalated(self) -> bool:
        """Whether a version was tried and the teacher answered."""
        return self.version is not None and self.served_by is Role.TEACHER


@dataclass(slots=True)
class _Attempt:
    """What became of asking a student."""

    route: Route
    choices: list[Completion] | None = None
    scored: Scored = NOTHING_VALID
    is_sampled: bool = False
    threshold: float | None = None
    failure: CallFailed | None = None


def serve(request: CascadeRequest, policy: CascadePolicy, draws: Draws, bill: Bill | None = None) -> Calls:
    """Decide one request. Raises ``RequiredCallFailed`` when the teacher's answer was needed and could not be had.

    ``bill`` (a new one) is filled in as calls return, so that a driver that stops early knows what was spent.
    """
    bill = Bill() if bill is None else bill
    if request.teacher_only is not None or request.task.is_pinned:
        return (yield from _ask_teacher(request, policy, bill, request.teacher_only or Route.PINNED))
    canary_draw, audit_draw = draws.random(), draws.random()
    version = _pick_version(request, policy, canary_draw)
    if version is None:
        route = Route.STUDENT_DISABLED if policy.is_student_disabled else Route.COLD_START
        served = yield from _ask_teacher(request, policy, bill, route)
    else:
        attempt = yield from _ask_student(request, policy, bill, version)
        failures = [attempt.failure] if attempt.failure else []
        if attempt.choices is None:
            served = yield from _ask_teacher(request, policy, bill, attempt.route, failures)
            served.label_p = 1.0 if attempt.is_sampled else None
            served.student_agree = _escalation_agreement(request, attempt, served.teacher)
        else:
            served = _serve_student(request, policy, bill, version, attempt.choices)
            served.label_p = _audit_rate(request, policy, version)
        served.version, served.scored, served.threshold = version, attempt.scored, attempt.threshold
        served.is_student_sampled = attempt.is_sampled
        served.failures = failures
    wants_audit = served.served_by is Role.STUDENT and audit_draw < (served.label_p or 0.0)
    shadow = None if policy.is_student_disabled else request.student.shadow
    if wants_audit or shadow is not None:
        served.check = DrawnCheck(wants_audit, shadow)
    return served


def _pick_version(request: CascadeRequest, policy: CascadePolicy, draw: float) -> VersionRoute | None:
    if policy.is_student_disabled:
        return None
    student = request.student
    if student.canary is not None and draw < student.canary_pct / 100:
        return student.canary
    return student.live


def _audit_rate(request: CascadeRequest, policy: CascadePolicy, version: VersionRoute) -> float:
    if version is request.student.canary and policy.canary_audit_rate is not None:
        return policy.canary_audit_rate
    return policy.audit_rate


def _ask_student(
    request: CascadeRequest, policy: CascadePolicy, bill: Bill, version: VersionRoute
) -> Generator[Call, Outcome, _Attempt]:
    threshold = version.threshold_for(request.task)
    if threshold >= SERVE_NOTHING and request.task.name in version.task_thresholds:
        return _Attempt(Route.TASK_DISABLED, threshold=threshold)
    outcome = yield student_call(request, version, Purpose.SAMPLE, max(request.student.samples, request.params.n))
    if isinstance(outcome, CallFailed):
        bill.add_student(policy, outcome.spent)
        route = Route.STUDENT_BREAKER if outcome.is_breaker_open else Route.STUDENT_ERROR
        return _Attempt(route, failure=outcome)
    samples = outcome.completions
    bill.add_student(policy, samples)
    bill.latency_ms += outcome.latency_ms
    scored = score(request.task, samples[: request.student.samples])
    attempt = _Attempt(Route.CONFIDENCE, scored=scored, is_sampled=True, threshold=threshold)
    if scored.best is not None:
        bill.baseline_est_nusd = estimated_baseline(policy, [scored.best] * request.params.n)
    if scored.is_valid and scored.confidence >= threshold:
        attempt.choices = majority_choices(request.task, scored, samples, request.params.n)
        attempt.route = Route.STUDENT if attempt.choices else Route.N_CHOICES
    return attempt


def student_call(request: CascadeRequest, version: VersionRoute, purpose: Purpose, n: int) -> Call:
    """Return the call that samples ``version``; golden evaluation makes the same one (INV-6)."""
    student = request.student
    return Call(
        role=Role.STUDENT,
        purpose=purpose,
        messages=request.messages,
        n=n,
        params=student_params(request.params),
        temperature=student.temperature,
        student=student,
        task=request.task,
        version=version,
    )


def _serve_student(
    request: CascadeRequest, policy: CascadePolicy, bill: Bill, version: VersionRoute, choices: Sequence[Completion]
) -> Served:
    bill.baseline_nusd = estimated_baseline(policy, choices)
    bill.baseline_est_nusd = bill.baseline_nusd
    return Served(Route.STUDENT, Role.STUDENT, _cleaned(request, choices), bill, model=version.adapter)


def _ask_teacher(
    request: CascadeRequest, policy: CascadePolicy, bill: Bill, route: Route, earlier: Sequence[CallFailed] = ()
) -> Calls:
    purpose = _teacher_purpose(route)
    outcome = yield Call(
        role=Role.TEACHER,
        purpose=purpose,
        messages=request.messages,
        n=request.params.n,
        params=teacher_params(request.params),
        temperature=teacher_temperature(request.params),
        student=request.student,
        task=request.task,
    )
    if not isinstance(outcome, Answer):
        raise RequiredCallFailed(outcome, bill.cost_nusd, earlier)
    bill.baseline_nusd = bill.add_teacher(policy, outcome.completions)
    bill.latency_ms += outcome.latency_ms
    choices = _cleaned(request, outcome.completions)
    served = Served(route, Role.TEACHER, choices, bill, model=outcome.model or policy.teacher_model)
    if purpose is not Purpose.PINNED:
        served.teacher = read_teacher(request.task, outcome.completions[0], request.params, purpose)
    return served


def _teacher_purpose(route: Route) -> Purpose:
    if route in TEACHER_ONLY_ROUTES:
        return Purpose.PINNED
    return Purpose.COLD_START if route in (Route.COLD_START, Route.STUDENT_DISABLED) else Purpose.ESCALATION


def _cleaned(request: CascadeRequest, choices: Sequence[Completion]) -> list[Completion]:
    for choice in choices:
        if not choice.tool_calls:
            choice.text = request.task.clean(choice.text)
    return list(choices)


def _escalation_agreement(request: CascadeRequest, attempt: _Attempt, teacher: TeacherAnswer | None) -> bool | None:
    if teacher is None or teacher.key is None or attempt.scored.key is None or not is_deterministic(request.params):
        return None
    return request.task.matches(attempt.scored.key, teacher.key)
