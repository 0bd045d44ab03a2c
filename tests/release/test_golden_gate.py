"""The golden gate: global floors, regressions against live, and each task on its own rows."""

from typing import Any

import pytest

from release.golden import disable_tasks, keep_disabled
from release.policy import ReleasePolicy
from release.rules import Decision, golden_gate

POLICY = ReleasePolicy()


def scored(precision: Any = 1.0, coverage: Any = 0.8, **more: Any) -> dict[str, Any]:
    return {"precision": precision, "coverage": coverage, "threshold": 0.7, **more}


def record(right: int, answered: int, test_n: int | None = None, **more: Any) -> dict[str, Any]:
    rows = answered if test_n is None else test_n
    return {
        "spec_hash": "a",
        "threshold": 0.7,
        "precision": right / answered if answered else None,
        "coverage": answered / rows if rows else 0.0,
        "test_n": rows,
        **more,
    }


def with_tasks(**tasks: dict[str, Any]) -> dict[str, Any]:
    return scored(tasks=tasks)


@pytest.mark.req("FR-6.1")
def test_a_good_first_student_starts_at_the_first_canary_step():
    decision = golden_gate(scored(0.975, 0.8, test_n=50), None, POLICY)
    reason = "first student; golden precision 97.5% (39 of 40 rows), coverage 80.0%"
    assert decision == Decision("canary", 10, reason, {})


@pytest.mark.req("FR-6.1")
def test_with_a_live_version_a_good_candidate_is_shadowed_first():
    assert golden_gate(scored(), scored(), POLICY) == Decision(
        "shadow", 0, "golden precision 100.0%, coverage 80.0%", {}
    )


@pytest.mark.req("FR-6.1", "FR-12.1")
def test_a_first_student_shadows_the_teacher_while_no_canary_may_start():
    decision = golden_gate(scored(), None, POLICY, may_start_canary=False)
    reason = (
        "first student; no canary may start now, so it shadows the teacher; golden precision 100.0%, coverage 80.0%"
    )
    assert decision == Decision("shadow", 0, reason, {})


@pytest.mark.req("FR-6.1")
@pytest.mark.parametrize(
    ("evaluation", "reason"),
    [
        (scored(0.90, 0.8, test_n=50), "golden precision 90.0% (36 of 40 rows) is below 95.0%"),
        (scored(0.9499), "golden precision 95.0% is below 95.0%"),
        (scored(0.99, 0.24), "golden coverage 24.0% is below 25.0%"),
        (scored(0.99, 0.24, test_n=50), "golden coverage 24.0% (12 of 50 rows) is below 25.0%"),
        ({"coverage": 0.8}, "golden precision was not measured"),
        ({"precision": 1.0}, "golden coverage was not measured"),
        ({}, "golden precision was not measured"),
        (scored(float("nan")), "golden precision was not measured"),
        (scored("1.0"), "golden precision was not measured"),
        (scored(True), "golden precision was not measured"),
        (scored(1.0, float("inf")), "golden coverage was not measured"),
    ],
)
def test_what_is_under_a_floor_or_was_not_measured_is_rejected(evaluation, reason):
    assert golden_gate(evaluation, None, POLICY) == Decision("rejected", 0, reason, {})


@pytest.mark.req("FR-6.1")
def test_exactly_the_floors_pass():
    assert golden_gate(scored(0.95, 0.25), None, POLICY).to_state == "canary"


@pytest.mark.req("FR-6.1", "INV-4")
@pytest.mark.parametrize("live", [0.97, 0.98, 0.99, 1.0])
@pytest.mark.parametrize("name", ["precision", "coverage"])
def test_exactly_the_tolerance_under_live_passes_and_a_hair_more_is_a_regression(name, live):
    policy = ReleasePolicy(min_precision=0.9)
    reference = {**scored(0.95, 0.95), name: live}
    at = {**reference, name: live - 0.02}
    assert golden_gate(at, reference, policy).to_state == "shadow"
    decision = golden_gate({**at, name: live - 0.0201}, reference, policy)
    expected = f"golden {name} {100 * (live - 0.0201):.1f}% is more than 2.0% below live's {100 * live:.1f}%"
    assert (decision.to_state, decision.reason) == ("rejected", expected)


@pytest.mark.req("INV-4")
def test_a_live_version_without_numbers_cannot_be_compared_with():
    decision = golden_gate(scored(), {}, POLICY)
    assert (decision.to_state, decision.reason) == (
        "rejected",
        "the live version has no golden precision to compare with",
    )


@pytest.mark.req("FR-14.1", "FR-6.1")
@pytest.mark.parametrize(
    ("right", "of", "counted"),
    [(36, 40, "90.0% (36 of 40 rows)"), (9, 10, "90.0% (9 of 10 rows)"), (18, 20, "90.0% (18 of 20 rows)"),
     (91, 100, "91.0% (91 of 100 rows)")],
)  # fmt: skip
def test_a_task_under_the_floor_is_disabled_and_the_good_one_ships(right, of, counted):
    decision = golden_gate(with_tasks(good=record(100, 100), bad=record(right, of)), None, POLICY)
    assert decision.to_state == "canary"
    assert decision.disabled == {"bad": f"golden precision {counted} is below 95.0%"}


