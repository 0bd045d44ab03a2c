"""Strict JSON: what the database, the teacher and the training files could not hold is refused at the edge. Pure."""

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import orjson

from gateway.wire.checks import member_path
from gateway.wire.errors import APIError, invalid_request

MAX_NESTING = 100
"""Containers inside containers; above it, later serialisers would fail (orjson writes 254 levels)."""
MAX_PATH_CHARS = 256

Step = str | int
_EXHAUSTED: Any = object()


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse a request body that must be a JSON object.

    Raises ``APIError`` 400: ``invalid_json`` for anything but strict JSON in UTF-8 (NaN, infinities, unpaired
    surrogates and deep nesting included), ``invalid_value`` for a NUL character, ``invalid_type`` for no object. The
    path of the string at fault is the error's ``param``.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise _explain(body) from None
    if type(document) is not dict:
        raise invalid_request("The request body must be a JSON object.", code="invalid_type")
    if body.count(b"{") + body.count(b"[") > MAX_NESTING and nesting(document) > MAX_NESTING:
        raise _not_json("it is nested too deeply")
    if b"\\u0000" in body:
        _refuse_nul(document)
    return document


def nesting(document: Any) -> int:
    """Return how many containers the deepest value lies in."""
    level, depth = [document], 0
    while level := [node for node in level if type(node) in (dict, list)]:
        depth += 1
        level = [child for node in level for child in (node.values() if type(node) is dict else node)]
    return depth


def _not_json(reason: str, param: str | None = None) -> APIError:
    return invalid_request(f"The request body is not valid JSON: {reason}.", code="invalid_json", param=param)


def _explain(body: bytes) -> APIError:
    """Return the error for a body that is not strict JSON, with the path of an unpaired surrogate if that is why."""
    try:
        document = json.loads(body.decode("utf-8", "surrogatepass"), parse_constant=_no_constants)
    except (ValueError, RecursionError) as error:
        return _not_json(_reason(body, error))
    param = _path_of(document, _has_surrogate)
    if param is None:
        return _not_json("it is nested too deeply or holds a number out of range")
    return _not_json("a string holds an unpaired surrogate", param or None)


class _NotANumber(ValueError):
    """NaN or an infinity."""


_REASONS = (
    (UnicodeDecodeError, "it is not UTF-8"),
    (RecursionError, "it is nested too deeply"),
    (_NotANumber, "it holds NaN or Infinity, which JSON does not have; use null"),
    (ValueError, "it holds a number out of range"),
)


def _reason(body: bytes, error: Exception) -> str:
    if not body.strip():
        return "it is empty"
    if body.startswith(BOM_UTF8):
        return "it starts with a byte order mark; leave that out"
    if isinstance(error, json.JSONDecodeError):
        return f"it could not be parsed at line {error.lineno}, column {error.colno}"
    return next(reason for kind, reason in _REASONS if isinstance(error, kind))


def _no_constants(name: str) -> NoReturn:
    raise _NotANumber(name)


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _refuse_nul(document: dict[str, Any]) -> None:
    param = _path_of(document, lambda text: "\0" in text)
    if param is not None:
        raise invalid_request("A string holds a NUL character.", code="invalid_value", param=param or None)


def _path_of(document: Any, is_bad: Callable[[str], bool]) -> str | None:
    """Return the path of the first string (or of the object with a key) that ``is_bad``; ``None`` without one.

    Only the way to the current value is held: a path for every value of a large body would be gigabytes.
    """
    steps: list[Step] = []
    walks: list[Iterator[tuple[Step, Any]]] = [iter((("", document),))]
    while walks:
        step, value = next(walks[-1], ("", _EXHAUSTED))
        if value is _EXHAUSTED:
            walks.pop()
            if steps:
                steps.pop()
        elif type(value) in (list, dict):
            steps.append(step)
            if type(value) is dict and any(map(is_bad, value)):
                return _written(steps)
            walks.append(enumerate(value) if type(value) is list else iter(value.items()))
        elif type(value) is str and is_bad(value):
            return _written([*steps, step])
    return None


def _written(steps: list[Step]) -> str:
    """Write a path, cut to a length that suits an error."""
    path = ""
    for step in steps:
        if len(path) > MAX_PATH_CHARS:
            break
        path = f"{path}[{step}]" if type(step) is int else member_path(path, str(step))
    return path
