"""The release gate: admitting candidates and moving versions forward on evidence, on ticks that may run anywhere."""

import logging

from django.db import transaction

from common.clock import Clock
from common.errors import RatchetError, Refused
from ledger.events import event_once, record_event
from ledger.evidence import audit_evidence, shadow_evidence
from ledger.locks import lock_student
from ledger.models import Student, Version
from ledger.switches import Switches, read_switches
from ledger.vocabulary import IN_FLIGHT, VersionState
from release.golden import disable_tasks
from release.moves import Moved, Place, move
from release.policy import ReleasePolicy
from release.rules import Decision, canary_rule, golden_gate, live_alert, shadow_rule

log = logging.getLogger(__name__)

_KINDS = {VersionState.ROLLED_BACK: "rollback"}


def policy_of(student: Student, policy: ReleasePolicy) -> ReleasePolicy:
    """Return the policy with the student's overrides; raises ``Refused`` naming a bad one."""
    try:
        return policy.with_overrides(student.policy)
    except (ValueError, TypeError, AttributeError) as error:
        raise Refused(f"student {student.name}: {error}") from error


def admit(version_id: int, *, clock: Clock, policy: ReleasePolicy) -> Moved:
    """Pass a candidate through the golden gate: rejected, or released to shadow (cold start: to the first canary step).

    One transaction. Whatever was in flight is retired first; tasks that failed on their own rows are disabled on the
    version. A version that somebody moved while it was being scored is left alone, with a ``conflict`` event.
    """
    with transaction.atomic():
        student = lock_student(Version.objects.values_list("student_id", flat=True).get(pk=version_id))
        version = Version.objects.get(pk=version_id)
        if version.state != VersionState.CANDIDATE:
            where = Place(version.state, version.traffic_pct)
            detail = f"v{version.number}: left as it is ({where}): it was moved while it was being scored"
            record_event("conflict", detail, clock=clock, student_id=student.pk, version_id=version.pk)
            return Moved(False, detail)
        live = _live(student.pk)
        decision = golden_gate(
            version.evaluation,
            live.evaluation if live else None,
            policy_of(student, policy),
            may_start_canary=read_switches().may_start_canary,
        )
        if decision.to_state != "rejected":
            _clear_the_way(version, clock)
            _note_disabled(version, decision, clock)
        return _carry_out(version, decision, clock, live=live)


def _clear_the_way(version: Version, clock: Clock) -> None:
    for older in Version.objects.filter(student_id=version.student_id, state__in=IN_FLIGHT):
        detail = f"retired, v{version.number} was admitted"
        move(older, Place(VersionState.RETIRED), kind="retired", detail=detail, clock=clock)


def _note_disabled(version: Version, decision: Decision, clock: Clock) -> None:
    for task, reason in decision.disabled.items():
        detail = f"v{version.number}: task {task} stays with the teacher: {reason}"
        record_event("task_disabled", detail, clock=clock, student_id=version.student_id, version_id=version.pk)


def tick(student_id: int, *, clock: Clock, policy: ReleasePolicy) -> list[str]:
    """Look at one student's evidence once: alert on its live version, then move what is in flight.

    Returns the texts of the events it wrote. Any number of processes may tick at once: each decision is made once.
    """
    student = Student.objects.get(pk=student_id)
    own_policy = policy_of(student, policy)
    live = _live(student_id)
    happened = [] if live is None else _watch_live(live, own_policy, clock)
    version = Version.objects.filter(student_id=student_id, state__in=IN_FLIGHT).first()
    if version is not None:
        moved = _advance(version, live, own_policy, clock)
        happened += [moved.detail] if moved.is_done else []
    return happened


def tick_all(*, clock: Clock, policy: ReleasePolicy) -> list[str]:
    """Tick every student; one with an unreadable policy is logged and keeps none of the others waiting."""
    happened = []
    for student_id in Student.objects.order_by("pk").values_list("pk", flat=True):
        try:
            happened += tick(student_id, clock=clock, policy=policy)
        except RatchetError as error:
            log.error("release tick of student %s: %s", student_id, error)
    return happened


def _watch_live(live: Version, policy: ReleasePolicy, clock: Clock) -> list[str]:
    """Alert once per version when its audits show it under the floor. Nothing is moved: that is a person's decision."""
    alert = live_alert(audit_evidence(live.pk, live.stage), policy)
    if alert is None:
        return []
    detail = f"v{live.number}: {alert}"
    is_new = event_once("alert", detail, clock=clock, student_id=live.student_id, version_id=live.pk)
    return [detail] if is_new else []


def decide(version: Version, policy: ReleasePolicy) -> Decision:
    """Return what the evidence of the current stage decides about a version in flight, a freeze left aside."""
    if version.state == VersionState.SHADOW:
        return shadow_rule(shadow_evidence(version.pk, version.stage), policy)
    return canary_rule(audit_evidence(version.pk, version.stage), policy, version.traffic_pct)


def _advance(version: Version, live: Version | None, policy: ReleasePolicy, clock: Clock) -> Moved:
    decision = decide(version, policy)
    if decision.is_hold:
        return Moved(False, decision.reason)
    with transaction.atomic():
        # An operator who freezes releases takes the same lock: once that is committed, nothing is promoted.
        lock_student(version.student_id)
        if decision.is_promotion and _is_held(version, read_switches()):
            return Moved(False, f"releases are held: {decision.reason}")
        return _carry_out(version, decision, clock, live=live)


def _is_held(version: Version, switches: Switches) -> bool:
    return switches.releases_frozen or (version.state == VersionState.SHADOW and not switches.may_start_canary)


def _carry_out(version: Version, decision: Decision, clock: Clock, *, live: Version | None) -> Moved:
    if decision.to_state is None:
        raise ValueError("a decision to hold moves nothing")
    to = Place(decision.to_state, decision.to_pct)
    return move(
        version,
        to,
        kind=_KINDS.get(VersionState(to.state), to.state),
        detail=f"{to}: {decision.reason}{_traffic_goes_to(to, live)}",
        clock=clock,
        live=live,
        evaluation=disable_tasks(version.evaluation, decision.disabled) if decision.disabled else None,
    )


def _traffic_goes_to(to: Place, live: Version | None) -> str:
    if to.state != VersionState.ROLLED_BACK:
        return ""
    return f"; traffic back to {f'v{live.number}' if live else 'the teacher'}"


def _live(student_id: int) -> Version | None:
    return Version.objects.filter(student_id=student_id, state=VersionState.LIVE).first()
