"""Several processes tick, admit and promote at once: every decision is made once."""

import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from django.db import connection

from common.clock import ManualClock
from ledger.events import event_once
from ledger.models import Event, Student, Version
from release import gate, operator
from release.moves import Place, move
from release.operator import Intent
from release.policy import ReleasePolicy
from tests.release.builders import audits, build_version, place

POLICY = ReleasePolicy()
N = 6
T = TypeVar("T")


def other_acts_first(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let another process act between the gate's reading of the evidence and its move."""
    decide = gate.decide

    def decide_late(*args: object) -> object:
        monkeypatch.setattr(gate, "decide", decide)
        decision = decide(*args)
        act()
        return decision

    monkeypatch.setattr(gate, "decide", decide_late)


@pytest.mark.req("FR-12.9", "INV-29")
def test_two_ticks_advance_a_canary_once(make_version, clock, student, monkeypatch, log):
    canary = make_version("canary")
    audits(canary, 20, 20)

    def tick() -> list[str]:
        return gate.tick(student.pk, clock=clock, policy=POLICY)

    others: list[str] = []
    other_acts_first(monkeypatch, lambda: others.extend(tick()))
    assert tick() == []
    assert others == ["v1: canary 50%: 20 of 20 audits agree (100.0%) at 10%"]
    assert place(canary) == ("canary", 50, 4)
    assert [kind for kind, _ in log()] == ["canary"]


@pytest.mark.req("FR-12.9", "INV-5", "INV-29")
def test_an_operator_who_promotes_first_leaves_the_gate_nothing_to_do(make_version, clock, student, monkeypatch, log):
    old, canary = make_version("live", 1), make_version("canary", 2, traffic_pct=50)
    audits(canary, 20, 20)
    intent = Intent("ops", "it is good")
    other_acts_first(monkeypatch, lambda: operator.promote(canary.pk, "live", intent, clock=clock))
    assert gate.tick(student.pk, clock=clock, policy=POLICY) == []
    assert (place(old), place(canary)) == (("retired", 0, 4), ("live", 100, 4))
    assert [kind for kind, _ in log()] == ["admin", "admin"]


@pytest.mark.req("FR-12.1", "INV-29")
def test_a_freeze_that_is_committed_during_a_tick_holds_its_promotion(make_version, clock, student, monkeypatch):
    canary = make_version("canary")
    audits(canary, 20, 20)
    freeze = Intent("ops", "incident")
    other_acts_first(monkeypatch, lambda: operator.set_flag("releases_frozen", "on", freeze, clock=clock))
    assert gate.tick(student.pk, clock=clock, policy=POLICY) == []
    assert place(canary) == ("canary", 10, 3)


@pytest.fixture
def shared_student(shared_ledger: None) -> Student:
    """The default student, where other threads see it; only PostgreSQL can be shared like this in memory."""
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    return Student.objects.get()


def at_once(act: Callable[[int], T]) -> list[T | Exception]:
    """Run ``act`` in ``N`` threads that start together, each on its own connection; return what each came to."""
    start = threading.Barrier(N)
    outcomes: list[T | Exception] = []

    def run(number: int) -> None:
        try:
            connection.ensure_connection()
            start.wait(10)
            outcomes.append(act(number))
        except Exception as error:
            outcomes.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(N)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(outcomes) == N
    return outcomes


@pytest.fixture
def build(shared_student: Student, clock: ManualClock) -> Iterator[Callable[..., Version]]:
    """Build versions that every connection sees."""
    yield lambda state, number=1, **fields: build_version(shared_student, clock, state, number, **fields)


def kinds() -> list[str]:
    return list(Event.objects.order_by("pk").values_list("kind", flat=True))


@pytest.mark.postgres
@pytest.mark.req("FR-12.9", "INV-29")
def test_many_ticks_at_once_advance_a_canary_once(build, clock, shared_student):
    canary = build("canary")
    audits(canary, 20, 20)
    outcomes = at_once(lambda _: gate.tick(shared_student.pk, clock=clock, policy=POLICY))
    assert sorted(len(outcome) for outcome in outcomes) == [0] * (N - 1) + [1]
    assert place(canary) == ("canary", 50, 4)
    assert kinds() == ["canary"]


@pytest.mark.postgres
@pytest.mark.req("FR-12.9", "INV-5", "INV-29")
def test_many_promotions_at_once_make_one_live_version(build, clock, shared_student):
    old, canary = build("live", 1), build("canary", 2, traffic_pct=50)
    audits(canary, 20, 20)
    at_once(lambda _: gate.tick(shared_student.pk, clock=clock, policy=POLICY))
    assert (place(old), place(canary)) == (("retired", 0, 4), ("live", 100, 4))
    assert kinds() == ["live_retired", "live"]


@pytest.mark.postgres
@pytest.mark.req("FR-12.9", "INV-29")
def test_many_moves_of_what_all_have_seen_are_made_once(build, clock):
    canary = build("canary")
    share = Place("canary", 50)
    outcomes = at_once(lambda _: move(canary, share, kind="canary", detail="x", clock=clock).is_done)
    assert sorted(outcomes) == [False] * (N - 1) + [True]
    assert place(canary) == ("canary", 50, 4)
    assert kinds() == ["canary"]


@pytest.mark.postgres
@pytest.mark.req("INV-5", "INV-29")
def test_many_admissions_at_once_leave_one_version_in_flight(build, clock):
    candidates = [build("candidate", number) for number in range(1, N + 1)]
    outcomes = at_once(lambda number: gate.admit(candidates[number].pk, clock=clock, policy=POLICY).is_done)
    assert outcomes == [True] * N
    assert sorted(place(candidate)[0] for candidate in candidates) == ["canary"] + ["retired"] * (N - 1)
    assert sorted(kinds()) == ["canary"] * N + ["retired"] * (N - 1)


@pytest.mark.postgres
@pytest.mark.req("FR-6.7", "INV-29")
def test_many_ticks_at_once_alert_once(build, clock, shared_student):
    live = build("live")
    audits(live, 5, 20)
    at_once(lambda _: gate.tick(shared_student.pk, clock=clock, policy=POLICY))
    outcomes = at_once(lambda _: event_once("x", "y", clock=clock, student_id=live.student_id, version_id=live.pk))
    assert sorted(outcomes) == [False] * (N - 1) + [True]
    assert kinds() == ["alert", "x"]
