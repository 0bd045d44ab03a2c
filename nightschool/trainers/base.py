"""The interface of a trainer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Progress = Callable[[int, int, str], None]
"""``progress(done, total, detail)``; cheap to call often, raises when the night was taken over by another worker."""


@dataclass(frozen=True, slots=True)
class Row:
    """One training or golden row, as the dataset rules let it through."""

    hash: str
    task: str
    messages: Sequence[dict[str, Any]]
    completion: str
    params: dict[str, Any] | None
    seen: int
    teacher_model: str
    licence: str
    redactions: int = 0


@dataclass(frozen=True, slots=True)
class Trained:
    """What a trainer made. ``artefact`` is data that serving needs to find and verify the weights (may be empty)."""

    adapter: str
    artefact: dict[str, Any]
    notes: str = ""


class TrainingFailed(Exception):
    """Training did not produce a student; the text says why and holds no training text."""


class Trainer(Protocol):
    """Trains one student from rows. Built per night with the night's and the gateway's settings.

    Training is idempotent: run again for the same adapter after a crash, it overwrites what it left behind.
    """

    def train(
        self, adapter: str, base_model: str, rows: Sequence[Row], tasks: dict[str, Any], progress: Progress
    ) -> Trained:
        """Train ``adapter`` on ``rows``; ``tasks`` maps names to ``TaskSpec``s. Raises ``TrainingFailed``."""
        ...
