"""The golden evaluation: the same call production makes, graded against the stored answer."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway.cascade.serve import serve
from gateway.cascade.types import Answer, Call, CascadePolicy, CascadeRequest, Params, Purpose, Role
from gateway.drivers import drive_sync
from gateway.snapshot import student_route
from gateway.students.base import StudentUnavailable
from gateway.upstream.base import UpstreamError
from ledger.models import Task
from ledger.versions import create_candidate
from ledger.vocabulary import NightState, VersionState
from nightschool.dataset import read_dataset, specs_of
from nightschool.evaluation import EvaluationFailed, Examiner
from nightschool.lease import TakenOver
from nightschool.night import resume_stale
from nightschool.trainers.base import Row
from tests.fakes import Draws, ScriptedStudent, answer
from tests.nightschool.conftest import RIGHT, SPEC, WRONG, World, always, asked


def examiner(world: World) -> tuple[Examiner, list[Row]]:
    dataset = read_dataset(world.student, world.context.gateway)
    version = create_candidate(world.student.pk, at=world.clock.now())
    return Examiner(version, dataset.specs, world.context), dataset.selection.golden


def ignore(*seen: Any) -> None:
    """A progress report that nobody reads."""


def evaluate(world: World, progress: Any = ignore) -> dict[str, Any]:
    subject, golden = examiner(world)
    return subject.evaluate(golden, progress)


def refused(kind: str, status: int) -> StudentUnavailable:
    error = StudentUnavailable(kind)
    error.__cause__ = UpstreamError(kind, status=status)
    return error


def failing_for(texts: Sequence[str], error: Exception) -> Any:
    return lambda call: error if asked(call) in texts else answer(*[RIGHT] * call.n, probability=0.9)


@pytest.mark.req("FR-5.1", "INV-6")
def test_it_scores_every_golden_row_and_writes_the_evaluation(world: World) -> None:
    world.store(40, "golden")
    evaluation = evaluate(world)
    spec_hash = Task.objects.get(name="triage").spec_hash
    confidence = 0.4 * 0.9 + 0.6
    assert evaluation == {
        "threshold": pytest.approx(confidence),
        "precision": 1.0,
        "coverage": 1.0,
        "test_n": 20,
        "golden_n": 40,
        "golden_agreement": 1.0,
        "refused_n": 0,
        "golden_invalid_refs": 0,
        "spec_hashes": {"triage": spec_hash},
        "tasks": {
            "triage": {
                "spec_hash": spec_hash,
                "threshold": pytest.approx(confidence),
                "precision": 1.0,
                "coverage": 1.0,
                "golden_n": 40,
                "test_n": 20,
                "agreement": 1.0,
                "calibrated": True,
                "target_precision": 0.97,
            }
        },
    }


@pytest.mark.req("INV-6", "FR-5.1", "FR-1.13")
@pytest.mark.parametrize("params", [None, {"stop": ["\n"], "response_format": {"type": "json_object"}}])
def test_it_makes_the_very_call_that_production_makes(world: World, params: dict[str, Any] | None) -> None:
    world.student.samples, world.student.temperature = 5, 0.4
    world.student.save()
    world.store(1, "golden", params=params)
    subject, golden = examiner(world)
    subject.evaluate(golden, lambda *seen: None)
    (made,) = ScriptedStudent.calls
    version = world.student.versions.get()
    world.put(version, VersionState.LIVE, 100)
    version.refresh_from_db()
    route = student_route(world.student, [version], 0.8)
    request = CascadeRequest(made.task, route, golden[0].messages, Params({**(params or {}), "temperature": 1.3}))
    drive_sync(serve(request, CascadePolicy(), Draws([0.5, 0.5])), world.context.models.ask_sync)
    served = ScriptedStudent.calls[1]
    assert (made.role, made.purpose, served.purpose) == (Role.STUDENT, Purpose.SHADOW, Purpose.SAMPLE)
    for name in ("role", "messages", "n", "params", "temperature", "task"):
        assert getattr(made, name) == getattr(served, name), name
    assert (made.n, made.temperature) == (5, 0.4)
    assert made.params == {"max_tokens": 1024, **(params or {})}
    assert (made.version.id, made.version.adapter) == (served.version.id, served.version.adapter)
    assert made.student.backend == served.student.backend


@pytest.mark.req("INV-6", "INV-16")
def test_a_row_that_cannot_be_graded_is_counted_and_never_sampled(world: World) -> None:
    world.store(2, "golden")
    world.store(1, "golden", completion='{"label":"green"}')
    world.store(2, "golden", completion=WRONG)
    evaluation = evaluate(world)
    assert (evaluation["golden_invalid_refs"], evaluation["golden_n"], evaluation["test_n"]) == (1, 4, 2)
    assert [asked(call) for call in ScriptedStudent.calls] == ["message 1", "message 2", "message 4", "message 5"]
    assert evaluation["golden_agreement"] == 0.5


@pytest.mark.req("INV-10")
def test_a_task_that_was_pinned_meanwhile_is_neither_sampled_nor_recorded(world: World) -> None:
    world.add_task("soon-pinned", SPEC)
    world.store(2, "golden")
    world.store(2, "golden", task="soon-pinned")
    dataset = read_dataset(world.student, world.context.gateway)
    Task.objects.filter(name="soon-pinned").update(is_runtime_pinned=True)
    specs = read_dataset(world.student, world.context.gateway).specs
    version = create_candidate(world.student.pk, at=world.clock.now())
    evaluation = Examiner(version, specs, world.context).evaluate(dataset.selection.golden, lambda *seen: None)
    assert list(evaluation["tasks"]) == ["triage"]
    assert len(ScriptedStudent.calls) == 2


@pytest.mark.req("FR-5.1", "INV-7", "INV-6")
@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_row_counts_as_not_served_and_wrong(world: World, status: int) -> None:
    world.store(6, "golden")
    ScriptedStudent.reset(failing_for(["message 1", "message 4", "message 5"], refused("HTTPError", status)))
    evaluation = evaluate(world)
    assert (evaluation["refused_n"], evaluation["golden_agreement"], evaluation["golden_n"]) == (3, 0.5, 6)
    assert evaluation["coverage"] == 2 / 3


@pytest.mark.req("FR-5.1", "INV-7")
@pytest.mark.parametrize(
    "error", [StudentUnavailable("ReadTimeout"), refused("HTTPError", 429), refused("HTTPError", 503)]
)
def test_an_outage_fails_the_evaluation_instead_of_the_student(world: World, error: StudentUnavailable) -> None:
    world.store(100, "golden")
    ScriptedStudent.reset(failing_for(["message 7", "message 8"], error))
    evaluation = evaluate(world)
    assert (evaluation["refused_n"], evaluation["golden_agreement"]) == (2, 0.98)
    ScriptedStudent.reset(lambda call: error)
    with pytest.raises(EvaluationFailed, match=rf"^3 of 100 golden calls to default-v2 failed \(3 {error.kind}\)$"):
        evaluate(world)
    assert len(ScriptedStudent.calls) == 3


@pytest.mark.req("INV-12")
def test_a_failure_never_quotes_the_error(world: World) -> None:
    world.store(5, "golden")
    ScriptedStudent.reset(lambda call: ValueError(f"cannot parse {asked(call)}"))
    with pytest.raises(EvaluationFailed) as caught:
        evaluate(world)
    assert str(caught.value) == "1 of 5 golden calls to default-v1 failed (1 ValueError)"


@pytest.mark.req("FR-5.1")
def test_it_reports_progress_and_stops_when_the_night_was_taken_over(world: World) -> None:
    world.store(3, "golden")
    seen: list[tuple[int, int, str]] = []
    evaluate(world, lambda *report: seen.append(report))
    assert seen == [*[(n, 3, "scoring default-v1") for n in range(3)], (3, 3, "scored default-v1")]

    def lose_it(done: int, total: int, detail: str) -> None:
        if done == 1:
            raise TakenOver

    ScriptedStudent.reset(always(RIGHT))
    with pytest.raises(TakenOver):
        evaluate(world, lose_it)
    assert len(ScriptedStudent.calls) == 1


@pytest.mark.req("INV-29", "FR-5.1")
def test_a_slow_student_does_not_cost_the_night_its_lease(world: World) -> None:
    hold = timedelta(seconds=world.context.nights.hold_s)

    def slow(call: Call) -> Answer:
        world.clock.advance(hold * 0.9)
        assert resume_stale(world.clock) == []
        return answer(*[RIGHT] * call.n, probability=0.9)

    world.store(10)
    world.store(6, "golden")
    world.make_live(world.run().version)
    world.store(10)
    ScriptedStudent.reset(slow)
    night = world.run()
    assert (night.state, night.attempts) == (NightState.DONE, 1)
    assert len(ScriptedStudent.calls) == 1 + 6 + 6


@pytest.mark.req("FR-5.1", "INV-6")
def test_an_invalid_or_cut_off_answer_is_wrong_at_confidence_0(world: World) -> None:
    world.store(4, "golden")
    ScriptedStudent.reset(lambda call: answer(*["nonsense"] * call.n, probability=0.9))
    evaluation = evaluate(world)
    assert (evaluation["threshold"], evaluation["golden_agreement"], evaluation["refused_n"]) == (1.01, 0.0, 0)


@pytest.mark.req("FR-14.1")
def test_a_tasks_own_policy_and_the_settings_reach_the_records(world: World) -> None:
    world.respec("triage", {**SPEC, "policy": {"target_precision": 0.9, "min_precision": 0.8}})
    world.store(4, "golden")
    record = evaluate(world)["tasks"]["triage"]
    assert (record["target_precision"], record["min_precision"], record["calibrated"]) == (0.9, 0.8, False)


@pytest.mark.req("FR-5.2")
def test_thresholds_aim_for_the_configured_precision(world: World) -> None:
    world.context = replace(world.context, nights=replace(world.context.nights, target_precision=0.985))
    world.store(4, "golden")
    assert evaluate(world)["tasks"]["triage"]["target_precision"] == 0.985


def test_probing_asks_until_a_row_is_answered(world: World) -> None:
    world.store(5, "golden")
    subject, golden = examiner(world)
    ScriptedStudent.reset(failing_for(["message 1", "message 2"], StudentUnavailable("HTTPError")))
    subject.probe(golden, ignore)
    assert len(ScriptedStudent.calls) == 3
    ScriptedStudent.reset(lambda call: StudentUnavailable("adapter_missing"))
    with pytest.raises(EvaluationFailed, match=r"^default-v1 cannot be sampled \(adapter_missing\)$"):
        subject.probe(golden, ignore)
    assert len(ScriptedStudent.calls) == 3
    ScriptedStudent.reset(always(RIGHT))
    subject.probe(golden, ignore)
    assert len(ScriptedStudent.calls) == 1


@pytest.mark.req("INV-10")
def test_probing_never_samples_a_task_that_was_pinned_while_the_night_trained(world: World) -> None:
    world.add_task("other", SPEC)
    world.store(5, "golden")
    world.store(1, "golden", task="other")
    version = create_candidate(world.student.pk, at=world.clock.now())
    golden = read_dataset(world.student, world.context.gateway).selection.golden
    Task.objects.filter(name="triage").update(is_runtime_pinned=True)
    Examiner(version, specs_of({"triage", "other"}), world.context).probe(golden, ignore)
    assert [call.task.name for call in ScriptedStudent.calls] == ["other"]
    Task.objects.update(is_runtime_pinned=True)
    with pytest.raises(EvaluationFailed, match="no golden row of a task that is not pinned"):
        Examiner(version, specs_of({"triage", "other"}), world.context).probe(golden, ignore)
    assert len(ScriptedStudent.calls) == 1
