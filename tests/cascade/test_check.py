"""Settling audits and shadows, without I/O."""

import pytest

from gateway.cascade.types import CallFailed, CascadeRequest, Params, Purpose, Role
from tests.cascade.conftest import BILLING, SHADOW, STUDENT, TECHNICAL, TRIAGE, World, by_role
from tests.fakes import answer, unanimous

DOWN = CallFailed("ConnectError")
TEACHER_COST = 10 * 1000 + 5 * 3000
SHADOW_COST = 10 * 60 + 15 * 240


def not_called(call):
    raise AssertionError(f"{call.role} was asked to {call.purpose}")


@pytest.mark.req("FR-2.5", "INV-15")
@pytest.mark.parametrize(
    ("teacher", "audit", "agree", "cost"),
    [
        (answer(BILLING), "agree", True, TEACHER_COST),
        (answer(TECHNICAL), "disagree", False, TEACHER_COST),
        (answer("prose"), "unusable", None, TEACHER_COST),
        (answer(BILLING, finish="length"), "unusable", None, TEACHER_COST),
        (DOWN, "failed", None, 0),
    ],
)
def test_an_audit_is_only_an_audit_when_its_answer_is_usable(world: World, teacher, audit, agree, cost):
    verdict = world.check(by_role(not_called, teacher), wants_audit=True)
    assert (verdict.audit, verdict.student_agree, verdict.bill.cost_nusd) == (audit, agree, cost)
    assert [(call.purpose, call.temperature, call.n) for call in world.calls] == [(Purpose.AUDIT, 0.0, 1)]


@pytest.mark.req("FR-6.3", "FR-2.6")
def test_a_shadow_that_agrees_with_the_served_answer_needs_no_teacher(world: World):
    verdict = world.check(by_role(unanimous(BILLING), not_called), shadow=SHADOW)
    assert (verdict.shadow, verdict.bill.cost_nusd, verdict.baseline_nusd) == ("agree", SHADOW_COST, None)


@pytest.mark.req("FR-6.3")
def test_an_unsure_shadow_would_have_escalated_and_costs_its_samples(world: World):
    verdict = world.check(by_role(unanimous(TECHNICAL, probability=0.05), not_called), shadow=SHADOW)
    assert (verdict.shadow, verdict.bill.cost_nusd) == ("escalate", SHADOW_COST)


@pytest.mark.req("FR-6.3", "FR-2.6", "INV-15")
@pytest.mark.parametrize(
    ("teacher", "shadow"),
    [
        (answer(TECHNICAL), "agree"),
        (answer(BILLING), "disagree"),
        (answer("prose"), "unarbitrated"),
        (DOWN, "unarbitrated"),
    ],
)
def test_a_disagreement_with_the_student_is_arbitrated_by_the_teacher(world: World, teacher, shadow):
    verdict = world.check(by_role(unanimous(TECHNICAL), teacher), shadow=SHADOW)
    assert verdict.shadow == shadow
    assert [call.purpose for call in world.calls] == [Purpose.SHADOW, Purpose.ARBITRATION]


@pytest.mark.req("FR-6.3")
def test_an_audit_is_the_shadows_reference_and_no_second_teacher_call_is_made(world: World):
    verdict = world.check(by_role(unanimous(TECHNICAL), answer(TECHNICAL)), wants_audit=True, shadow=SHADOW)
    assert (verdict.audit, verdict.shadow) == ("disagree", "agree")
    assert [call.purpose for call in world.calls] == [Purpose.AUDIT, Purpose.SHADOW]


@pytest.mark.req("FR-2.10", "INV-15")
def test_after_a_failed_audit_a_disagreement_is_not_arbitrated(world: World):
    verdict = world.check(by_role(unanimous(TECHNICAL), DOWN), wants_audit=True, shadow=SHADOW)
    assert (verdict.audit, verdict.shadow) == ("failed", "unarbitrated")
    assert [call.purpose for call in world.calls] == [Purpose.AUDIT, Purpose.SHADOW]


@pytest.mark.req("INV-16", "FR-6.3")
def test_an_unusable_audit_answer_is_no_reference_so_the_disagreement_is_arbitrated(world: World):
    def teacher(call):
        return answer("prose") if call.purpose is Purpose.AUDIT else answer(TECHNICAL)

    verdict = world.check(by_role(unanimous(TECHNICAL), teacher), wants_audit=True, shadow=SHADOW)
    assert (verdict.audit, verdict.shadow) == ("unusable", "agree")
    assert verdict.teacher is not None
    assert verdict.teacher.purpose is Purpose.ARBITRATION


@pytest.mark.req("FR-6.3", "INV-16")
@pytest.mark.parametrize(("reference", "shadow"), [(TECHNICAL, "agree"), (BILLING, "disagree"), (None, "unarbitrated")])
def test_the_teachers_answer_to_an_escalation_is_the_reference(world: World, reference: str | None, shadow: str):
    verdict = world.check(
        by_role(unanimous(TECHNICAL), not_called),
        served_by=Role.TEACHER,
        served_text=reference or "cut off",
        reference=reference,
        shadow=SHADOW,
    )
    assert verdict.shadow == shadow


@pytest.mark.req("INV-7")
def test_a_shadow_whose_samples_fail_leaves_no_evidence_and_no_cost(world: World):
    verdict = world.check(by_role(DOWN, not_called), shadow=SHADOW)
    assert (verdict.shadow, verdict.bill.cost_nusd, verdict.failures) == ("failed", 0, [DOWN])


@pytest.mark.req("INV-27", "FR-2.10")
def test_a_failed_audit_that_will_be_run_again_samples_no_shadow_yet(world: World):
    verdict = world.check(by_role(not_called, DOWN), wants_audit=True, shadow=SHADOW, may_retry=True)
    assert (verdict.audit, verdict.shadow) == ("failed", "none")
    verdict = world.check(by_role(unanimous(BILLING), answer(BILLING)), wants_audit=True, shadow=SHADOW, may_retry=True)
    assert (verdict.audit, verdict.shadow) == ("agree", "agree")


@pytest.mark.req("INV-6", "FR-6.3")
def test_a_shadow_is_scored_on_as_many_samples_as_it_was_calibrated_on(world: World):
    texts = [TECHNICAL] * STUDENT.samples + [BILLING] * 9
    verdict = world.check(by_role(answer(*texts, probability=0.99), answer(BILLING)), shadow=SHADOW)
    assert verdict.shadow == "disagree", "nine more samples would have agreed with what was served"


@pytest.mark.req("INV-27", "FR-1.14")
def test_an_audit_of_several_choices_measures_a_baseline_that_bills_the_prompt_once(world: World):
    request = CascadeRequest(TRIAGE, STUDENT, [{"role": "user", "content": "hello"}], Params(n=3))
    verdict = world.check(by_role(not_called, answer(BILLING)), request=request, wants_audit=True)
    assert verdict.bill.teacher_cost_nusd == TEACHER_COST
    assert verdict.baseline_nusd == 10 * 1000 + 3 * 5 * 3000


@pytest.mark.req("INV-27", "FR-2.13")
def test_a_shadow_that_gave_too_few_samples_is_paid_for(world: World):
    short = CallFailed("too_few_samples", spent=answer(BILLING, BILLING).completions)
    verdict = world.check(by_role(short, not_called), shadow=SHADOW)
    assert (verdict.shadow, verdict.bill.student_cost_nusd) == ("failed", 10 * 60 + 2 * 5 * 240)
