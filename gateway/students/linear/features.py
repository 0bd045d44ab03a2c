"""What the classifier sees of a request: its user turns, as words and as characters."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from privacy.redaction import redact

MAX_CHARS = 8_000
"""Only the start of a long text is read, in training and in serving, so that no request costs more than a few ms."""

_WORD = re.compile(r"\w+|[^\w\s]")
_DIGIT = re.compile(r"\d")
_OPENING_WORDS = 3
_RUN = 4


def user_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """Join the text of the user turns, clipped to ``MAX_CHARS`` and redacted.

    System prompts are the task's, not the request's. Stored rows are redacted and live requests are not: redacting both
    here, the model sees the same placeholders in serving as it did in training.
    """
    turns = (_content_text(message.get("content")) for message in messages if message.get("role") == "user")
    return redact("\n".join(turns)[:MAX_CHARS])[0]


def n_chars(messages: Sequence[Mapping[str, Any]]) -> int:
    """Count the characters of all turns."""
    return sum(len(_content_text(message.get("content"))) for message in messages)


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def fold(text: str) -> str:
    """Lower-case, with every digit as 0: the shape of a number generalises, the number does not."""
    return _DIGIT.sub("0", text.lower())


def words(folded: str) -> list[str]:
    """Words and punctuation marks, their pairs, and the first one to three of them marked as the opening.

    How a short text opens ("how many", "who") says much about what it asks for.
    """
    tokens = _WORD.findall(folded)
    pairs = [f"{first} {second}" for first, second in pairwise(tokens)]
    openings = ["^ " + " ".join(tokens[:length]) for length in range(1, min(_OPENING_WORDS, len(tokens)) + 1)]
    return tokens + pairs + openings


def characters(folded: str) -> list[str]:
    """Runs of 4 characters within words, padded with a space at both ends (scikit-learn's ``char_wb``).

    They cover inflections, misspellings and scripts without spaces. Runs of 3 to 5 cost three times as much at serving
    and were no better on short questions and messages.
    """
    runs: list[str] = []
    for word in folded.split():
        padded = f" {word} "
        runs += [padded[start : start + _RUN] for start in range(max(1, len(padded) - _RUN + 1))]
    return runs


@dataclass(frozen=True, slots=True)
class Block:
    """One kind of feature: TF-IDF vectors of unit length times ``weight``, over terms in at least ``min_df`` texts.

    A term of one text alone says nothing about others, and in the vocabulary it could give that text away.
    """

    name: str
    analyse: Callable[[str], list[str]]
    weight: float
    min_df: int


BLOCKS = (Block("words", words, weight=1.0, min_df=2), Block("characters", characters, weight=0.5, min_df=3))
