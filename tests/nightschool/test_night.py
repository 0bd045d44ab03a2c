"""What a night does from its start to its end, and why it skips or fails."""

from datetime import UTC, date, datetime, time, timedelta

import pytest
from django.db import OperationalError

from common.clock import ManualClock
from ledger.models import ComputeInterval, Event, Example, Night, RuntimeFlag, Student, Task, Version, VersionLeaf
from ledger.vocabulary import Flag, NightState, VersionState
from nightschool import steps
from nightschool.evaluation import Examiner
from nightschool.night import resume_stale, run_night, start_due_nights, start_night
from nightschool.rules import dataset_sha256, leaf_value
from nightschool.trainers.base import TrainingFailed
from tests.fakes import ScriptedStudent, answer
from tests.nightschool.conftest import RIGHT, SPEC, WRONG, World, always, asked, night_context
from tests.nightschool.fakes import RecordingTrainer

BIGGER_SPEC = {"fields": {"label": {"type": "label", "values": ["red", "blue", "green"]}}}


def scored_versions(world: World) -> list[str]:
    """Return the adapters in the order their golden evaluations began (the probe left aside)."""
    adapters = [call.version.adapter for call in ScriptedStudent.calls]
    return [adapter for place, adapter in enumerate(adapters) if place == 0 or adapters[place - 1] != adapter]


@pytest.mark.req("FR-4.2", "FR-4.4", "INV-3", "INV-14")
def test_a_night_trains_a_candidate_and_hands_it_to_the_gate(world: World) -> None:
    train = world.store(10)
    frequent = world.store(1, "golden", seen=3)
    golden = world.store(8, "golden")
    night = world.run()
    version = Version.objects.get()
    assert (night.state, night.version_id) == (NightState.DONE, version.pk)
    assert night.outcome == "v1: canary 10%: first student; golden precision 100.0% (4 of 4 rows), coverage 100.0%"
    assert (version.number, version.adapter, version.base_model) == (1, "default-v1", "base-model")
    assert (version.state, version.traffic_pct, version.stage) == (VersionState.CANARY, 10, 1)
    assert (version.train_examples, version.artefact) == (11, {"weights": "default-v1.bin"})
    assert version.dataset_sha256 == dataset_sha256(row.hash for row in (*train, *frequent))
    assert (version.evaluation["golden_n"], version.evaluation["precision"]) == (8, 1.0)
    assert "rechecked_on" not in version.evaluation
    (call,) = RecordingTrainer.calls
    assert (call.adapter, call.base_model, list(call.tasks)) == ("default-v1", "base-model", ["triage"])
    assert call.hashes == [row.hash for row in (*train, *frequent)]
    assert {asked(call) for call in ScriptedStudent.calls} == {row.messages[0]["content"] for row in golden}
    leaves = set(VersionLeaf.objects.values_list("split", "key", "value"))
    assert leaves == {("train", row.hash, leaf_value(row)) for row in call.rows} | {
        ("golden", row.hash, leaf_value(call.rows[0])) for row in golden
    }
    assert world.events() == ["trained", "canary"]
    assert world.event("trained") == "v1: default-v1, 11 training rows, night of 2026-11-02"
    assert (night.holder, night.held_until_at, night.attempts) == ("", None, 1)
    assert night.finished_at == world.clock.now()


@pytest.mark.req("FR-4.2")
def test_a_night_tells_its_story_in_its_log(world: World) -> None:
    world.store(10)
    world.store(1, completion='{"label":"green"}')
    world.store(4, "golden")
    night = world.run()
    assert night.log == [
        {"at": "2026-11-02T12:00:00+00:00", "line": line}
        for line in (
            "default-v1: 10 training rows, 4 golden, 1 invalid",
            "training default-v1 from base-model",
            "trained default-v1: recorded",
            "default-v1 answers",
            "default-v1: golden precision 100.0% (2 of 2 rows), coverage 100.0%",
            "done: v1: canary 10%: first student; golden precision 100.0% (2 of 2 rows), coverage 100.0%",
        )
    ]
    assert night.work["excluded"] == {"invalid": 1}


