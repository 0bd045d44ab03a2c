"""Task specs as data: which fields of an answer must match for two answers to agree, and which answers are valid.

A document looks like ``{"fields": {"category": {"type": "label", "values": ["a", "b"]}}, "pinned": false}``. A task
without fields compares the whole answer (its canonical JSON when it is an object or a list, else its folded text).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from common.canonical import canonical_json, sha256_hex
from ledger.compare import Comparator, clean_answer, comparator_from, parse_container, parse_object
from ledger.compare.comparators import Label, fold_text

AnswerKey = tuple[Any, ...]

TASK_NAME_PATTERN = r"\A[A-Za-z0-9_.-]{1,64}\Z"

_OPTIONS = {"fields", "pinned", "store", "policy", "description"}
_POLICY = {"target_precision", "min_precision"}


@dataclass(frozen=True)
class TaskSpec:
    """The rules of one task."""

    name: str
    fields: tuple[tuple[str, Comparator], ...] = ()
    is_pinned: bool = False
    may_store: bool = True
    target_precision: float | None = None
    min_precision: float | None = None

    @cached_property
    def is_label_task(self) -> bool:
        """Whether every field is a label, so that a classifier can answer it."""
        return bool(self.fields) and all(isinstance(comparator, Label) for _, comparator in self.fields)

    @cached_property
    def is_json(self) -> bool:
        """Whether its answers are JSON objects."""
        return bool(self.fields)

    def clean(self, text: str) -> str:
        """Return the answer in a model's output."""
        return clean_answer(text, is_json=self.is_json)

    def key(self, answer: str) -> AnswerKey | None:
        """Return what a cleaned answer is compared by, or ``None`` when it is invalid."""
        return None if self.problem(answer) else self._key(answer)

    def _key(self, answer: str) -> AnswerKey:
        if not self.fields:
            value = parse_container(answer)
            return (fold_text(answer if value is None else canonical_json(_with_plain_numbers(value))),)
        document = parse_object(answer)
        assert document is not None  # noqa: S101 - problem() checked it
        return tuple(comparator.normalise(document[name]) for name, comparator in self.fields)

    def matches(self, left: AnswerKey, right: AnswerKey) -> bool:
        """Whether two keys agree in every field."""
        if not self.fields:
            return left == right
        return all(comparator.matches(a, b) for (_, comparator), a, b in zip(self.fields, left, right, strict=True))

    def problem(self, answer: str) -> str | None:
        """Return why a cleaned answer is invalid (never quoting it), or ``None``."""
        if not answer.strip():
            return "empty answer"
        if not self.fields:
            return None
        document = parse_object(answer)
        if document is None:
            return "invalid answer"
        for name, comparator in self.fields:
            if name not in document or comparator.normalise(document[name]) is None:
                return f"invalid field {name}"
        return None

    @cached_property
    def document(self) -> dict[str, Any]:
        """The spec as a document that ``parse_spec`` reads back to an equal spec."""
        policy = {
            name: value
            for name, value in (("target_precision", self.target_precision), ("min_precision", self.min_precision))
            if value is not None
        }
        return {
            "fields": {name: _field_document(comparator) for name, comparator in self.fields},
            "pinned": self.is_pinned,
            "store": self.may_store,
            "policy": policy,
        }

    @cached_property
    def spec_hash(self) -> str:
        """SHA-256 of the rules, whatever the name. A change makes thresholds measured under the old rules void."""
        ordered = {**self.document, "fields": [[name, _field_document(c)] for name, c in self.fields]}
        return sha256_hex(ordered)


def _with_plain_numbers(value: Any) -> Any:
    """Write whole floats as integers, since JSON knows one kind of number: 1.0 is 1."""
    if isinstance(value, dict):
        return {name: _with_plain_numbers(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_plain_numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _field_document(comparator: Comparator) -> dict[str, Any]:
    options = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in vars(comparator).items()
        if not name.startswith("_")
    }
    return {"type": comparator.kind, **options}


def parse_spec(name: str, document: Any) -> TaskSpec:
    """Read a task spec document.

    Raises ``ValueError`` listing every mistake, each with its path, one per line.
    """
    if not isinstance(document, Mapping):
        raise ValueError(f"{name}: must be an object")
    errors = [f"{name}.{key}: unknown option" for key in sorted(set(document) - _OPTIONS)]
    fields: list[tuple[str, Comparator]] = []
    listed = document.get("fields", {})
    if not isinstance(listed, Mapping):
        errors.append(f"{name}.fields: must be an object")
        listed = {}
    for field, field_document in listed.items():
        try:
            fields.append((str(field), comparator_from(field_document, f"{name}.fields.{field}")))
        except ValueError as error:
            errors.append(str(error))
    for option in ("pinned", "store"):
        if not isinstance(document.get(option, True), bool):
            errors.append(f"{name}.{option}: must be true or false")
    policy = document.get("policy", {})
    errors += _policy_errors(name, policy)
    if errors:
        raise ValueError("\n".join(errors))
    return TaskSpec(
        name=name,
        fields=tuple(fields),
        is_pinned=document.get("pinned", False),
        may_store=document.get("store", True),
        target_precision=policy.get("target_precision"),
        min_precision=policy.get("min_precision"),
    )


def _policy_errors(name: str, policy: Any) -> list[str]:
    if not isinstance(policy, Mapping):
        return [f"{name}.policy: must be an object"]
    errors = [f"{name}.policy.{key}: unknown option" for key in sorted(set(policy) - _POLICY)]
    for key in sorted(set(policy) & _POLICY):
        value = policy[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.5 <= value <= 1.0:
            errors.append(f"{name}.policy.{key}: must be a number from 0.5 to 1")
    return errors
