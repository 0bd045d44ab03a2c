"""A small ledger, a night's context with recorded training and scripted students, and the moves a test needs."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from common.clock import ManualClock
from gateway.cascade.types import Answer, Call
from gateway.models import Models
from gateway.settings import GatewaySettings
from gateway.storing import prompt_hash
from ledger.models import Event, Example, Night, Student, Task, Version
from ledger.taskspec import parse_spec
from ledger.vocabulary import VersionState
from nightschool.context import NightContext
from nightschool.night import run_night, start_night
from nightschool.settings import NightSettings
from release.policy import ReleasePolicy
from tests.conftest import TEACHER_MODEL
from tests.fakes import ScriptedStudent, ScriptedTeacher, answer
from tests.nightschool.fakes import RecordingTrainer

TASK = "triage"
SPEC = {"fields": {"label": {"type": "label", "values": ["red", "blue"]}}}
RIGHT, WRONG = '{"label":"red"}', '{"label":"blue"}'


def always(text: str, probability: float = 0.9) -> Any:
    """A student that always answers ``text``, surely."""
    return lambda call: answer(*[text] * call.n, probability=probability)


@dataclass
class World:
    """A student with one label task, a trainer that records, and a clock that tests move."""

    clock: ManualClock
    student: Student
    context: NightContext
    n_stored: int = 0

    def store(self, n: int, split: str = "train", **values: Any) -> list[Example]:
        """Store ``n`` more examples with texts of their own."""
        rows = []
        for _ in range(n):
            self.n_stored += 1
            text = f"message {self.n_stored}"
            task = values.get("task", TASK)
            messages = [{"role": "user", "content": text}]
            row: dict[str, Any] = {
                "hash": f"{self.n_stored:064x}",
                "prompt_hash": prompt_hash(task, messages),
                "task": task,
                "messages": messages,
                "completion": RIGHT,
                "teacher_model": TEACHER_MODEL,
                "licence": "OpenMDW-1.1",
                "split": split,
                "origin": "escalation",
                "first_seen_at": self.clock.now(),
                "last_seen_at": self.clock.now(),
            }
            rows.append(Example(**{**row, **values}))
        return Example.objects.bulk_create(rows)

    def add_task(self, name: str, document: dict[str, Any], student: Student | None = None) -> Task:
        """Register another task."""
        spec = parse_spec(name, document)
        return Task.objects.create(
            name=name,
            student=student or self.student,
            spec=spec.document,
            spec_hash=spec.spec_hash,
            source="file",
            created_at=self.clock.now(),
            updated_at=self.clock.now(),
        )

    def respec(self, name: str, document: dict[str, Any]) -> None:
        """Change a task's spec."""
        spec = parse_spec(name, document)
        Task.objects.filter(name=name).update(spec=spec.document, spec_hash=spec.spec_hash)

    def start(self, *, is_scheduled: bool = False) -> Night:
        """Start a night for today, which the database must allow."""
        night = start_night(self.student.pk, on=self.clock.now().date(), clock=self.clock, is_scheduled=is_scheduled)
        assert night is not None
        return night

    def run(self) -> Night:
        """Start a night and run it to its end."""
        return run_night(self.start().pk, self.context)

    def lose_worker(self) -> None:
        """Let the lease of a killed worker run out."""
        self.clock.advance(timedelta(seconds=self.context.nights.hold_s))

    def put(self, version: Version, state: str, traffic_pct: int = 0) -> None:
        """Put a version into a state, as the release gate would."""
        current = Version.objects.get(pk=version.pk)
        Version.objects.filter(pk=version.pk).update(state=state, traffic_pct=traffic_pct, stage=current.stage + 1)

    def make_live(self, version: Version) -> None:
        """Make a version live and retire the one that was."""
        for live in self.student.versions.filter(state=VersionState.LIVE):
            self.put(live, VersionState.RETIRED)
        self.put(version, VersionState.LIVE, 100)

    def events(self, *kinds: str) -> list[str]:
        """Return the kinds of the events so far, oldest first; only the given ones if any."""
        found = Event.objects.order_by("pk").values_list("kind", flat=True)
        return [kind for kind in found if not kinds or kind in kinds]

    @staticmethod
    def event(kind: str) -> str:
        """Return the detail of the one event of a kind."""
        return Event.objects.values_list("detail", flat=True).get(kind=kind)


def night_context(clock: ManualClock, gateway: GatewaySettings, **changes: Any) -> NightContext:
    """A context with the recording trainer and scripted models."""
    nights = NightSettings(
        **{"min_new_examples": 10, "trainers": {"recording": "tests.nightschool.fakes.RecordingTrainer"}, **changes}
    )
    return NightContext(
        clock, nights, gateway, ReleasePolicy(), Models(gateway, random.Random(1), ScriptedTeacher(gateway))
    )


def make_world(clock: ManualClock, gateway: GatewaySettings) -> World:
    """Build the world on whatever ledger the test has."""
    Student.objects.update(backend="scripted", trainer="recording", base_model="base-model")
    world = World(clock, Student.objects.get(), night_context(clock, gateway))
    world.add_task(TASK, SPEC)
    RecordingTrainer.calls, RecordingTrainer.on_train = [], None
    ScriptedStudent.reset(always(RIGHT))
    return world


@pytest.fixture
def world(ledger: None, clock: ManualClock, gateway_settings: GatewaySettings) -> Iterator[World]:
    """A world inside a transaction."""
    yield make_world(clock, gateway_settings)
    RecordingTrainer.on_train = None


@pytest.fixture
def shared_world(shared_ledger: None, clock: ManualClock, gateway_settings: GatewaySettings) -> Iterator[World]:
    """A world that other threads can see."""
    yield make_world(clock, gateway_settings)
    RecordingTrainer.on_train = None


def asked(call: Call) -> str:
    """Return the text of a call's last message."""
    return str(call.messages[-1]["content"])


def by_text(answers: dict[str, tuple[str, float]]) -> Any:
    """A student that answers each text as scripted: (answer, probability)."""

    def script(call: Call) -> Answer:
        text, probability = answers[asked(call)]
        return answer(*[text] * call.n, probability=probability)

    return script
