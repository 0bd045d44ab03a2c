"""A night killed anywhere, resumed by another worker, ends as if nothing had happened."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import OperationalError

from ledger.models import ComputeInterval, Example, Night, Version, VersionLeaf
from ledger.vocabulary import NightState
from nightschool.lease import Lease, TakenOver, claim
from nightschool.night import MAX_ATTEMPTS, resume_stale, run_night
from nightschool.rules import dataset_sha256
from tests.fakes import ScriptedStudent, answer
from tests.nightschool.conftest import RIGHT, World, always
from tests.nightschool.fakes import Killed, RecordingTrainer

N_WRITES = 12
"""How often a night with a live version writes its row; ``test_the_kills_cover_every_write`` keeps it true."""


@pytest.fixture
def ready(world: World) -> World:
    """A world with a live version, ten new training rows and four golden ones."""
    world.store(10)
    world.store(4, "golden")
    world.make_live(world.run().version)
    world.store(10)
    RecordingTrainer.calls = []
    ScriptedStudent.reset(always(RIGHT))
    return world


def kill_at_write(monkeypatch: pytest.MonkeyPatch, number: int, *, after: bool) -> Callable[[], int]:
    """Die just before or just after the night row is written for the ``number``-th time; returns the count."""
    write, count = Lease.write, [0]

    def counted(self: Lease, *args: object, **changes: object) -> None:
        count[0] += 1
        if count[0] == number and not after:
            raise Killed
        write(self, *args, **changes)
        if count[0] == number:
            raise Killed

    monkeypatch.setattr(Lease, "write", counted)
    return lambda: count[0]


def assert_one_clean_night(world: World, night: Night, expected: set[tuple[str, str]]) -> None:
    """One version, one admission, one training record, and exactly the rows that were selected at first."""
    assert night.state == NightState.DONE
    version = Version.objects.get(number=2)
    assert night.version == version
    assert Version.objects.count() == 2
    assert set(version.leaves.values_list("split", "key")) == expected
    assert VersionLeaf.objects.filter(version=version).count() == len(expected)
    train = [key for split, key in expected if split == "train"]
    assert version.dataset_sha256 == dataset_sha256(train)
    assert sorted(RecordingTrainer.calls[-1].hashes) == sorted(train)
    assert {call.adapter for call in RecordingTrainer.calls} == {"default-v2"}
    assert (version.train_examples, version.state, version.stage) == (20, "shadow", 1)
    assert (version.evaluation["golden_n"], version.evaluation["precision"]) == (4, 1.0)
    assert world.events()[2:] == ["trained", "shadow"]
    assert ComputeInterval.objects.filter(version=version, ended_at=None).count() == 0


@pytest.mark.req("INV-29", "INV-4")
def test_the_kills_cover_every_write(ready: World, monkeypatch: pytest.MonkeyPatch) -> None:
    count = kill_at_write(monkeypatch, 0, after=False)
    assert ready.run().state == NightState.DONE
    assert count() == N_WRITES


@pytest.mark.req("INV-29", "INV-3", "FR-4.4")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(1, N_WRITES + 1))
def test_a_night_killed_at_any_write_ends_with_one_version_of_the_same_rows(
    ready: World, monkeypatch: pytest.MonkeyPatch, number: int, after: bool
) -> None:
    expected = {(split, key) for split, key in Example.objects.values_list("split", "hash")}
    night = ready.start()
    with monkeypatch.context() as patch:
        kill_at_write(patch, number, after=after)
        with pytest.raises(Killed):
            run_night(night.pk, ready.context)
    night.refresh_from_db()
    assert night.is_running
    assert run_night(night.pk, ready.context).attempts == 1, "the dead worker's lease still holds"
    assert resume_stale(ready.clock) == []
    if night.version_id is not None:
        # The selection is fixed by now: what the ledger learns meanwhile is the next night's.
        ready.store(5)
        Example.objects.filter(split="golden").update(seen=3)
    ready.lose_worker()
    assert resume_stale(ready.clock) == [night.pk]
    assert_one_clean_night(ready, run_night(night.pk, ready.context), expected)


@pytest.mark.req("INV-29")
@pytest.mark.parametrize("call_number", [1, 2, 5, 6, 9])
def test_a_night_killed_while_sampling_scores_again(ready: World, call_number: int) -> None:
    expected = {(split, key) for split, key in Example.objects.values_list("split", "hash")}

    def die(call) -> object:
        if len(ScriptedStudent.calls) == call_number:
            raise Killed
        return answer(*[RIGHT] * call.n, probability=0.9)

    ScriptedStudent.reset(die)
    night = ready.start()
    with pytest.raises(Killed):
        run_night(night.pk, ready.context)
    ScriptedStudent.reset(always(RIGHT))
    ready.lose_worker()
    assert_one_clean_night(ready, run_night(night.pk, ready.context), expected)
    assert len(RecordingTrainer.calls) == 1


@pytest.mark.req("INV-29")
def test_a_night_killed_in_training_trains_again_and_counts_only_the_time_machines_ran(ready: World) -> None:
    def die(progress) -> None:
        ready.clock.advance(timedelta(seconds=50))
        progress(1, 9, "halfway")
        ready.clock.advance(timedelta(seconds=30))
        raise Killed

    RecordingTrainer.on_train = die
    night = ready.start()
    with pytest.raises(Killed):
        run_night(night.pk, ready.context)
    ready.lose_worker()
    RecordingTrainer.on_train = lambda progress: ready.clock.advance(timedelta(seconds=80))
    night = run_night(night.pk, ready.context)
    assert night.state == NightState.DONE
    assert [call.adapter for call in RecordingTrainer.calls] == ["default-v2"] * 2
    assert RecordingTrainer.calls[0].rows == RecordingTrainer.calls[1].rows
    ran = ComputeInterval.objects.filter(version=night.version).order_by("pk")
    assert [(row.ended_at - row.started_at).total_seconds() for row in ran] == [50.0, 80.0]
    assert "resumed (training), attempt 2" in [entry["line"] for entry in night.log]


@pytest.mark.req("INV-29")
def test_a_database_that_goes_away_leaves_the_night_to_be_resumed(ready: World, monkeypatch) -> None:
    night = ready.start()
    with monkeypatch.context() as patch:
        patch.setattr(
            "nightschool.steps.admit", lambda *args, **options: (_ for _ in ()).throw(OperationalError("gone"))
        )
        with pytest.raises(OperationalError):
            run_night(night.pk, ready.context)
    night.refresh_from_db()
    assert (night.state, night.outcome) == (NightState.ADMITTING, "")
    ready.lose_worker()
    assert run_night(night.pk, ready.context).state == NightState.DONE


@pytest.mark.req("INV-29")
def test_a_night_that_kills_every_worker_is_given_up(ready: World) -> None:
    def die(progress) -> None:
        raise Killed

    RecordingTrainer.on_train = die
    night = ready.start()
    for _ in range(MAX_ATTEMPTS):
        with pytest.raises(Killed):
            run_night(night.pk, ready.context)
        ready.lose_worker()
    night = run_night(night.pk, ready.context)
    assert night.outcome == f"training: gave up: {MAX_ATTEMPTS} workers died while running it"
    assert [minutes_of(row) for row in ComputeInterval.objects.filter(version=night.version)] == [0.0] * MAX_ATTEMPTS
    assert night.state == NightState.FAILED
    assert len(RecordingTrainer.calls) == MAX_ATTEMPTS
    assert ready.events("night_failed") == ["night_failed"]
    assert Version.objects.get(number=2).state == "candidate"


def minutes_of(interval: ComputeInterval) -> float:
    assert interval.ended_at is not None
    return (interval.ended_at - interval.started_at).total_seconds() / 60


@pytest.mark.req("FR-15.2", "INV-27")
def test_machines_that_were_off_until_the_night_failed_are_not_counted_as_training(ready: World) -> None:
    def die(progress) -> None:
        ready.clock.advance(timedelta(minutes=10))
        progress(1, 9, "halfway")
        raise Killed

    RecordingTrainer.on_train = die
    night = ready.start()
    with pytest.raises(Killed):
        run_night(night.pk, ready.context)
    Example.objects.filter(split="train").update(purged_at=ready.clock.now())
    ready.clock.advance(timedelta(hours=7))
    night = run_night(night.pk, ready.context)
    assert night.outcome.endswith("training rows were erased or purged while the night ran")
    assert [minutes_of(row) for row in ComputeInterval.objects.filter(version=night.version)] == [10.0]


@pytest.mark.req("INV-29")
def test_a_worker_whose_night_was_taken_over_stops_without_writing(ready: World) -> None:
    night = ready.start()
    seen: list[Night] = []

    def lose_it(progress) -> None:
        RecordingTrainer.on_train = None
        ready.lose_worker()
        seen.append(run_night(night.pk, ready.context))
        progress(1, 2, "still here")
        raise AssertionError("the first worker went on")

    RecordingTrainer.on_train = lose_it
    after = run_night(night.pk, ready.context)
    assert seen[0].state == NightState.DONE
    for name in ("state", "outcome", "log", "holder", "updated_at", "finished_at", "attempts", "work"):
        assert getattr(after, name) == getattr(seen[0], name), name
    assert Version.objects.count() == 2
    assert ready.events()[2:] == ["trained", "shadow"]


@pytest.mark.req("INV-29")
def test_a_failure_after_the_takeover_is_nobodys_business(ready: World) -> None:
    night = ready.start()

    def lose_it_and_fail(progress) -> None:
        RecordingTrainer.on_train = None
        ready.lose_worker()
        run_night(night.pk, ready.context)
        raise ValueError("late")

    RecordingTrainer.on_train = lose_it_and_fail
    after = run_night(night.pk, ready.context)
    assert after.state == NightState.DONE
    assert ready.events("night_failed") == []


@pytest.mark.req("INV-29")
def test_progress_renews_the_lease_and_is_seen_while_the_night_runs(ready: World) -> None:
    hold = timedelta(seconds=ready.context.nights.hold_s)
    seen = []

    def train_slowly(progress) -> None:
        for done in range(5):
            ready.clock.advance(hold * 0.75)
            progress(done, 5, "epoch")
            seen.append(Night.objects.values_list("state", "done", "total", "detail", "held_until_at").get(pk=night.pk))
            assert claim(night.pk, ready.clock, 120) is None
            ready.clock.advance(timedelta(milliseconds=100))
            progress(done, 5, "too soon to write")

    RecordingTrainer.on_train = train_slowly
    night = ready.start()
    start = ready.clock.now()
    done = run_night(night.pk, ready.context)
    step = hold * 0.75 + timedelta(milliseconds=100)
    assert seen == [("training", n, 5, "epoch", start + step * n + hold * 0.75 + hold) for n in range(5)]
    assert (done.state, done.detail) == (NightState.DONE, "")


@pytest.mark.req("INV-29")
def test_a_lease_is_claimed_once_and_again_only_when_it_ran_out(world: World) -> None:
    night = world.start()
    first = claim(night.pk, world.clock, 60)
    assert first is not None
    assert claim(night.pk, world.clock, 60) is None
    world.clock.advance(timedelta(seconds=59))
    first.write("alive")
    world.clock.advance(timedelta(seconds=59))
    assert claim(night.pk, world.clock, 60) is None
    world.clock.advance(timedelta(seconds=1))
    second = claim(night.pk, world.clock, 60)
    assert second is not None
    with pytest.raises(TakenOver):
        first.write("too late")
    second.finish(NightState.DONE, "over")
    assert claim(night.pk, world.clock, 60) is None
    with pytest.raises(TakenOver):
        second.write("after the end")
    night.refresh_from_db()
    assert [entry["line"] for entry in night.log] == ["alive", "done: over"]
    assert night.attempts == 2


@pytest.mark.req("INV-29", "INV-28")
def test_a_lease_written_while_the_clock_was_years_ahead_holds_up_no_night(world: World) -> None:
    night = world.start()
    now = world.clock.now()
    world.clock.advance(timedelta(days=3650))
    dead = claim(night.pk, world.clock, 120)
    assert dead is not None
    world.clock.at = now
    assert resume_stale(world.clock) == [night.pk]
    assert claim(night.pk, world.clock, 120) is not None
    with pytest.raises(TakenOver):
        dead.write("back again")


@pytest.mark.req("INV-29")
def test_hosts_whose_clocks_differ_by_minutes_do_not_take_a_night_from_each_other(world: World) -> None:
    night = world.start()
    world.clock.advance(timedelta(minutes=30))
    assert claim(night.pk, world.clock, 3600) is not None
    world.clock.advance(-timedelta(minutes=30))
    assert resume_stale(world.clock) == []
    assert claim(night.pk, world.clock, 120) is None


@pytest.mark.req("INV-29")
def test_a_clock_that_is_set_back_does_not_stop_the_renewal(world: World) -> None:
    night = world.start()
    world.clock.advance(timedelta(hours=5))
    lease = claim(night.pk, world.clock, 120)
    assert lease is not None
    lease.write("before")
    world.clock.advance(-timedelta(hours=5))
    lease.progress(1, 9, "after")
    night.refresh_from_db()
    assert (night.held_until_at, night.detail) == (world.clock.now() + timedelta(seconds=120), "after")
    assert resume_stale(world.clock) == []