@pytest.mark.req("FR-4.2")
def test_every_night_trains_from_the_base_on_all_rows_so_far(world: World) -> None:
    world.store(8, "golden")
    for n_new in (10, 15, 12):
        world.store(n_new)
        night = world.run()
        assert night.state == NightState.DONE
        world.make_live(night.version)
        world.clock.advance(timedelta(days=1))
    assert [len(call.rows) for call in RecordingTrainer.calls] == [10, 25, 37]
    assert {call.base_model for call in RecordingTrainer.calls} == {"base-model"}
    assert set(RecordingTrainer.calls[0].hashes) < set(RecordingTrainer.calls[1].hashes)
    assert set(RecordingTrainer.calls[1].hashes) < set(RecordingTrainer.calls[2].hashes)
    numbers = Version.objects.order_by("number").values_list("adapter", "train_examples", "base_model")
    assert list(numbers) == [(f"default-v{n}", rows, "base-model") for n, rows in ((1, 10), (2, 25), (3, 37))]


@pytest.mark.req("INV-4")
def test_the_live_version_is_scored_again_on_the_same_rows_before_the_candidate(world: World) -> None:
    world.store(10)
    world.store(8, "golden")
    live = world.run().version
    world.make_live(live)
    stale = {**live.evaluation, "precision": 1.0, "coverage": 1.0}
    disabled = {"threshold": 1.01, "disabled": "by hand", "spec_hash": "old"}
    Version.objects.filter(pk=live.pk).update(evaluation={**stale, "tasks": {"gone": disabled}})
    world.store(10)
    world.store(4, "golden")
    world.clock.advance(timedelta(days=1))
    # Both versions are unsure of half of the rows now: the candidate would regress against the stale evaluation.
    unsure = {f"message {n}" for n in range(9, 40, 2)}
    ScriptedStudent.reset(lambda call: answer(*([RIGHT] * 2 + [WRONG] if asked(call) in unsure else [RIGHT] * 3)))
    night = world.run()
    assert night.state == NightState.DONE
    assert scored_versions(world) == ["default-v2", "default-v1", "default-v2"]
    asked_of = {
        adapter: [asked(call) for call in ScriptedStudent.calls[1:] if call.version.adapter == adapter]
        for adapter in ("default-v1", "default-v2")
    }
    assert asked_of["default-v1"] == asked_of["default-v2"]
    assert len(asked_of["default-v1"]) == 12
    live.refresh_from_db()
    assert live.evaluation["rechecked_on"] == "2026-11-03"
    assert live.evaluation["golden_n"] == 12
    assert live.evaluation["tasks"]["gone"] == disabled
    assert live.state == VersionState.LIVE
    assert night.version.evaluation["coverage"] == live.evaluation["coverage"]
    assert Version.objects.get(number=2).state == VersionState.SHADOW


@pytest.mark.req("INV-4")
def test_when_another_version_goes_live_meanwhile_both_are_scored_again(world: World, monkeypatch) -> None:
    world.store(10)
    world.store(4, "golden")
    old = world.run().version
    world.make_live(old)
    world.store(10)
    newer = steps.create_candidate(world.student.pk, at=world.clock.now())
    original, went_live = Examiner.evaluate, []

    def evaluate(self: Examiner, *args: object) -> dict:
        result = original(self, *args)
        if self._version.number == 3 and not went_live:
            went_live.append(True)
            world.make_live(newer)
        return result

    monkeypatch.setattr(Examiner, "evaluate", evaluate)
    ScriptedStudent.reset(always(RIGHT))
    night = world.run()
    assert night.state == NightState.DONE
    assert scored_versions(world) == ["default-v3", "default-v1", "default-v3", "default-v2", "default-v3"]
    newer.refresh_from_db()
    assert newer.evaluation["rechecked_on"] == "2026-11-02"
    assert world.events("shadow") == ["shadow"]


def pause(world: World) -> None:
    now = world.clock.now()
    RuntimeFlag.objects.create(name=Flag.TRAINING_PAUSED, value="on", updated_at=now, updated_by="op")


def in_flight(state: str, traffic_pct: int = 0):
    def prepare(world: World) -> None:
        world.put(steps.create_candidate(world.student.pk, at=world.clock.now()), state, traffic_pct)

    return prepare


def enough(world: World) -> None:
    world.store(10)
    world.store(4, "golden")


def trained_before(n_train: int):
    def prepare(world: World) -> None:
        version = steps.create_candidate(world.student.pk, at=world.clock.now())
        Version.objects.filter(pk=version.pk).update(train_examples=n_train)
        world.put(version, "rejected")

    return prepare


