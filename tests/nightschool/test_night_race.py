"""Several workers and several schedulers at once, on whichever engine the suite runs."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import pytest
from django.db import connection

from ledger.models import Event, Night, Version
from ledger.versions import create_candidate
from ledger.vocabulary import NightState
from nightschool.night import run_night, start_due_nights, start_night
from tests.nightschool.conftest import World
from tests.nightschool.fakes import RecordingTrainer

T = TypeVar("T")


def at_once(n: int, work: Callable[[], T]) -> list[T]:
    """Run ``work`` on ``n`` threads that start together, each with a connection of its own."""
    barrier = Barrier(n)

    def one() -> T:
        try:
            barrier.wait(10)
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(n) as pool:
        return [future.result(30) for future in [pool.submit(one) for _ in range(n)]]


@pytest.mark.req("INV-29", "INV-5")
def test_two_workers_racing_one_night_make_one_version(shared_world: World) -> None:
    world = shared_world
    world.store(10)
    world.store(4, "golden")
    night = world.start()
    at_once(2, lambda: run_night(night.pk, world.context))
    night.refresh_from_db()
    assert (night.state, night.attempts) == (NightState.DONE, 1)
    assert Version.objects.count() == 1
    assert len(RecordingTrainer.calls) == 1
    assert list(Event.objects.order_by("pk").values_list("kind", flat=True)) == ["trained", "canary"]


@pytest.mark.req("INV-29", "FR-4.4")
def test_schedulers_racing_start_one_night(shared_world: World) -> None:
    started = at_once(4, lambda: start_due_nights(shared_world.clock))
    assert sorted(len(nights) for nights in started) == [0, 0, 0, 1]
    assert Night.objects.count() == 1


@pytest.mark.req("INV-29")
def test_nights_by_hand_racing_start_one(shared_world: World) -> None:
    world = shared_world
    on = world.clock.now().date()
    started = at_once(4, lambda: start_night(world.student.pk, on=on, clock=world.clock, is_scheduled=False))
    assert sum(night is not None for night in started) == 1


@pytest.mark.req("INV-29")
def test_candidates_made_at_once_get_numbers_of_their_own(shared_world: World) -> None:
    world = shared_world
    made = at_once(4, lambda: create_candidate(world.student.pk, at=world.clock.now()).number)
    assert sorted(made) == [1, 2, 3, 4]
