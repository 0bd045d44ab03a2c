"""The point rule and its per-task records."""

import json
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cascade.types import SERVE_NOTHING
from nightschool.calibration import (
    CalibrationRule,
    GradedTask,
    Point,
    calibrate_threshold,
    evaluate_points,
    stale_tasks,
)

ONE_TASK = {"triage": GradedTask("spec-1")}


def points(*groups: tuple[int, int, float], task: str = "triage") -> list[Point]:
    """``(right, wrong, confidence)`` groups, the right ones first."""
    return [Point(task, c, agrees) for right, wrong, c in groups for agrees in [True] * right + [False] * wrong]


def on_both_halves(rows: list[Point]) -> list[Point]:
    """Each point twice, so that both halves are equal to ``rows``."""
    return [point for point in rows for _ in (0, 1)]


@pytest.mark.req("FR-5.2")
def test_the_threshold_is_the_lowest_confidence_that_keeps_the_target() -> None:
    assert calibrate_threshold(points((97, 0, 0.9), (0, 3, 0.7), (0, 1, 0.6)), 0.97) == 0.7
    assert calibrate_threshold(points((96, 0, 0.9), (0, 3, 0.7), (0, 1, 0.6)), 0.97) == 0.9


@pytest.mark.req("FR-5.2")
def test_it_walks_on_past_a_bad_group_to_a_lower_one_that_qualifies() -> None:
    assert calibrate_threshold(points((0, 1, 0.99), (99, 0, 0.8)), 0.97) == 0.8


@pytest.mark.req("FR-5.2")
def test_a_tie_is_never_split() -> None:
    assert calibrate_threshold(points((1, 1, 0.8)), 0.97) == inf
    assert calibrate_threshold(points((10, 0, 0.9), (10, 10, 0.8)), 0.97) == 0.9


@pytest.mark.req("FR-5.2")
def test_nothing_qualifies_without_points_or_without_right_answers() -> None:
    assert calibrate_threshold([], 0.97) == inf
    assert calibrate_threshold(points((0, 5, 0.9)), 0.97) == inf


SCORED = st.lists(
    st.builds(Point, st.just("t"), st.sampled_from([n / 10 for n in range(11)]), st.booleans()), max_size=40
)


@pytest.mark.req("FR-5.2")
@given(scored=SCORED, target=st.sampled_from([0.5, 0.9, 0.97, 1.0]))
def test_the_threshold_equals_trying_every_confidence(scored: list[Point], target: float) -> None:
    def precision(threshold: float) -> float:
        served = [point.agrees for point in scored if point.confidence >= threshold]
        return sum(served) / len(served)

    kept = [point.confidence for point in scored if precision(point.confidence) >= target]
    assert calibrate_threshold(scored, target) == min(kept, default=inf)


@pytest.mark.req("INV-6", "FR-5.1")
def test_even_rows_calibrate_and_odd_rows_measure() -> None:
    right_then_wrong = [Point("triage", 0.9, index % 2 == 0) for index in range(40)]
    evaluation = evaluate_points(right_then_wrong, ONE_TASK, CalibrationRule())
    assert evaluation == {
        "threshold": 0.9,
        "precision": 0.0,
        "coverage": 1.0,
        "test_n": 20,
        "golden_n": 40,
        "golden_agreement": 0.5,
        "refused_n": 0,
        "golden_invalid_refs": 0,
        "spec_hashes": {"triage": "spec-1"},
        "tasks": {
            "triage": {
                "spec_hash": "spec-1",
                "threshold": 0.9,
                "precision": 0.0,
                "coverage": 1.0,
                "golden_n": 40,
                "test_n": 20,
                "agreement": 0.5,
                "calibrated": True,
                "target_precision": 0.97,
            }
        },
    }
    wrong_then_right = [Point("triage", 0.9, index % 2 == 1) for index in range(40)]
    mirror = evaluate_points(wrong_then_right, ONE_TASK, CalibrationRule())
    assert (mirror["threshold"], mirror["coverage"], mirror["precision"]) == (SERVE_NOTHING, 0.0, 0.0)


