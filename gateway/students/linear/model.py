"""One version's models: for each task, linear scores of a text's TF-IDF features, turned into probabilities."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, fsum, log, sqrt

import numpy as np
from numpy.typing import NDArray

from gateway.students.linear.features import Block, fold

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class BlockModel:
    """The terms of one block of features; term ``i`` is row ``first_row + i`` of the task's coefficients.

    ``idf`` has one entry a term.
    """

    block: Block
    terms: Sequence[str]
    idf: Floats
    first_row: int

    @cached_property
    def index(self) -> dict[str, int]:
        """Each term's place."""
        return {term: place for place, term in enumerate(self.terms)}

    def vector(self, folded: str) -> tuple[list[int], Floats] | None:
        """Return the coefficient rows and values of a folded text; ``None`` when it has no known term.

        Values are ``(1 + ln tf) * idf``, scaled to the block's weight: scikit-learn's ``sublinear_tf`` and ``l2``.
        """
        place_of = self.index.get
        places, frequencies = [], []
        for term, n in Counter(self.block.analyse(folded)).items():
            place = place_of(term)
            if place is not None:
                places.append(place)
                frequencies.append(1.0 if n == 1 else 1.0 + log(n))
        if not places:
            return None
        values = self.idf.take(places) * np.array(frequencies, dtype=np.float32)
        values *= self.block.weight / sqrt(values.dot(values))
        return [place + self.first_row for place in places], values


@dataclass(frozen=True, slots=True)
class FieldModel:
    """One field of a task's answers: its labels and the factor that makes its scores calibrated log-odds."""

    name: str
    labels: tuple[str, ...]
    scale: float


@dataclass(frozen=True)
class TaskModel:
    """One task: ``coefficients`` is (terms, labels), ``intercepts`` is (labels,), labels of all fields side by side."""

    task: str
    spec_hash: str
    blocks: tuple[BlockModel, ...]
    fields: tuple[FieldModel, ...]
    coefficients: Floats
    intercepts: Floats

    def scores(self, text: str) -> Floats:
        """Return the decision function of one text, (labels,)."""
        folded = fold(text)
        scores = self.intercepts
        for block in self.blocks:
            vector = block.vector(folded)
            if vector is not None:
                rows, values = vector
                scores = scores + values.dot(self.coefficients.take(rows, axis=0))
        return scores

    def probabilities(self, text: str) -> list[list[float]]:
        """Return, for each field, the calibrated probability of each of its labels."""
        scores = self.scores(text).tolist()
        found, start = [], 0
        for field in self.fields:
            found.append(softmax(scores[start : start + len(field.labels)], field.scale))
            start += len(field.labels)
        return found


def softmax(scores: Sequence[float], scale: float) -> list[float]:
    """Return the normalised exponentials of ``scale * scores``."""
    largest = max(scores)
    exponentials = [exp(scale * (score - largest)) for score in scores]
    total = fsum(exponentials)
    return [exponential / total for exponential in exponentials]


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Everything one version was trained for, by task."""

    tasks: Mapping[str, TaskModel]