@pytest.mark.req("FR-4.4", "INV-5")
@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        ([enough, pause], "training paused"),
        ([enough, in_flight("shadow")], "release in flight: v1 (shadow)"),
        ([enough, in_flight("canary", 10)], "release in flight: v1 (canary)"),
        ([lambda world: world.store(9), lambda world: world.store(4, "golden")], "too few new examples: 9 of 10"),
        ([enough, trained_before(3)], "too few new examples: 7 of 10"),
        ([lambda world: world.store(10)], "no golden rows"),
        ([], "too few new examples: 0 of 10"),
    ],
)
def test_a_night_skips_with_its_reason(world: World, prepare: list, reason: str) -> None:
    for step in prepare:
        step(world)
    before = list(Version.objects.values())
    night = world.run()
    assert (night.state, night.outcome, night.version) == (NightState.SKIPPED, reason, None)
    assert world.events() == ["skip"]
    assert world.event("skip") == f"night of 2026-11-02: {reason}"
    assert list(Version.objects.values()) == before
    assert (RecordingTrainer.calls, ScriptedStudent.calls) == ([], [])
    assert VersionLeaf.objects.count() == 0
    assert night.finished_at == world.clock.now()


@pytest.mark.req("FR-4.4", "FR-13.1")
def test_a_night_skips_while_storage_is_disabled(world: World) -> None:
    enough(world)
    world.context = night_context(world.clock, world.context.gateway, stores_examples=False)
    assert world.run().outcome == "storage disabled"
    assert RecordingTrainer.calls == []


@pytest.mark.req("FR-4.4")
def test_exactly_enough_new_examples_train(world: World) -> None:
    enough(world)
    assert world.run().state == NightState.DONE


@pytest.mark.req("FR-4.4")
def test_a_candidate_that_never_finished_training_does_not_count_as_trained(world: World) -> None:
    enough(world)
    RecordingTrainer.on_train = fail_training
    assert world.run().state == NightState.FAILED
    RecordingTrainer.on_train = None
    night = world.run()
    assert (night.state, night.version.number) == (NightState.DONE, 2)


@pytest.mark.req("FR-4.4", "INV-7")
def test_the_next_night_trains_the_rows_of_a_candidate_that_an_outage_kept_from_being_scored(world: World) -> None:
    enough(world)
    ScriptedStudent.reset(lambda call: OSError("down"))
    assert world.run().state == NightState.FAILED
    ScriptedStudent.reset(always(RIGHT))
    night = world.run()
    assert (night.state, night.version.number, night.version.train_examples) == (NightState.DONE, 2, 10)
    assert Version.objects.get(number=1).state == VersionState.CANDIDATE


@pytest.mark.req("FR-2.3", "INV-4", "FR-2.15")
def test_too_few_examples_still_rescore_the_live_version_after_a_spec_change(world: World) -> None:
    enough(world)
    live = world.run().version
    world.make_live(live)
    ScriptedStudent.reset(always(RIGHT))
    assert world.run().outcome == "too few new examples: 0 of 10"
    assert ScriptedStudent.calls == []
    world.respec("triage", BIGGER_SPEC)
    world.clock.advance(timedelta(days=1))
    night = world.run()
    assert (night.state, night.outcome) == (NightState.SKIPPED, "too few new examples: 0 of 10")
    live.refresh_from_db()
    assert live.evaluation["tasks"]["triage"]["spec_hash"] == Task.objects.get(name="triage").spec_hash
    assert live.evaluation["rechecked_on"] == "2026-11-03"
    assert world.event("rescored").startswith("v1: new spec of triage; golden precision 100.0%")
    assert len(ScriptedStudent.calls) == 4
    world.run()
    assert len(ScriptedStudent.calls) == 4


@pytest.mark.req("FR-2.3", "INV-4")
def test_a_failed_rescore_changes_nothing_and_is_tried_again(world: World) -> None:
    enough(world)
    live = world.run().version
    world.make_live(live)
    world.respec("triage", BIGGER_SPEC)
    ScriptedStudent.reset(lambda call: OSError("down"))
    night = world.run()
    assert night.state == NightState.SKIPPED
    assert world.event("rescore_failed") == (
        "v1: new spec of triage: 1 of 4 golden calls to default-v1 failed (1 OSError)"
    )
    before = live.evaluation
    live.refresh_from_db()
    assert live.evaluation == before
    ScriptedStudent.reset(always(RIGHT))
    world.run()
    assert world.events("rescored") == ["rescored"]


