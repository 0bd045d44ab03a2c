"""Reading a student's examples and the rules they are selected under, and reading a committed selection back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from gateway.settings import GatewaySettings
from gateway.snapshot import task_spec
from ledger.models import Example, Student, Task, Version, VersionLeaf
from ledger.taskspec import TaskSpec
from ledger.vocabulary import DEFAULT_STUDENT, Split, VersionState
from nightschool.rules import IsDistillable, Selection, StoredRow, leaf_value, select
from nightschool.trainers.base import Row
from receipts.licences import HUMAN, LicenceError, require_distillable

_ROW_COLUMNS = (
    "hash", "task", "messages", "completion", "params", "seen", "teacher_model", "licence", "redactions",
)  # fmt: skip
_RULE_COLUMNS = ("prompt_hash", "split", "is_golden_only", "purged_at")
_CHUNK = 2000

Specs = Mapping[str, TaskSpec]


class DatasetChanged(Exception):
    """A committed training row is gone or changed, so the night may not go on with it; the text holds counts only."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A student's selection, with the spec of every task that occurs in it."""

    selection: Selection
    specs: Specs


def read_dataset(student: Student, settings: GatewaySettings) -> Dataset:
    """Select from the examples of the student's tasks, in the order they were first stored."""
    rows = [
        StoredRow(_row(values), prompt_hash, split, is_golden_only, purged_at is not None)
        for *values, prompt_hash, split, is_golden_only, purged_at in examples_of(student, settings)
        .order_by("pk")
        .values_list(*_ROW_COLUMNS, *_RULE_COLUMNS)
        .iterator(_CHUNK)
    ]
    specs = specs_of({stored.row.task for stored in rows})
    return Dataset(select(rows, specs, distillable_under(settings)), specs)


def examples_of(student: Student, settings: GatewaySettings) -> QuerySet[Example]:
    """Return the examples of the student's tasks; those of unregistered tasks are the default student's."""
    if student.name == DEFAULT_STUDENT and settings.unknown_tasks == "distill":
        return Example.objects.exclude(task__in=Task.objects.exclude(student=student).values("name"))
    return Example.objects.filter(task__in=student.tasks.values("name"))


def specs_of(names: set[str]) -> Specs:
    """Return the current spec of each task; an unregistered one compares whole answers, as serving does."""
    registered = {task.name: task_spec(task) for task in Task.objects.filter(name__in=names)}
    return {name: registered.get(name) or TaskSpec(name) for name in sorted(names)}


def distillable_under(settings: GatewaySettings) -> IsDistillable:
    """Return the provenance rule: a person's label, or a teacher whose licence is known now (INV-1)."""
    declared = dict(settings.declared_licences)
    if settings.teacher_licence is not None:
        declared[settings.teacher.model.lower()] = settings.teacher_licence

    def is_distillable(teacher_model: str, licence: str) -> bool:
        if teacher_model == HUMAN:
            return True
        try:
            return bool(licence) and bool(require_distillable(teacher_model, declared))
        except LicenceError:
            return False

    return is_distillable


def leaves_of(selection: Selection) -> list[VersionLeaf]:
    """Return the rows that commit a version to a selection, without their version; saving them is the caller's."""
    return [
        VersionLeaf(split=split, key=row.hash, value=leaf_value(row))
        for split, rows in ((Split.TRAIN, selection.train), (Split.GOLDEN, selection.golden))
        for row in rows
    ]


def committed_rows(version: Version, split: Split) -> list[Row]:
    """Return the rows a version is committed to, in the order they were first stored.

    A golden row whose text was purged since is left out. Raises ``DatasetChanged`` when a training row was purged, or
    any row no longer is what the version committed to.
    """
    leaves = dict(version.leaves.filter(split=split).values_list("key", "value"))
    kept = Example.objects.filter(hash__in=version.leaves.filter(split=split).values("key"), purged_at=None)
    rows = [_row(values) for values in kept.order_by("pk").values_list(*_ROW_COLUMNS).iterator(_CHUNK)]
    n_purged = len(leaves) - len(rows)
    if n_purged and split == Split.TRAIN:
        raise DatasetChanged(f"{n_purged} training rows were erased or purged while the night ran")
    n_changed = sum(leaves[row.hash] != leaf_value(row) for row in rows)
    if n_changed:
        raise DatasetChanged(f"{n_changed} {split} rows changed while the night ran")
    return rows


def n_new_examples(student: Student, n_train: int, settings: GatewaySettings) -> int:
    """Return how many training rows no earlier version had.

    A candidate whose night failed, even after it was trained, was never judged and does not count: its rows train
    again. A version's training rows that were purged since it was made no longer count as had, so that a deletion
    neither stops training nor starts it.
    """
    purged = list(
        examples_of(student, settings)
        .filter(was_train=True, purged_at__isnull=False)
        .values_list("first_seen_at", "purged_at")
        .iterator(_CHUNK)
    )
    judged = student.versions.filter(train_examples__gt=0).exclude(state=VersionState.CANDIDATE)
    had = [
        n - sum(stored < created and gone > created for stored, gone in purged if gone is not None)
        for n, created in judged.values_list("train_examples", "created_at")
    ]
    return n_train - max(had, default=0)


def _row(values: list[Any]) -> Row:
    hash_, task, messages, completion, *rest = values
    return Row(hash_, task, messages or [], completion or "", *rest)
