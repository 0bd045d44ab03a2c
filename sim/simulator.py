"""The simulator: days of mock traffic through the real cascade, ledger, nights and release gate.

It runs in the ledger that is the default database when it is called; ``sim.private_ledger`` provides one.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from common.clock import ManualClock
from gateway.engine import SyncEngine
from gateway.models import Models
from ledger.models import Student
from ledger.tasks import save_task
from ledger.vocabulary import DEFAULT_STUDENT, TaskSource
from nightschool.context import NightContext
from nightschool.night import run_night, start_night
from release.gate import tick
from sim.mock_students import MockStudents
from sim.scenario import BACKEND, FIRST_DAY, TICKS_A_DAY, Scenario
from sim.tickets import SPEC_DOCUMENT, TASK_NAME, draw_tickets

_HOURS_OF_TRAFFIC = timedelta(hours=22)
_NIGHT_AT = timedelta(hours=23)


@dataclass(frozen=True, slots=True)
class _World:
    """The services of one run, and the two generators that are its own: of traffic, and of routing and audits."""

    context: NightContext
    clock: ManualClock
    student: Student
    engine: SyncEngine
    traffic: random.Random


def simulate(scenario: Scenario, seed: int, folder: str) -> Iterator[int]:
    """Run ``scenario``, yielding the number of each day when its night is over; artefacts lie under ``folder``.

    The same scenario and seed give the same run. The ledger must be fresh.
    """
    world = _build(scenario, seed, folder)
    for day in range(1, scenario.days + 1):
        _serve_day(world, scenario, day)
        _sleep_on_it(world, day)
        yield day


def _build(scenario: Scenario, seed: int, folder: str) -> _World:
    clock = ManualClock(FIRST_DAY)
    gateway = scenario.gateway(folder)
    models = Models(gateway, _generator(seed, "students"))
    students = cast(MockStudents, models.backend(BACKEND))
    students.deploy_corrupted(scenario.bad_deploy_version)
    student = _enrol(clock)
    return _World(
        context=NightContext(clock, scenario.nights(folder), gateway, scenario.policy(), models),
        clock=clock,
        student=student,
        engine=SyncEngine(gateway, models, clock, _generator(seed, "routing")),
        traffic=_generator(seed, "traffic"),
    )


def _generator(seed: int, purpose: str) -> random.Random:
    """Return a generator of its own per purpose, so that more draws for one never shift another."""
    return random.Random(f"{seed}/{purpose}")


def _enrol(clock: ManualClock) -> Student:
    """Make the default student a mock one and register its task."""
    student = Student.objects.get(name=DEFAULT_STUDENT)
    student.base_model, student.backend, student.trainer = "mock-student", BACKEND, BACKEND
    student.save()
    save_task(TASK_NAME, SPEC_DOCUMENT, student, TaskSource.BUILTIN, clock)
    return student


def _serve_day(world: _World, scenario: Scenario, day: int) -> None:
    """Serve a day's requests, evenly spread, with ``TICKS_A_DAY`` looks of the release gate."""
    midnight, n = FIRST_DAY + timedelta(days=day - 1), scenario.requests
    tickets = draw_tickets(world.traffic, n, has_launched=scenario.has_launched(day))
    for served, ticket in enumerate(tickets, 1):
        world.clock.at = midnight + _HOURS_OF_TRAFFIC * served / n
        world.engine.handle(TASK_NAME, ticket.messages)
        if served * TICKS_A_DAY // n > (served - 1) * TICKS_A_DAY // n:
            _look(world)


def _look(world: _World) -> None:
    world.engine.flush()
    if tick(world.student.pk, clock=world.clock, policy=world.context.policy):
        world.engine.refresh()


def _sleep_on_it(world: _World, day: int) -> None:
    """Run the day's night to its end, in this process."""
    world.engine.flush()
    world.clock.at = FIRST_DAY + timedelta(days=day - 1) + _NIGHT_AT
    night = start_night(world.student.pk, on=world.clock.now().date(), clock=world.clock, is_scheduled=True)
    if night is not None:
        run_night(night.pk, world.context)
    world.engine.refresh()