@pytest.mark.req("INV-4")
def test_no_rescore_while_a_release_is_in_flight(world: World) -> None:
    enough(world)
    world.make_live(world.run().version)
    world.respec("triage", BIGGER_SPEC)
    in_flight("shadow")(world)
    ScriptedStudent.reset(always(RIGHT))
    assert world.run().outcome == "release in flight: v2 (shadow)"
    assert ScriptedStudent.calls == []


def fail_training(progress) -> None:
    raise TrainingFailed("loss is not finite")


@pytest.mark.req("FR-4.4")
def test_failed_training_fails_the_night_with_its_text(world: World) -> None:
    enough(world)
    RecordingTrainer.on_train = fail_training
    night = world.run()
    assert (night.state, night.outcome) == (NightState.FAILED, "training: TrainingFailed: loss is not finite")
    assert world.events() == ["night_failed"]
    assert world.event("night_failed") == "night of 2026-11-02: training: TrainingFailed: loss is not finite"
    version = Version.objects.get()
    assert (version.state, version.train_examples, version.evaluation) == (VersionState.CANDIDATE, 0, {})
    assert night.finished_at == world.clock.now()
    assert ComputeInterval.objects.get().ended_at == world.clock.now()


@pytest.mark.req("INV-12")
def test_any_other_error_is_named_by_its_class_only(world: World, caplog) -> None:
    enough(world)

    def leak(progress) -> None:
        raise ValueError(" ".join(["a", "customer", "wrote"]))

    RecordingTrainer.on_train = leak
    night = world.run()
    assert night.outcome == "training: ValueError"
    assert "a customer wrote" not in caplog.text
    assert "leak" in caplog.text


@pytest.mark.req("INV-7")
def test_a_candidate_that_nobody_could_load_is_not_scored(world: World) -> None:
    enough(world)
    ScriptedStudent.reset(lambda call: OSError("down"))
    night = world.run()
    assert night.outcome == "loading: EvaluationFailed: default-v1 cannot be sampled (OSError)"
    assert Version.objects.get().state == VersionState.CANDIDATE
    assert world.events() == ["trained", "night_failed"]


def test_an_unregistered_trainer_fails_the_night(world: World) -> None:
    enough(world)
    Student.objects.update(trainer="nobody")
    assert world.run().outcome == ("training: ConfigurationError: trainer 'nobody' is not registered; known: recording")


@pytest.mark.req("INV-24")
def test_an_erasure_during_training_of_a_killed_night_fails_it(world: World) -> None:
    enough(world)

    def erase(progress) -> None:
        Example.objects.filter(split="train").update(messages=None, completion=None, purged_at=world.clock.now())
        raise OperationalError("gone")

    RecordingTrainer.on_train = erase
    night = world.start()
    with pytest.raises(OperationalError):
        run_night(night.pk, world.context)
    world.lose_worker()
    RecordingTrainer.on_train = None
    night = run_night(night.pk, world.context)
    assert night.outcome == "training: DatasetChanged: 10 training rows were erased or purged while the night ran"
    assert len(RecordingTrainer.calls) == 1


@pytest.mark.req("INV-10")
def test_a_task_pinned_before_training_began_fails_the_night(world: World, monkeypatch) -> None:
    enough(world)
    commit = steps._commit

    def commit_then_pin(*args: object) -> None:
        commit(*args)
        Task.objects.filter(name="triage").update(is_runtime_pinned=True)

    monkeypatch.setattr(steps, "_commit", commit_then_pin)
    night = world.run()
    assert night.outcome == ("training: DatasetChanged: a task was pinned or its spec changed before training began")
    assert RecordingTrainer.calls == []


@pytest.mark.req("FR-4.4")
def test_training_time_is_recorded(world: World) -> None:
    enough(world)
    RecordingTrainer.on_train = lambda progress: world.clock.advance(timedelta(minutes=7))
    version = world.run().version
    interval = ComputeInterval.objects.get()
    assert (interval.kind, interval.version_id, interval.source) == ("training_job", version.pk, "night")
    assert interval.ended_at - interval.started_at == timedelta(minutes=7)


@pytest.mark.req("INV-29", "FR-4.4")
def test_one_night_runs_per_student_and_one_is_scheduled_per_date(world: World) -> None:
    on = world.clock.now().date()

    def start(day: date = on, *, is_scheduled: bool = True) -> Night | None:
        return start_night(world.student.pk, on=day, clock=world.clock, is_scheduled=is_scheduled)

    first = start()
    assert (first.state, first.attempts, first.holder) == (NightState.BUILDING, 0, "")
    assert start(is_scheduled=False) is None
    run_night(first.pk, world.context)
    assert start() is None
    assert start(is_scheduled=False) is not None
    assert start(on + timedelta(days=1)) is None
    assert Night.objects.count() == 2
    assert Event.objects.count() == 1


