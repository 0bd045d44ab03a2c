"""Who answers a request, without I/O."""

from dataclasses import replace

import pytest

from gateway.cascade.bill import Bill
from gateway.cascade.serve import serve
from gateway.cascade.types import CallFailed, CascadeRequest, Params, Purpose, RequiredCallFailed, Role, Route
from ledger.taskspec import parse_spec
from tests.cascade.conftest import BILLING, CANARY, LIVE, POLICY, SHADOW, TECHNICAL, TRIAGE, World, by_role, routed
from tests.fakes import Draws, answer, unanimous

TEACHER = answer(BILLING, tokens=(100, 20))
CONFIDENT = unanimous(BILLING)
UNSURE = unanimous(BILLING, probability=0.1)
DOWN = CallFailed("ReadTimeout")


def teacher_must_not_be_called(call):
    raise AssertionError(f"the teacher was asked to {call.purpose}")


def student_must_not_be_called(call):
    raise AssertionError("the student was called")


@pytest.mark.req("FR-2.1", "INV-16")
def test_cold_start_asks_the_teacher_once_and_its_answer_may_be_stored(world: World):
    served = world.serve(by_role(student_must_not_be_called, TEACHER))
    assert (served.route, served.served_by, served.version, served.escalated) == (
        Route.COLD_START, Role.TEACHER, None, False,
    )  # fmt: skip
    assert served.teacher is not None
    assert served.teacher.is_usable
    assert served.teacher.purpose is Purpose.COLD_START
    assert [call.role for call in world.calls] == [Role.TEACHER]
    assert served.label_p is None
    assert served.check is None


@pytest.mark.req("FR-2.1", "FR-2.2")
def test_a_confident_student_is_served_without_a_teacher_call(world: World):
    served = world.serve(by_role(CONFIDENT, teacher_must_not_be_called), student=routed(live=LIVE))
    assert (served.route, served.served_by) == (Route.STUDENT, Role.STUDENT)
    assert served.choices[0].text == BILLING
    assert served.scored.confidence == pytest.approx(0.4 * 0.99 + 0.6)
    assert served.threshold == 0.8
    assert [(call.n, call.temperature, call.purpose) for call in world.calls] == [(3, 0.7, Purpose.SAMPLE)]


@pytest.mark.req("FR-2.1", "FR-16.5")
def test_an_unsure_student_escalates_and_the_teacher_labels_its_answer(world: World):
    served = world.serve(by_role(UNSURE, TEACHER), student=routed(live=LIVE))
    assert (served.route, served.served_by, served.escalated) == (Route.CONFIDENCE, Role.TEACHER, True)
    assert served.version is LIVE
    assert served.label_p == 1.0
    assert served.student_agree is True
    assert served.teacher is not None
    assert served.teacher.purpose is Purpose.ESCALATION


@pytest.mark.req("FR-2.4", "INV-10")
@pytest.mark.parametrize("route", [Route.TOOLS, Route.MULTIMODAL, Route.UNKNOWN_TASK])
def test_teacher_only_requests_never_reach_the_student_and_are_not_storable(world: World, route: Route):
    served = world.serve(
        by_role(student_must_not_be_called, TEACHER),
        student=routed(live=LIVE, shadow=SHADOW),
        teacher_only=route,
        draws=(),
    )
    assert (served.route, served.teacher, served.check, served.version) == (route, None, None, None)
    assert served.bill.cost_nusd == served.bill.baseline_nusd == 100 * 1000 + 20 * 3000


@pytest.mark.req("FR-2.4", "INV-10")
def test_a_pinned_task_is_the_teachers_alone(world: World):
    pinned = parse_spec("plan", {"pinned": True})
    served = world.serve(by_role(student_must_not_be_called, TEACHER), task=pinned, student=routed(live=LIVE), draws=())
    assert (served.route, served.teacher) == (Route.PINNED, None)


@pytest.mark.req("INV-7", "FR-2.10")
@pytest.mark.parametrize(
    ("failure", "route"),
    [(DOWN, Route.STUDENT_ERROR), (CallFailed("CircuitOpen", is_breaker_open=True), Route.STUDENT_BREAKER)],
)
def test_a_failing_student_escalates_instead_of_failing_the_request(world: World, failure: CallFailed, route: Route):
    served = world.serve(by_role(failure, TEACHER), student=routed(live=LIVE))
    assert (served.route, served.escalated, served.label_p) == (route, True, None)
    assert served.bill.student_cost_nusd == 0
    assert served.failures == [failure]
    assert not served.is_student_sampled


@pytest.mark.req("INV-7")
def test_only_the_teacher_call_that_was_needed_fails_a_request_and_says_what_was_spent(world: World):
    with pytest.raises(RequiredCallFailed) as raised:
        world.serve(by_role(UNSURE, DOWN), student=routed(live=LIVE))
    assert raised.value.failure is DOWN
    assert raised.value.spent_nusd == 10 * 60 + 15 * 240