@pytest.mark.req("FR-5.2", "FR-5.3")
def test_the_threshold_is_floored_capped_and_stored_exactly() -> None:
    low = evaluate_points(points((40, 0, 0.1)), ONE_TASK, CalibrationRule())
    assert low["threshold"] == 0.5
    assert low["coverage"] == 0.0
    exact = evaluate_points(points((40, 0, 0.123456789 + 0.6)), ONE_TASK, CalibrationRule())
    assert exact["threshold"] == 0.123456789 + 0.6
    assert exact["coverage"] == 1.0
    none = evaluate_points(points((0, 40, 0.9)), ONE_TASK, CalibrationRule())
    assert none["threshold"] == 1.01


@pytest.mark.req("FR-5.1", "INV-6")
def test_an_evaluation_of_nothing_serves_nothing() -> None:
    evaluation = evaluate_points([], {}, CalibrationRule())
    assert evaluation == {
        "threshold": 1.01, "precision": 0.0, "coverage": 0.0, "test_n": 0, "golden_n": 0, "golden_agreement": 0.0,
        "refused_n": 0, "golden_invalid_refs": 0, "spec_hashes": {}, "tasks": {},
    }  # fmt: skip


@pytest.mark.req("FR-5.1")
def test_refusals_and_ungradable_rows_are_counted() -> None:
    refused = [Point("triage", 0.0, False, is_refused=index < 3) for index in range(6)]
    evaluation = evaluate_points(refused, ONE_TASK, CalibrationRule(), invalid_refs=2)
    assert (evaluation["refused_n"], evaluation["golden_invalid_refs"], evaluation["golden_n"]) == (3, 2, 6)


@pytest.mark.req("FR-14.1", "FR-5.2", "INV-6")
def test_each_task_gets_the_threshold_its_own_rows_support() -> None:
    easy = points((100, 0, 0.85), task="easy")
    noisy = points((34, 0, 0.95), (3, 3, 0.85), task="noisy")
    tasks = {"easy": GradedTask("e"), "noisy": GradedTask("n")}
    evaluation = evaluate_points(on_both_halves(easy + noisy), tasks, CalibrationRule())
    assert evaluation["threshold"] == 0.85
    assert evaluation["precision"] == 137 / 140
    assert evaluation["tasks"]["easy"]["threshold"] == 0.85
    assert evaluation["tasks"]["noisy"] == {
        "spec_hash": "n",
        "threshold": 0.95,
        "precision": 1.0,
        "coverage": 34 / 40,
        "golden_n": 80,
        "test_n": 40,
        "agreement": 37 / 40,
        "calibrated": True,
        "target_precision": 0.97,
    }


@pytest.mark.req("FR-14.1")
def test_a_task_is_calibrated_at_its_own_target() -> None:
    noisy = on_both_halves(points((34, 0, 0.95), (3, 3, 0.85), task="noisy"))
    strict = evaluate_points(noisy, {"noisy": GradedTask("n")}, CalibrationRule())
    loose = evaluate_points(noisy, {"noisy": GradedTask("n", 0.8, 0.75)}, CalibrationRule())
    assert strict["tasks"]["noisy"]["threshold"] == 0.95
    assert "min_precision" not in strict["tasks"]["noisy"]
    record = loose["tasks"]["noisy"]
    assert (record["threshold"], record["target_precision"], record["min_precision"]) == (0.85, 0.8, 0.75)
    assert loose["threshold"] == strict["threshold"]


@pytest.mark.req("FR-14.1", "FR-5.2", "FR-5.3")
@pytest.mark.parametrize(("min_task_golden", "calibrated"), [(1, True), (20, True), (1000, False)])
def test_a_single_tasks_record_is_the_global_numbers(min_task_golden: int, calibrated: bool) -> None:
    rows = on_both_halves(points((30, 0, 0.9), (5, 5, 0.7)))
    evaluation = evaluate_points(rows, ONE_TASK, CalibrationRule(min_task_golden=min_task_golden))
    record = evaluation["tasks"]["triage"]
    shared = ["threshold", "precision", "coverage", "test_n", "golden_n"]
    assert [record[name] for name in shared] == [evaluation[name] for name in shared]
    assert record["agreement"] == evaluation["golden_agreement"]
    assert record["calibrated"] is calibrated


