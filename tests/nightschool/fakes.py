"""Trainers that tests plug in by dotted path."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from nightschool.trainers.base import Progress, Row, Trained


@dataclass(frozen=True)
class TrainCall:
    """What a trainer was asked for."""

    adapter: str
    base_model: str
    rows: tuple[Row, ...]
    tasks: dict[str, Any]

    @property
    def hashes(self) -> list[str]:
        return [row.hash for row in self.rows]


class RecordingTrainer:
    """Remembers its calls; ``on_train`` may raise or do something in the middle of training."""

    calls: ClassVar[list[TrainCall]] = []
    on_train: ClassVar[Callable[[Progress], None] | None] = None

    def __init__(self, nights: Any, gateway: Any) -> None:
        pass

    def train(
        self, adapter: str, base_model: str, rows: Sequence[Row], tasks: dict[str, Any], progress: Progress
    ) -> Trained:
        type(self).calls.append(TrainCall(adapter, base_model, tuple(rows), tasks))
        if type(self).on_train is not None:
            type(self).on_train(progress)
        progress(len(rows), len(rows), "trained")
        return Trained(adapter, {"weights": f"{adapter}.bin"}, "recorded")


class Killed(BaseException):
    """Stands for kill -9: nothing of ours may catch it."""


class StallingTrainer(RecordingTrainer):
    """Stalls in the middle of training when told to, so that a process can be killed there."""

    def train(
        self, adapter: str, base_model: str, rows: Sequence[Row], tasks: dict[str, Any], progress: Progress
    ) -> Trained:
        progress(0, len(rows), "training")
        marker = os.environ.get("STALL_MARKER")
        if marker:
            Path(marker).touch()
            time.sleep(60)
        return super().train(adapter, base_model, rows, tasks, progress)
