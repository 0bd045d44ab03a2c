"""Typed field comparators: normalise a value once, then compare two normalised values symmetrically."""

import math
import re
import sys
import unicodedata
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

_SPACES = re.compile(r"\s+")


class Comparator(Protocol):
    """How one field of an answer is read and compared."""

    kind: ClassVar[str]

    def normalise(self, value: Any) -> Any:
        """Return the normalised value, or ``None`` when it is not a valid value of this field. Never raises."""
        ...

    def matches(self, left: Any, right: Any) -> bool:
        """Whether two normalised values agree. Symmetric."""
        ...


def fold_text(text: str) -> str:
    """Lower-case, collapse white space, and write compatible characters one way (Unicode NFKC)."""
    return _SPACES.sub(" ", unicodedata.normalize("NFKC", text)).strip().lower()


@dataclass(frozen=True)
class Label:
    """One of a fixed vocabulary, compared without case or surrounding space."""

    kind: ClassVar[str] = "label"
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.values or len({fold_text(value) for value in self.values}) != len(self.values):
            raise ValueError("values must be a non-empty list of distinct labels")
        object.__setattr__(self, "_by_folded", {fold_text(value): value for value in self.values})

    def normalise(self, value: Any) -> str | None:
        """Return the vocabulary's spelling of ``value``."""
        return self._by_folded.get(fold_text(value)) if isinstance(value, str) else None  # type: ignore[attr-defined]

    def matches(self, left: Any, right: Any) -> bool:
        """Equality."""
        return left == right


@dataclass(frozen=True)
class Number:
    """A finite number, equal within an absolute tolerance, up to the rounding of binary floats: 1.1 is 0.1 from 1."""

    kind: ClassVar[str] = "number"
    abs_tol: float = 0.0

    def normalise(self, value: Any) -> float | int | None:
        """Return ``value``, a large integer exactly; booleans, strings and non-finite numbers are invalid."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        try:
            number = float(value)
        except OverflowError:
            return None
        if not math.isfinite(number):
            return None
        return number if number == value else value

    def matches(self, left: Any, right: Any) -> bool:
        """Whether they differ by at most ``abs_tol``."""
        if self.abs_tol == 0:
            return bool(left == right)
        rounding = 2 * sys.float_info.epsilon * max(abs(left), abs(right), self.abs_tol)
        return bool(abs(left - right) <= self.abs_tol + rounding)


@dataclass(frozen=True)
class Text:
    """Free text, compared without case or runs of white space."""

    kind: ClassVar[str] = "text"

    def normalise(self, value: Any) -> str | None:
        """Return the folded text; empty text is invalid."""
        return (fold_text(value) or None) if isinstance(value, str) else None

    def matches(self, left: Any, right: Any) -> bool:
        """Equality."""
        return left == right


COMPARATORS: dict[str, type[Label] | type[Number] | type[Text]] = {
    comparator.kind: comparator for comparator in (Label, Number, Text)
}


def comparator_from(document: Any, path: str) -> Comparator:
    """Build a field's comparator from its spec, e.g. ``{"type": "label", "values": ["a", "b"]}``.

    Raises ``ValueError`` naming ``path`` and what is wrong with it.
    """
    if not isinstance(document, dict):
        raise ValueError(f"{path}: must be an object")
    kind = document.get("type")
    options = {key: value for key, value in document.items() if key != "type"}
    if kind == "label" and set(options) == {"values"} and _are_strings(options["values"]):
        try:
            return Label(tuple(options["values"]))
        except ValueError as error:
            raise ValueError(f"{path}.values: {error}") from error
    if kind == "number" and set(options) <= {"abs_tol"}:
        tolerance = Number().normalise(options.get("abs_tol", 0.0))
        if tolerance is None or tolerance < 0:
            raise ValueError(f"{path}.abs_tol: must be a number, 0 or more")
        return Number(float(tolerance))
    if kind == "text" and not options:
        return Text()
    raise ValueError(f"{path}: type must be one of {', '.join(COMPARATORS)}, with only that type's options")


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
