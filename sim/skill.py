"""How good a mock student is: the skill model of the simulation's methodology. Assumptions, not measurements. Pure."""

import hashlib
import math
from dataclasses import dataclass

from sim.ticket_templates import Template

EASY_CEILING, HARD_CEILING = 0.985, 0.86
TRAINED_TEXT_SKILL = 0.985
FLOOR = 0.35
LEARNING_SCALE = 6
CONFIDENTLY_WRONG_SHARE = 0.15


@dataclass(frozen=True, slots=True)
class Draws:
    """Numbers in [0, 1) that are fixed for one version and one text: a student does not change its mind."""

    knows: float
    confidence: float
    wrong_labels: float


def draws_for(version: str, text: str) -> Draws:
    """Return the draws of ``version`` on ``text``, from the SHA-256 of the two."""
    digest = hashlib.sha256(f"{version}\n{text}".encode()).digest()
    return Draws(*(int.from_bytes(digest[start : start + 8], "big") / 2**64 for start in (0, 8, 16)))


def skill(template: Template, n_examples: int, *, is_trained_text: bool) -> float:
    """Return the probability of knowing a ticket, given ``n_examples`` distinct training texts of its template."""
    if is_trained_text:
        return TRAINED_TEXT_SKILL
    ceiling = HARD_CEILING if template.is_hard else EASY_CEILING
    return max(FLOOR, ceiling * (1 - math.exp(-n_examples / LEARNING_SCALE)))
