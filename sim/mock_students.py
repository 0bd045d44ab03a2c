"""The mock students of simulations: samples whose rightness and confidence follow ``sim.skill``."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.cascade.types import Answer, Call, Purpose, VersionRoute
from gateway.settings import GatewaySettings
from gateway.students.base import StudentUnavailable
from sim.mock_artefact import ArtefactError, Learned, read_artefact, text_hash
from sim.skill import CONFIDENTLY_WRONG_SHARE, draws_for, skill
from sim.ticket_templates import Template
from sim.tickets import ANSWERS, LABELS, labels_of, recognise, ticket_text
from sim.tokens import completion, prompt_tokens

LATENCY_MS = 350.0
SAMPLE_RIGHT = 0.97
KNOWN_P, CONFIDENTLY_WRONG_P, GUESS_P = (0.80, 0.97), (0.62, 0.92), (0.35, 0.65)
FRAGILE_CATEGORIES = frozenset({"billing", "refund", "security"})

Labels = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Mind:
    """What one version makes of one ticket: it knows, it guesses, or it is sure of the same wrong labels."""

    truth: Labels
    knows: bool
    certain_error: Labels | None
    wrong: Labels
    """The wrong labels it is sure of, when it is or when it was deployed corrupted."""


class MockStudents:
    """A ``gateway.students.base.StudentBackend`` for ``RATCHET_STUDENT_BACKENDS``."""

    def __init__(self, settings: GatewaySettings, rng: random.Random) -> None:
        self._folder = Path(settings.artefact_dir)
        self._rng = rng
        self._learned: dict[str, Learned] = {}
        self._corrupted: frozenset[int] = frozenset()

    def deploy_corrupted(self, number: int) -> None:
        """Inject the fault: version ``number`` is served from the wrong adapter file.

        The staging copy, which shadow and golden evaluation sample, stays sound; what clients get is surely wrong on
        the fragile categories.
        """
        self._corrupted |= {number}

    async def sample(self, call: Call) -> Answer:
        """Draw samples on the event loop."""
        return self.sample_sync(call)

    def sample_sync(self, call: Call) -> Answer:
        """Draw ``call.n`` samples; raises ``StudentUnavailable`` without a version, a ticket or a sound artefact."""
        version, text = call.version, ticket_text(call.messages)
        template = recognise(text)
        if version is None or template is None:
            raise StudentUnavailable("UnknownTicket")
        mind = self._mind(version, text, template)
        error = mind.certain_error
        if self._is_corrupted(version, call.purpose) and template.category in FRAGILE_CATEGORIES:
            error = mind.wrong
        tokens = prompt_tokens(call.messages)
        choices = []
        for _ in range(call.n):
            labels, p = self._one_sample(mind, error)
            choices.append(completion(ANSWERS[labels], tokens, call.params, logprobs=(math.log(p),)))
        return Answer(choices, LATENCY_MS, version.adapter)

    def _one_sample(self, mind: Mind, error: Labels | None) -> tuple[Labels, float]:
        if error is not None:
            return error, self._rng.uniform(*CONFIDENTLY_WRONG_P)
        if mind.knows:
            is_right = self._rng.random() < SAMPLE_RIGHT
            return mind.truth if is_right else self._wrong_labels(mind.truth), self._rng.uniform(*KNOWN_P)
        return self._rng.choice(LABELS), self._rng.uniform(*GUESS_P)

    def _wrong_labels(self, truth: Labels) -> Labels:
        return other_labels(truth, self._rng.random())

    def _is_corrupted(self, version: VersionRoute, purpose: Purpose) -> bool:
        return purpose is Purpose.SAMPLE and version.number in self._corrupted

    def _mind(self, version: VersionRoute, text: str, template: Template) -> Mind:
        learned = self._load(version.artefact)
        n = learned.n_by_template.get(template.key, 0)
        draws = draws_for(version.adapter, text)
        truth = labels_of(template)
        knows = draws.knows < skill(template, n, is_trained_text=text_hash(text) in learned.texts)
        wrong = other_labels(truth, draws.wrong_labels)
        is_certain = not knows and draws.confidence < CONFIDENTLY_WRONG_SHARE
        return Mind(truth, knows, wrong if is_certain else None, wrong)

    def _load(self, reference: Mapping[str, object]) -> Learned:
        key = str(reference.get("sha256"))
        if key not in self._learned:
            try:
                self._learned[key] = read_artefact(self._folder, reference)
            except ArtefactError as error:
                raise StudentUnavailable("ArtefactError", is_adapter_missing=True) from error
        return self._learned[key]


def other_labels(truth: Labels, draw: float) -> Labels:
    """Return wrong labels, uniformly among all pairs but the true one; ``draw`` is in [0, 1)."""
    index = int(draw * (len(LABELS) - 1))
    return LABELS[index + 1] if index >= LABELS.index(truth) else LABELS[index]
