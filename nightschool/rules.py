"""Which stored rows train and which are held out (INV-2, INV-3, INV-10). Pure.

A prompt is held out or not as a whole, with every variant of it, because the trainer sees only the messages.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from common.canonical import sha256_hex
from ledger.taskspec import TaskSpec
from nightschool.trainers.base import Row

FREQUENT = 3
"""A golden prompt that really occurred this often, over all its variants, trains: too valuable to hold out."""

GOLDEN_SPLIT = "golden"
_THINK_TAG = re.compile(r"</?think>", re.IGNORECASE)

IsDistillable = Callable[[str, str], bool]
"""``is_distillable(teacher_model, licence)``."""


@dataclass(frozen=True, slots=True)
class StoredRow:
    """An example as the ledger holds it. A purged one has no text left and only counts occurrences."""

    row: Row
    prompt_hash: str
    split: str
    is_golden_only: bool = False
    is_purged: bool = False


@dataclass(slots=True)
class Selection:
    """What a night may train on and what it is measured on, in the order the rows came in.

    ``excluded`` counts the rows that each rule kept out: ``purged``, ``pinned`` and ``undistillable`` from both sets,
    ``invalid``, ``think_tag`` and ``stop`` from the training rows only.
    """

    train: list[Row] = field(default_factory=list)
    golden: list[Row] = field(default_factory=list)
    excluded: Counter[str] = field(default_factory=Counter)


def select(rows: Iterable[StoredRow], specs: Mapping[str, TaskSpec], is_distillable: IsDistillable) -> Selection:
    """Apply the dataset rules. ``specs`` maps every task that occurs to its current spec; ``KeyError`` otherwise."""
    rows = list(rows)
    held_out = held_out_prompts(rows)
    selection = Selection()
    for stored in rows:
        is_golden = stored.prompt_hash in held_out
        reason = _unusable(stored, specs, is_distillable) or (
            None if is_golden else _untrainable(stored.row, specs[stored.row.task])
        )
        if reason:
            selection.excluded[reason] += 1
        else:
            (selection.golden if is_golden else selection.train).append(stored.row)
    return selection


def held_out_prompts(rows: Iterable[StoredRow]) -> set[str]:
    """Return the prompts that are golden: held out for good, or of the golden split and seldom seen."""
    seen: defaultdict[str, int] = defaultdict(int)
    golden: set[str] = set()
    for_good: set[str] = set()
    for stored in rows:
        seen[stored.prompt_hash] += stored.row.seen
        if stored.split == GOLDEN_SPLIT:
            golden.add(stored.prompt_hash)
        if stored.is_golden_only:
            for_good.add(stored.prompt_hash)
    return for_good | {prompt for prompt in golden if seen[prompt] < FREQUENT}


def _unusable(stored: StoredRow, specs: Mapping[str, TaskSpec], is_distillable: IsDistillable) -> str | None:
    if stored.is_purged:
        return "purged"
    if specs[stored.row.task].is_pinned:
        return "pinned"
    return None if is_distillable(stored.row.teacher_model, stored.row.licence) else "undistillable"


def _untrainable(row: Row, spec: TaskSpec) -> str | None:
    """Why a row that is not held out does not train either. Its conditions are not part of what the trainer sees."""
    if spec.problem(row.completion):
        return "invalid"
    if _THINK_TAG.search(row.completion):
        return "think_tag"
    return "stop" if row.params and row.params.get("stop") else None


def dataset_sha256(hashes: Iterable[str]) -> str:
    """Return the hash of a training set: of its rows' hashes, in sorted order."""
    return sha256_hex(sorted(hashes))


def leaf_value(row: Row) -> str:
    """Return what a version commits to for one row: the hash of its label and where the label came from."""
    return sha256_hex(
        {
            "completion": row.completion,
            "teacher": row.teacher_model,
            "licence": row.licence,
            "redactions": row.redactions,
        }
    )
