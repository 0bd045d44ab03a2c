"""Fixtures of the simulator's tests: a call as the cascade makes it, and a mock student trained on given tickets."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gateway.cascade.types import Answer, Call, Purpose, Role, StudentRoute, VersionRoute
from gateway.settings import GatewaySettings
from nightschool.settings import NightSettings
from nightschool.trainers.base import Row
from sim.mock_students import MockStudents
from sim.mock_trainer import MockTrainer
from sim.tickets import TASK_NAME, Ticket, task_spec

STUDENT = StudentRoute(id=1, name="default", backend="mock", base_model="mock")
SPEC = task_spec()


def make_call(
    messages: list[dict], role: Role = Role.STUDENT, purpose: Purpose = Purpose.SAMPLE, n: int = 3, **params: object
) -> Call:
    """A call as the cascade's generators yield it."""
    return Call(role, purpose, messages, n, params, 0.7, STUDENT, SPEC)


def make_row(ticket: Ticket, position: int = 0) -> Row:
    """A training row for ``ticket``."""
    return Row(f"{position:064x}", TASK_NAME, ticket.messages, "{}", None, 1, "m", "Apache-2.0")


@dataclass
class School:
    """A trainer and the backend that serves what it trains, over one folder."""

    settings: GatewaySettings

    def train(self, number: int, tickets: Iterable[Ticket]) -> VersionRoute:
        """Train version ``number`` on ``tickets``."""
        rows = [make_row(ticket, position) for position, ticket in enumerate(tickets)]
        adapter = f"student-v{number}"
        trained = MockTrainer(NightSettings(), self.settings).train(adapter, "mock", rows, {}, lambda *_: None)
        return VersionRoute(number, number, trained.adapter, 1, 0.8, artefact=trained.artefact)

    def students(self, seed: int = 0) -> MockStudents:
        """Build the backend as a gateway process does."""
        return MockStudents(self.settings, random.Random(seed))


@pytest.fixture
def school(tmp_path: Path) -> School:
    """A school with its own artefact folder."""
    return School(GatewaySettings(artefact_dir=str(tmp_path)))


@pytest.fixture
def ask() -> Callable[..., Answer]:
    """Sample a version on a ticket."""

    def sample(
        students: MockStudents, version: VersionRoute | None, ticket: Ticket, purpose: Purpose = Purpose.SAMPLE
    ) -> Answer:
        return students.sample_sync(replace(make_call(ticket.messages, purpose=purpose), version=version))

    return sample