@pytest.mark.req("FR-6.5")
@pytest.mark.parametrize(("draw", "version"), [(0.0999, CANARY), (0.1, LIVE)])
def test_the_canary_gets_its_share_of_the_first_draw(world: World, draw: float, version: object):
    student = routed(live=LIVE, canary=CANARY, canary_pct=10)
    served = world.serve(by_role(CONFIDENT, TEACHER), student=student, draws=(draw, 0.9))
    assert served.version is version


@pytest.mark.req("FR-6.5")
def test_without_a_live_version_the_rest_of_a_canarys_traffic_is_the_teachers(world: World):
    served = world.serve(by_role(CONFIDENT, TEACHER), student=routed(canary=CANARY, canary_pct=10), draws=(0.5, 0.0))
    assert served.route is Route.COLD_START


@pytest.mark.req("FR-2.5", "FR-16.1")
def test_the_second_draw_decides_the_audit_at_the_designed_rate(world: World):
    policy = replace(POLICY, audit_rate=0.25)
    student = routed(live=LIVE)
    drawn = world.serve(by_role(CONFIDENT, TEACHER), student=student, policy=policy, draws=(0.9, 0.2499))
    spared = world.serve(by_role(CONFIDENT, TEACHER), student=student, policy=policy, draws=(0.9, 0.25))
    assert drawn.check is not None
    assert drawn.check.wants_audit
    assert (drawn.label_p, spared.label_p, spared.check) == (0.25, 0.25, None)


@pytest.mark.req("FR-16.1", "FR-6.5")
def test_a_canary_may_have_an_audit_rate_of_its_own(world: World):
    policy = replace(POLICY, audit_rate=0.0, canary_audit_rate=1.0)
    student = routed(live=LIVE, canary=CANARY, canary_pct=50)
    canary = world.serve(by_role(CONFIDENT, TEACHER), student=student, policy=policy, draws=(0.1, 0.99))
    live = world.serve(by_role(CONFIDENT, TEACHER), student=student, policy=policy, draws=(0.9, 0.0))
    assert canary.check is not None
    assert (canary.label_p, live.label_p, live.check) == (1.0, 0.0, None)


@pytest.mark.req("FR-2.2", "INV-16")
def test_samples_without_a_valid_answer_are_never_served_whatever_the_threshold(world: World):
    live = replace(LIVE, threshold=0.0)
    served = world.serve(by_role(unanimous("no JSON here"), TEACHER), student=routed(live=live))
    assert (served.route, served.scored.is_valid, served.student_agree) == (Route.CONFIDENCE, False, None)


@pytest.mark.req("FR-14.1", "FR-2.3")
def test_a_disabled_task_skips_the_student_call(world: World):
    live = replace(LIVE, task_thresholds={"triage": (TRIAGE.spec_hash, 1.01)})
    served = world.serve(by_role(student_must_not_be_called, TEACHER), student=routed(live=live))
    assert (served.route, served.threshold, served.scored.confidence) == (Route.TASK_DISABLED, 1.01, 0.0)


@pytest.mark.req("FR-14.1", "FR-2.15")
def test_a_threshold_measured_under_another_spec_serves_nothing(world: World):
    live = replace(LIVE, task_thresholds={"triage": ("another hash", 0.5)})
    served = world.serve(by_role(student_must_not_be_called, TEACHER), student=routed(live=live))
    assert served.route is Route.TASK_DISABLED


@pytest.mark.req("FR-12.1")
def test_the_kill_switch_sends_everything_to_the_teacher_and_stops_the_shadow(world: World):
    policy = replace(POLICY, is_student_disabled=True)
    student = routed(live=LIVE, shadow=SHADOW)
    served = world.serve(by_role(student_must_not_be_called, TEACHER), student=student, policy=policy)
    assert (served.route, served.version, served.check) == (Route.STUDENT_DISABLED, None, None)
    assert served.teacher is not None


@pytest.mark.req("FR-1.14")
def test_several_choices_need_that_many_agreeing_samples(world: World):
    def two_of_three(call):
        return answer(BILLING, BILLING, TECHNICAL, probability=0.99)

    student = routed(live=replace(LIVE, threshold=0.5))
    two = world.serve(by_role(two_of_three, TEACHER), student=student, params=Params(n=2))
    three = world.serve(by_role(two_of_three, answer(*[BILLING] * 3)), student=student, params=Params(n=3))
    assert [choice.text for choice in two.choices] == [BILLING, BILLING]
    assert (three.route, len(three.choices)) == (Route.N_CHOICES, 3)
    assert world.calls[-1].temperature == 0.7