@pytest.mark.req("FR-14.1", "FR-5.2")
def test_a_task_with_few_calibration_rows_is_never_below_the_global_threshold() -> None:
    many = on_both_halves(points((100, 0, 0.9), task="many"))
    lucky = on_both_halves(points((19, 0, 0.6), task="few"))
    unlucky = on_both_halves(points((5, 0, 0.95), (0, 2, 0.91), task="few"))
    rule = CalibrationRule(target_precision=0.99)
    tasks = {"many": GradedTask("m"), "few": GradedTask("f")}
    lucky_record = evaluate_points(many + unlucky, tasks, rule)["tasks"]["few"]
    assert (lucky_record["threshold"], lucky_record["calibrated"]) == (0.95, False)
    evaluation = evaluate_points(on_both_halves(points((100, 0, 0.9), (0, 9, 0.7), task="many")) + lucky, tasks, rule)
    assert evaluation["threshold"] == 0.9
    assert evaluation["tasks"]["few"]["threshold"] == 0.9
    enough = evaluate_points(
        on_both_halves(points((100, 0, 0.9), (0, 9, 0.7), task="many") + points((20, 0, 0.6), task="few")), tasks, rule
    )
    assert (enough["tasks"]["few"]["threshold"], enough["tasks"]["few"]["calibrated"]) == (0.6, True)


@pytest.mark.req("FR-14.1", "INV-6")
def test_a_task_without_held_out_rows_stays_with_the_teacher() -> None:
    rows = [Point("lone", 0.9, True), *points((41, 0, 0.9))]
    tasks = {**ONE_TASK, "lone": GradedTask("l"), "ungradable": GradedTask("u")}
    evaluation = evaluate_points(rows, tasks, CalibrationRule())
    assert evaluation["threshold"] == 0.9
    assert (evaluation["tasks"]["lone"]["threshold"], evaluation["tasks"]["lone"]["golden_n"]) == (1.01, 1)
    assert (evaluation["tasks"]["ungradable"]["threshold"], evaluation["tasks"]["ungradable"]["golden_n"]) == (1.01, 0)


@pytest.mark.req("FR-14.1")
def test_a_task_with_only_held_out_rows_uses_the_global_threshold() -> None:
    rows = points((40, 0, 0.9))
    rows[1] = Point("odd", 0.9, True)
    record = evaluate_points(rows, {**ONE_TASK, "odd": GradedTask("o")}, CalibrationRule())["tasks"]["odd"]
    assert (record["threshold"], record["test_n"], record["calibrated"]) == (0.9, 1, False)


@pytest.mark.req("FR-14.1")
@given(scored=SCORED)
def test_records_never_change_the_global_numbers(scored: list[Point]) -> None:
    mixed = [Point("ab"[index % 3 == 0], point.confidence, point.agrees) for index, point in enumerate(scored)]
    tasks = {"a": GradedTask("a"), "b": GradedTask("b", 0.6)}
    with_records = evaluate_points(mixed, tasks, CalibrationRule(min_task_golden=3))
    without = evaluate_points(mixed, tasks, CalibrationRule(min_task_golden=3, is_per_task=False))
    assert without["tasks"] == {}
    assert {**with_records, "tasks": {}} == without
    assert json.loads(json.dumps(with_records)) == with_records
    assert sum(record["golden_n"] for record in with_records["tasks"].values()) == with_records["golden_n"]


@pytest.mark.req("FR-14.1", "FR-2.3")
def test_stale_tasks_are_those_measured_under_another_spec() -> None:
    evaluation = {"spec_hashes": {"a": "1", "b": "1", "c": "2"}, "tasks": {}}
    assert stale_tasks(evaluation, {"a": "1", "b": "2", "c": "3", "new": "4"}) == ["b", "c"]
    assert stale_tasks(evaluation, {"a": "1"}) == []
    assert stale_tasks({}, {"a": "1"}) == []
