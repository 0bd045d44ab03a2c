"""The trainer of the CPU classifier: stored teacher answers in, a content-addressed artefact out."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from gateway.settings import GatewaySettings
from gateway.students.linear import artefact
from gateway.students.linear.features import fold, user_text
from gateway.students.linear.model import TaskModel
from ledger.compare.comparators import Label
from ledger.taskspec import AnswerKey, TaskSpec
from nightschool.settings import NightSettings
from nightschool.trainers.alive import Step, run_alive
from nightschool.trainers.base import Progress, Row, Trained, TrainingFailed
from nightschool.trainers.linear_fit import REGULARISATION, TrainingTexts, fit_field

N_FOLDS = 5
MAX_WEIGHT = 3
"""A row weighs as often as it was seen, up to this: what recurs matters more, one request cannot drown the others."""


class ClassifierTrainer:
    """Trains on one core, in seconds, from nothing but the rows; the same rows give the same artefact."""

    def __init__(self, night: NightSettings, gateway: GatewaySettings) -> None:
        self._root = Path(gateway.artefact_dir)
        self._beat_s = night.hold_s / 4

    def train(
        self,
        adapter: str,
        base_model: str,  # noqa: ARG002 - it starts from nothing
        rows: Sequence[Row],
        tasks: dict[str, Any],
        progress: Progress,
    ) -> Trained:
        """Train every label task that has valid rows. Raises ``TrainingFailed`` when there is none."""
        read = [_TaskRows.of(spec, rows) for _, spec in sorted(tasks.items()) if spec.is_label_task]
        usable = [task for task in read if task.keys]
        if not usable:
            raise TrainingFailed("no task whose every field is a label has a valid training row")
        n_steps = sum(task.n_steps for task in usable)
        models = run_alive(lambda step: _fit_all(usable, step), n_steps, progress, beat_s=self._beat_s)
        settings = {"max_weight": MAX_WEIGHT, "n_folds": N_FOLDS, "regularisation": REGULARISATION}
        training = {"settings": settings, "rows": {task.spec.name: len(task.keys) for task in usable}}
        return Trained(
            adapter=adapter,
            artefact=artefact.write(self._root, adapter, models, training),
            notes="; ".join(task.note for task in usable),
        )


def _fit_all(tasks: "Sequence[_TaskRows]", step: Step) -> list[TaskModel]:
    with threadpool_limits(1):
        return [task.train(step) for task in tasks]


@dataclass(frozen=True, slots=True)
class _TaskRows:
    """The valid rows of one task: folded texts, answers, weights and fold numbers, one entry a row."""

    spec: TaskSpec
    texts: list[str]
    keys: list[AnswerKey]
    weights: list[int]
    folds: list[int]
    n_invalid: int

    @classmethod
    def of(cls, spec: TaskSpec, rows: Sequence[Row]) -> "_TaskRows":
        """Read the task's rows in the order of their hashes, so that the order they come in changes nothing."""
        mine = sorted((row for row in rows if row.task == spec.name), key=lambda row: row.hash)
        valid = [(row, key) for row in mine if (key := spec.key(spec.clean(row.completion))) is not None]
        texts = [fold(user_text(row.messages)) for row, _ in valid]
        return cls(
            spec=spec,
            texts=texts,
            keys=[key for _, key in valid],
            weights=[min(max(row.seen, 1), MAX_WEIGHT) for row, _ in valid],
            folds=[_fold_number(text) for text in texts],
            n_invalid=len(mine) - len(valid),
        )

    @property
    def n_steps(self) -> int:
        """How many fits it takes: the folds and the final one, for every field."""
        return len(self.spec.fields) * (len(set(self.folds)) + 1)

    @property
    def note(self) -> str:
        """What the night's record says of it."""
        invalid = f" ({self.n_invalid} invalid left out)" if self.n_invalid else ""
        return f"{self.spec.name}: {len(self.keys)} rows{invalid}"

    def train(self, step: Step) -> TaskModel:
        """Fit every field on the same vectors."""
        texts = TrainingTexts(self.texts, self.weights, self.folds)
        fitted = []
        for number, (name, comparator) in enumerate(self.spec.fields):
            assert isinstance(comparator, Label)  # noqa: S101 - is_label_task
            labels = np.array([key[number] for key in self.keys])
            fit_done = partial(step, f"{self.spec.name}.{name}")
            fitted.append(fit_field(name, comparator.values, labels, texts, fit_done))
        return TaskModel(
            task=self.spec.name,
            spec_hash=self.spec.spec_hash,
            blocks=texts.blocks,
            fields=tuple(field.field for field in fitted),
            coefficients=np.hstack([field.coefficients for field in fitted]),
            intercepts=np.hstack([field.intercepts for field in fitted]),
        )


def _fold_number(text: str) -> int:
    """Equal texts share a fold: else a held-out row would be scored by a model that trained on it."""
    return int(hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8], 16) % N_FOLDS
