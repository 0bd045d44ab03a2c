"""A version trained on a few sentences, and calls to sample it."""

import random
import shutil
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gateway.cascade.types import Call, Purpose, Role, StudentRoute, VersionRoute
from gateway.settings import GatewaySettings
from gateway.students.linear.model import FieldModel, LinearModel, TaskModel
from ledger.taskspec import TaskSpec, parse_spec
from nightschool.settings import NightSettings
from nightschool.trainers.base import Row, Trained
from nightschool.trainers.classifier import ClassifierTrainer

TRIAGE = parse_spec(
    "triage",
    {
        "fields": {
            "topic": {"type": "label", "values": ["billing", "login", "other"]},
            "urgent": {"type": "label", "values": ["yes", "no"]},
        }
    },
)
NOUNS = {
    "billing": ["invoice", "refund", "charge"],
    "login": ["password", "account", "code"],
    "other": ["colour", "tea"],
}


def sentences(n: int = 120) -> list[tuple[str, str, str]]:
    """Texts with a topic and an urgency that a linear model can learn, the same on every call."""
    rng = random.Random(3)
    rows = []
    for number in range(n):
        topic = rng.choice(sorted(NOUNS))
        urgent = rng.random() < 0.5
        hurry = "now please" if urgent else "some day"
        rows.append((f"My {rng.choice(NOUNS[topic])} number {number} {hurry}", topic, "yes" if urgent else "no"))
    return rows


def triage_rows(n: int = 120) -> list[Row]:
    """The sentences as training rows."""
    return [
        training_row("triage", text, f'{{"topic": "{topic}", "urgent": "{urgent}"}}', number)
        for number, (text, topic, urgent) in enumerate(sentences(n))
    ]


def training_row(task: str, text: str, completion: str, number: int, seen: int = 1) -> Row:
    """One row of a system prompt and a user turn."""
    messages = [{"role": "system", "content": "Sort it."}, {"role": "user", "content": text}]
    return Row(f"{number:064x}", task, messages, completion, None, seen, "teacher", "licence")


@pytest.fixture
def settings(tmp_path: Path) -> GatewaySettings:
    """Settings with an artefact folder of their own."""
    return GatewaySettings(artefact_dir=str(tmp_path / "adapters"))


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trained]:
    """A version of the triage task, trained once, and the folder its artefact is in."""
    folder = tmp_path_factory.mktemp("adapters")
    trainer = ClassifierTrainer(NightSettings(), GatewaySettings(artefact_dir=str(folder)))
    return folder, trainer.train("student-v1", "linear", triage_rows(), {"triage": TRIAGE}, lambda *_: None)


@pytest.fixture
def trained(settings: GatewaySettings, training: tuple[Path, Trained]) -> Trained:
    """The version, with a copy of its artefact that a test may damage."""
    shutil.copytree(training[0], settings.artefact_dir)
    return training[1]


CallMaker = Callable[..., Call]


@pytest.fixture
def call(trained: Trained) -> CallMaker:
    """Make a sampling call of the trained version."""

    def make(text: Any = "My invoice now please", task: TaskSpec = TRIAGE, **options: Any) -> Call:
        artefact = options.get("artefact", trained.artefact)
        return Call(
            role=Role.STUDENT,
            purpose=Purpose.SAMPLE,
            messages=[{"role": "system", "content": "Sort it."}, {"role": "user", "content": text}],
            n=options.get("n", 3),
            params={},
            temperature=options.get("temperature", 0.7),
            student=StudentRoute(1, "default", "classifier", "linear"),
            task=task,
            version=VersionRoute(1, 1, "student-v1", 0, 0.8, artefact=artefact),
        )

    return make


def toy_model(probabilities: dict[str, float], task: str = "triage") -> LinearModel:
    """A model of one field that gives every text the same probabilities."""
    return LinearModel(
        {
            task: TaskModel(
                task=task,
                spec_hash="",
                blocks=(),
                fields=(FieldModel("topic", tuple(probabilities), 1.0),),
                coefficients=np.zeros((0, len(probabilities)), np.float32),
                intercepts=np.array([log(p) for p in probabilities.values()], np.float32),
            )
        }
    )