@pytest.mark.req("FR-4.4", "INV-29")
def test_a_scheduled_night_starts_once_a_day_after_the_students_time(world: World) -> None:
    clock = ManualClock(datetime(2026, 11, 2, 1, 59, 59, tzinfo=UTC))
    Student.objects.update(night_at=time(2, 0))
    Student.objects.create(
        name="off", base_model="b", backend="x", trainer="x", is_night_enabled=False, created_at=clock.now()
    )
    assert start_due_nights(clock) == []
    clock.advance(timedelta(seconds=1))
    (night,) = start_due_nights(clock)
    assert (night.student, night.on, night.is_scheduled) == (world.student, date(2026, 11, 2), True)
    assert start_due_nights(clock) == []
    run_night(night.pk, world.context)
    clock.advance(timedelta(hours=20))
    assert start_due_nights(clock) == []
    clock.advance(timedelta(hours=4))
    assert [night.on for night in start_due_nights(clock)] == [date(2026, 11, 3)]


@pytest.mark.req("FR-4.4")
@pytest.mark.parametrize(
    ("looked_at", "expected"),
    [
        (datetime(2026, 11, 2, 23, 59, 29, tzinfo=UTC), []),
        (datetime(2026, 11, 2, 23, 59, 30, tzinfo=UTC), [date(2026, 11, 2)]),
        (datetime(2026, 11, 3, 0, 0, 10, tzinfo=UTC), [date(2026, 11, 2)]),
        (datetime(2026, 11, 3, 0, 29, 30, tzinfo=UTC), [date(2026, 11, 2)]),
        (datetime(2026, 11, 3, 0, 29, 31, tzinfo=UTC), []),
        (datetime(2026, 11, 3, 12, 0, 0, tzinfo=UTC), []),
    ],
)
def test_a_night_just_before_midnight_starts_also_when_beat_looks_just_after_it(
    world: World, looked_at: datetime, expected: list[date]
) -> None:
    Student.objects.update(night_at=time(23, 59, 30), created_at=datetime(2026, 11, 1, tzinfo=UTC))
    clock = ManualClock(looked_at)
    assert [night.on for night in start_due_nights(clock)] == expected
    assert start_due_nights(clock) == []


@pytest.mark.req("FR-4.4")
def test_a_student_that_is_new_after_midnight_has_no_night_of_the_day_before(world: World) -> None:
    clock = ManualClock(datetime(2026, 11, 3, 0, 10, tzinfo=UTC))
    Student.objects.update(night_at=time(23, 59), created_at=clock.now())
    assert start_due_nights(clock) == []


def test_a_night_by_hand_does_not_take_the_scheduled_ones_place(world: World) -> None:
    world.run()
    assert [night.is_scheduled for night in start_due_nights(world.clock)] == [True]


@pytest.mark.req("INV-28")
def test_nights_nobody_picked_up_are_found_after_a_grace(world: World) -> None:
    night = world.start()
    assert resume_stale(world.clock) == []
    world.clock.advance(timedelta(seconds=30))
    assert resume_stale(world.clock) == [night.pk]
    assert resume_stale(world.clock) == []
    world.clock.advance(timedelta(seconds=30))
    assert resume_stale(world.clock) == [night.pk]
    run_night(night.pk, world.context)
    assert resume_stale(world.clock) == []


@pytest.mark.req("FR-4.4")
def test_running_an_ended_night_again_changes_nothing(world: World) -> None:
    enough(world)
    night = world.run()
    rows, events = list(Version.objects.values()), world.events()
    again = run_night(night.pk, world.context)
    assert (again.state, again.attempts) == (NightState.DONE, 1)
    assert (list(Version.objects.values()), world.events()) == (rows, events)
    assert len(RecordingTrainer.calls) == 1


@pytest.mark.req("FR-14.1")
def test_a_task_that_fails_on_its_own_rows_is_disabled_by_the_gate(world: World) -> None:
    world.add_task("hard", SPEC)
    world.store(20)
    world.store(60, "golden")
    world.store(22, "golden", task="hard", completion=WRONG)
    night = world.run()
    assert night.state == NightState.DONE
    assert night.version.evaluation["tasks"]["hard"]["threshold"] == 1.01
    assert night.version.evaluation["tasks"]["triage"]["precision"] == 1.0