@pytest.mark.req("FR-2.9", "INV-27")
def test_costs_are_exact_nano_usd_and_the_baseline_of_a_student_answer_is_the_formulas(world: World):
    served = world.serve(by_role(CONFIDENT, TEACHER), student=routed(live=LIVE))
    bill = served.bill
    assert bill.student_cost_nusd == 10 * 60 + 15 * 240
    assert (bill.teacher_cost_nusd, bill.cost_nusd) == (0, bill.student_cost_nusd)
    assert bill.baseline_nusd == bill.baseline_est_nusd == 10 * 1000 + (5 + 300) * 3000


@pytest.mark.req("FR-2.9", "FR-16.5")
def test_an_escalations_baseline_is_the_teachers_real_call_and_its_estimate_is_kept(world: World):
    bill = world.serve(by_role(UNSURE, TEACHER), student=routed(live=LIVE)).bill
    assert bill.baseline_nusd == bill.teacher_cost_nusd == 100 * 1000 + 20 * 3000
    assert bill.baseline_est_nusd == 10 * 1000 + 305 * 3000
    assert bill.cost_nusd == bill.teacher_cost_nusd + bill.student_cost_nusd


@pytest.mark.req("FR-1.13", "INV-2")
@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"logit_bias": {"50256": 100}}, "client logit_bias"),
        ({"presence_penalty": 2.0}, "client presence_penalty"),
        ({"frequency_penalty": -0.5}, "client frequency_penalty"),
        ({"temperature": 1.5}, "client temperature"),
        ({"temperature": 1.0, "top_p": 0.9, "seed": 4}, None),
    ],
)
def test_an_answer_the_client_could_choose_is_served_but_never_a_label(world: World, values: dict, problem: str | None):
    served = world.serve(by_role(student_must_not_be_called, TEACHER), params=Params(values))
    assert served.choices[0].text == BILLING
    assert served.teacher is not None
    assert served.teacher.problem == problem


@pytest.mark.req("FR-2.13", "INV-16")
@pytest.mark.parametrize(
    ("text", "finish", "problem"),
    [
        (BILLING, "length", "finish_reason length"),
        ("", "stop", "empty answer"),
        ("I think it is billing", "stop", "invalid answer"),
        ('{"category": "refunds"}', "stop", "invalid field category"),
        ("<think>hm</think>" + BILLING, "stop", None),
        ("```json\n" + BILLING + "\n```", "stop", None),
    ],
)
def test_only_complete_valid_teacher_answers_are_usable(world: World, text: str, finish: str, problem: str | None):
    served = world.serve(by_role(student_must_not_be_called, answer(text, finish=finish)))
    assert served.teacher is not None
    assert served.teacher.problem == problem
    if problem is None:
        assert served.choices[0].text == BILLING


@pytest.mark.req("FR-1.13")
def test_the_student_never_gets_the_clients_sampling_and_outputs_are_capped(world: World):
    values = {"temperature": 1.9, "top_p": 0.1, "max_tokens": 10**6, "stop": ["x"], "presence_penalty": 1.0}
    world.serve(by_role(UNSURE, TEACHER), student=routed(live=LIVE), params=Params(values))
    student, teacher = world.calls
    assert (dict(student.params), student.temperature) == ({"max_tokens": 1024, "stop": ["x"]}, 0.7)
    assert (teacher.params["max_tokens"], teacher.temperature, teacher.params["top_p"]) == (8192, 1.9, 0.1)


@pytest.mark.req("FR-6.3")
def test_a_shadow_is_drawn_on_every_cascade_request_also_at_cold_start(world: World):
    served = world.serve(by_role(student_must_not_be_called, TEACHER), student=routed(shadow=SHADOW))
    assert served.check is not None
    assert (served.check.wants_audit, served.check.shadow) == (False, SHADOW)


@pytest.mark.req("FR-2.9", "INV-27")
def test_a_driver_that_stops_midway_knows_what_was_spent(world: World):
    bill = Bill()
    request = CascadeRequest(TRIAGE, routed(live=LIVE), [{"role": "user", "content": "hello"}])
    steps = serve(request, POLICY, Draws((0.5, 0.5)), bill)
    unsure = unanimous(BILLING, probability=0.01)(next(steps))
    assert steps.send(unsure).role is Role.TEACHER
    steps.close()
    assert bill.cost_nusd == 10 * 60 + 15 * 240


@pytest.mark.req("INV-27", "FR-2.13")
def test_samples_that_came_and_cannot_be_used_are_paid_for(world: World):
    short = CallFailed("too_few_samples", spent=answer(BILLING, BILLING).completions)
    served = world.serve(by_role(short, TEACHER), student=routed(live=LIVE))
    assert (served.route, served.is_student_sampled) == (Route.STUDENT_ERROR, False)
    assert served.bill.student_cost_nusd == 10 * 60 + 2 * 5 * 240
