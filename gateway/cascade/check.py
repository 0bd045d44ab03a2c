"""Settling what was drawn on a served request: the audit first, then the shadow.

The same generator runs inline (the simulator) and off the path (Celery), so both leave identical rows.
"""

from collections.abc import Generator
from dataclasses import dataclass, field

from gateway.cascade.answers import TeacherAnswer, read_teacher
from gateway.cascade.bill import Bill, measured_baseline
from gateway.cascade.confidence import score
from gateway.cascade.generation import audit_params
from gateway.cascade.serve import student_call
from gateway.cascade.types import (
    Answer,
    Call,
    CallFailed,
    CascadePolicy,
    CascadeRequest,
    Outcome,
    Purpose,
    Role,
    VersionRoute,
)

Verdicts = Generator[Call, Outcome, "Verdict"]


@dataclass(frozen=True, slots=True)
class CheckInput:
    """A drawn check with what it needs of the request. ``served_text`` is the answer the client got."""

    request: CascadeRequest
    served_text: str
    served_by: Role
    wants_audit: bool
    shadow: VersionRoute | None
    reference: str | None = None
    """The teacher's usable answer, when the teacher served the request; ``None`` when it was not usable."""


@dataclass(slots=True)
class Verdict:
    """What a check found. ``audit`` and ``shadow`` are values of the ledger's columns."""

    audit: str = "none"
    shadow: str = "none"
    student_agree: bool | None = None
    bill: Bill = field(default_factory=Bill)
    baseline_nusd: int | None = None
    """What the teacher alone would have cost, as its call measured it; ``None`` when none was made."""
    teacher: TeacherAnswer | None = None
    failures: list[CallFailed] = field(default_factory=list)


def check(owed: CheckInput, policy: CascadePolicy, *, may_retry: bool = False) -> Verdicts:
    """Run what is owed. A failed audit is no audit; a disagreement nobody could arbitrate stays unarbitrated.

    With ``may_retry`` a failed audit ends the run: the whole check is run again, and must not pay for its shadow twice.
    """
    verdict = Verdict()
    if owed.wants_audit:
        yield from _audit(owed, policy, verdict)
    if owed.shadow is not None and not (may_retry and verdict.audit == "failed"):
        yield from _shadow(owed, policy, verdict, owed.shadow)
    return verdict


def _ask(owed: CheckInput, policy: CascadePolicy, verdict: Verdict, purpose: Purpose) -> Generator[Call, Outcome, bool]:
    """Ask the teacher; return whether it answered."""
    request = owed.request
    outcome = yield Call(
        role=Role.TEACHER,
        purpose=purpose,
        messages=request.messages,
        n=1,
        params=audit_params(request.params),
        temperature=0.0,
        student=request.student,
        task=request.task,
    )
    if not isinstance(outcome, Answer):
        verdict.failures.append(outcome)
        return False
    verdict.bill.add_teacher(policy, outcome.completions)
    n_served = request.params.n if purpose is Purpose.AUDIT else 1
    verdict.baseline_nusd = measured_baseline(policy, outcome.completions, n_served)
    verdict.bill.latency_ms += outcome.latency_ms
    verdict.teacher = read_teacher(request.task, outcome.completions[0], request.params, purpose)
    return True


def _audit(owed: CheckInput, policy: CascadePolicy, verdict: Verdict) -> Generator[Call, Outcome, None]:
    if not (yield from _ask(owed, policy, verdict, Purpose.AUDIT)):
        verdict.audit = "failed"
    elif verdict.teacher is None or verdict.teacher.key is None:
        verdict.audit = "unusable"
    else:
        task = owed.request.task
        served = task.key(owed.served_text)
        verdict.student_agree = served is not None and task.matches(served, verdict.teacher.key)
        verdict.audit = "agree" if verdict.student_agree else "disagree"


def _shadow(
    owed: CheckInput, policy: CascadePolicy, verdict: Verdict, version: VersionRoute
) -> Generator[Call, Outcome, None]:
    request, task = owed.request, owed.request.task
    outcome = yield student_call(request, version, Purpose.SHADOW, request.student.samples)
    if not isinstance(outcome, Answer):
        verdict.failures.append(outcome)
        verdict.bill.add_student(policy, outcome.spent)
        verdict.shadow = "failed"
        return
    verdict.bill.add_student(policy, outcome.completions)
    scored = score(task, outcome.completions[: request.student.samples])
    if not scored.is_valid or scored.key is None or scored.confidence < version.threshold_for(task):
        verdict.shadow = "escalate"
        return
    reference = yield from _reference(owed, policy, verdict, scored.key)
    if reference is None:
        verdict.shadow = "unarbitrated"
    else:
        verdict.shadow = "agree" if task.matches(scored.key, reference) else "disagree"


def _reference(
    owed: CheckInput, policy: CascadePolicy, verdict: Verdict, shadow_key: tuple
) -> Generator[Call, Outcome, tuple | None]:
    """Choose what the shadow's answer is held to: the teacher, an arbitration, or the served answer it agrees with."""
    task = owed.request.task
    if owed.served_by is Role.TEACHER:
        return None if owed.reference is None else task.key(owed.reference)
    if verdict.teacher is not None and verdict.teacher.key is not None:
        return verdict.teacher.key
    served = task.key(owed.served_text)
    if served is not None and task.matches(shadow_key, served):
        return served
    if verdict.audit == "failed":
        return None
    if not (yield from _ask(owed, policy, verdict, Purpose.ARBITRATION)):
        return None
    return verdict.teacher.key if verdict.teacher is not None else None
