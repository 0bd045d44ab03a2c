"""Drawing samples of an answer from the classifier's probabilities, as a language model draws tokens."""

import json
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.cascade.types import Completion
from gateway.students.linear.features import n_chars, user_text
from gateway.students.linear.model import LinearModel, TaskModel
from ledger.taskspec import TaskSpec

_CHARS_A_TOKEN = 4
_SMALLEST = 1e-300
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode


def draw(
    model: LinearModel,
    task: TaskSpec,
    messages: Sequence[Mapping[str, Any]],
    *,
    n: int,
    temperature: float | None,
    rng: random.Random,
) -> list[Completion]:
    """Draw ``n`` answers at ``temperature`` (``None``: 1).

    A task the version has no model of, or whose fields are others now, gets ``n`` empty answers: they are invalid under
    every task, so the request escalates. A label that left the vocabulary is invalid under the spec in the same way.
    """
    known = model.tasks.get(task.name)
    if known is None or [field.name for field in known.fields] != [name for name, _ in task.fields]:
        return [Completion(text="") for _ in range(n)]
    return _draw_known(known, messages, n, 1.0 if temperature is None else temperature, rng)


def _draw_known(
    model: TaskModel, messages: Sequence[Mapping[str, Any]], n: int, temperature: float, rng: random.Random
) -> list[Completion]:
    """Draw every field from its sharpened distribution and report its *calibrated* log-probability.

    The draws must follow the temperature, or agreement would not mean what it means for a language model. The reported
    probability must not: sharpening pushes it toward 1 as agreement already does, so confidence would measure the same
    thing twice and crowd against 1. Calibrated, ``p`` is the share of such answers that are right, which orders the
    unanimous sample sets (most of them) finely, and a unanimous draw of an unlikely label keeps its low ``p``.
    """
    in_tokens = _tokens(n_chars(messages))
    drawn = []
    for probabilities in model.probabilities(user_text(messages)):
        weights = sharpen(probabilities, temperature)
        drawn.append([(place, probabilities[place]) for place in rng.choices(range(len(weights)), weights, k=n)])
    return [_completion(model, choice, in_tokens) for choice in zip(*drawn, strict=True)]


def _completion(model: TaskModel, choice: Sequence[tuple[int, float]], in_tokens: int) -> Completion:
    answer = {field.name: field.labels[place] for field, (place, _) in zip(model.fields, choice, strict=True)}
    text = _ENCODE(answer)
    logprobs = [math.log(max(probability, _SMALLEST)) for _, probability in choice]
    return Completion(text, in_tokens=in_tokens, out_tokens=_tokens(len(text)), logprobs=logprobs)


def sharpen(probabilities: Sequence[float], temperature: float) -> list[float]:
    """Return ``p ** (1 / temperature)``, relative to the largest; at 0 or below all weight is on the first largest."""
    largest = max(probabilities)
    if temperature <= 0:
        best = probabilities.index(largest)
        return [1.0 if place == best else 0.0 for place in range(len(probabilities))]
    return [(probability / largest) ** (1.0 / temperature) for probability in probabilities]


def _tokens(n_chars: int) -> int:
    return max(1, math.ceil(n_chars / _CHARS_A_TOKEN))