@pytest.mark.req("FR-14.1")
def test_a_task_exactly_at_the_floor_stays():
    assert golden_gate(with_tasks(a=record(95, 100)), None, POLICY).disabled == {}


@pytest.mark.req("FR-14.1")
def test_a_task_that_answers_none_of_its_rows_is_disabled_as_unmeasured():
    decision = golden_gate(with_tasks(good=record(40, 40), mute=record(0, 0, 12)), None, POLICY)
    assert decision.disabled == {"mute": "answers none of its 12 held-out rows"}


@pytest.mark.req("FR-14.1", "INV-4")
def test_a_task_more_than_the_tolerance_behind_live_is_disabled():
    decision = golden_gate(with_tasks(a=record(48, 50), b=record(50, 50)), with_tasks(a=record(50, 50)), POLICY)
    assert decision.to_state == "shadow"
    assert decision.disabled == {"a": "golden precision 96.0% (48 of 50 rows) is more than 2.0% below live's 100.0%"}


@pytest.mark.req("FR-14.1")
@pytest.mark.parametrize(
    ("candidate", "live"),
    [
        (record(5, 9), record(50, 50)),
        (record(49, 50), record(50, 50)),
        (record(48, 50), record(50, 50, threshold=1.01)),
        (record(48, 50), record(50, 50, disabled="under its floor")),
        (record(48, 50), record(50, 50, spec_hash="b")),
        (record(48, 50), record(9, 9)),
        (record(48, 50), record(0, 0, 50)),
        (record(48, 50), {}),
    ],
    ids=["few rows", "within tolerance", "live off", "live disabled", "other spec", "live few", "live mute", "none"],
)
def test_a_task_is_left_alone_without_evidence_against_it(candidate, live):
    assert golden_gate(with_tasks(a=candidate), with_tasks(a=live), POLICY).disabled == {}


@pytest.mark.req("FR-14.1")
def test_a_task_already_off_is_not_disabled_again():
    off = record(1, 20, threshold=1.01)
    assert golden_gate(with_tasks(off=off, good=record(40, 40)), None, POLICY).disabled == {}


@pytest.mark.req("FR-14.1")
def test_a_task_may_have_a_floor_of_its_own():
    assert golden_gate(with_tasks(a=record(97, 100)), None, POLICY).disabled == {}
    strict = with_tasks(a=record(97, 100, min_precision=0.99), b=record(100, 100))
    assert golden_gate(strict, None, POLICY).disabled == {"a": "golden precision 97.0% (97 of 100 rows) is below 99.0%"}
    lenient = with_tasks(a=record(80, 100, min_precision=0.8))
    assert golden_gate(lenient, None, POLICY).disabled == {}


@pytest.mark.req("FR-14.1", "FR-6.1", "INV-5")
def test_what_would_serve_too_little_without_its_bad_tasks_is_rejected():
    evaluation = with_tasks(bad=record(50, 70), small=record(10, 10))
    decision = golden_gate(evaluation, None, POLICY)
    assert decision == Decision(
        "rejected",
        0,
        "would answer 12.5% of 80 held-out rows at its tasks' thresholds without bad (golden precision 71.4% "
        "(50 of 70 rows) is below 95.0%), below 25.0%",
        {},
    )


@pytest.mark.req("FR-14.1", "INV-5")
def test_what_would_serve_nothing_at_its_tasks_thresholds_is_rejected():
    decision = golden_gate(with_tasks(a=record(20, 20, threshold=1.01)), None, POLICY)
    expected = "would answer 0.0% of 20 held-out rows at its tasks' thresholds, below 25.0%"
    assert (decision.to_state, decision.reason) == ("rejected", expected)


@pytest.mark.req("FR-14.1")
def test_exactly_the_minimum_coverage_left_is_enough():
    decision = golden_gate(with_tasks(bad=record(30, 60), good=record(20, 20)), None, POLICY)
    assert (decision.to_state, set(decision.disabled)) == ("canary", {"bad"})


@pytest.mark.req("FR-14.1", "INV-7")
@pytest.mark.parametrize("tasks", [None, [], "x", {"a": 3}, {"a": None}])
def test_records_that_are_none_leave_the_global_numbers_to_decide(tasks):
    assert golden_gate(scored(tasks=tasks), None, POLICY) == golden_gate(scored(), None, POLICY)


@pytest.mark.req("FR-14.1", "INV-4")
def test_disabled_tasks_survive_a_new_score_with_or_without_a_record():
    old = disable_tasks(with_tasks(a=record(30, 40), b=record(1, 40), c=record(40, 40)), {"a": "bad", "b": "worse"})
    new = with_tasks(a=record(40, 40), c=record(39, 40))
    kept = keep_disabled(old, new)
    assert kept["tasks"] == {
        "a": {**record(40, 40), "threshold": 1.01, "disabled": "bad"},
        "b": {**record(1, 40), "threshold": 1.01, "disabled": "worse"},
        "c": record(39, 40),
    }
    assert new == with_tasks(a=record(40, 40), c=record(39, 40))


@pytest.mark.req("FR-14.1")
def test_a_score_without_disabled_tasks_is_kept_as_it_is():
    assert keep_disabled(scored(), scored(0.97)) == scored(0.97)
    assert keep_disabled(with_tasks(a=record(40, 40)), scored(0.97)) == scored(0.97)
