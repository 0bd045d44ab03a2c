"""Confidence from several samples of one answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.cascade.types import Completion
from ledger.taskspec import AnswerKey, TaskSpec

AGREEMENT_WEIGHT = 0.6
PROBABILITY_WEIGHT = 0.4


@dataclass(frozen=True, slots=True)
class Scored:
    """The result of scoring a sample set."""

    confidence: float
    agreement: float
    is_valid: bool
    best: Completion | None = None
    answer: str = ""
    key: AnswerKey | None = None


NOTHING_VALID = Scored(confidence=0.0, agreement=0.0, is_valid=False)


def score(task: TaskSpec, samples: Sequence[Completion]) -> Scored:
    """Score ``samples``: ``0.4 * p + 0.6 * agreement``, or the agreement alone without log-probabilities.

    Each valid sample votes for every sample it matches. The majority is the first sample with most votes; the best is,
    among the samples it matches that have as many votes, the one with the highest mean token probability ``p``.
    Samples that were cut off, are empty or are invalid under the task have no vote.
    """
    answers = [task.clean(sample.text) if sample.is_complete else "" for sample in samples]
    keys = [task.key(answer) for answer in answers]
    votes = _votes(task, keys)
    most = max(votes, default=0)
    if most == 0:
        return NOTHING_VALID
    majority = keys[votes.index(most)]
    agreement = most / len(samples)
    best = max(
        (index for index, key in enumerate(keys) if votes[index] == most and _match(task, majority, key)),
        key=lambda index: (samples[index].mean_probability or 0.0, -index),
    )
    probability = samples[best].mean_probability
    confidence = agreement if probability is None else PROBABILITY_WEIGHT * probability + AGREEMENT_WEIGHT * agreement
    return Scored(confidence, agreement, True, samples[best], answers[best], keys[best])


def majority_choices(task: TaskSpec, scored: Scored, samples: Sequence[Completion], n: int) -> list[Completion] | None:
    """Return ``n`` samples that agree with the scored best one, it first; ``None`` when fewer agree."""
    if scored.best is None:
        return None
    others = [
        sample
        for sample in samples
        if sample is not scored.best
        and sample.is_complete
        and _match(task, scored.key, task.key(task.clean(sample.text)))
    ]
    others.sort(key=lambda sample: -(sample.mean_probability or 0.0))
    chosen = [scored.best, *others][:n]
    return chosen if len(chosen) == n else None


def _votes(task: TaskSpec, keys: Sequence[AnswerKey | None]) -> list[int]:
    return [sum(_match(task, key, other) for other in keys) for key in keys]


def _match(task: TaskSpec, left: AnswerKey | None, right: AnswerKey | None) -> bool:
    return left is not None and right is not None and task.matches(left, right)
