"""Strict JSON: what the database, the teacher and the training files could not hold is refused at the edge. Pure."""

import json
from collections.abc import Callable
from typing import Any, NoReturn

import orjson

from gateway.wire.checks import member_path
from gateway.wire.errors import APIError, invalid_request

MAX_NESTING = 100
"""Containers inside containers; above it, later serialisers would fail (orjson writes 254 levels)."""


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
    except UnicodeDecodeError:
        return _not_json("it is not UTF-8")
    except RecursionError:
        return _not_json("it is nested too deeply")
    except ValueError:
        return _not_json("it could not be parsed")
    param = _path_of(document, _has_surrogate)
    if param is None:
        return _not_json("it is nested too deeply or holds a number out of range")
    return _not_json("a string holds an unpaired surrogate", param or None)


def _no_constants(name: str) -> NoReturn:
    raise ValueError(name)


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _refuse_nul(document: dict[str, Any]) -> None:
    param = _path_of(document, lambda text: "\0" in text)
    if param is not None:
        raise invalid_request("A string holds a NUL character.", code="invalid_value", param=param or None)


def _path_of(document: Any, is_bad: Callable[[str], bool]) -> str | None:
    """Return the path of a string (or of the object with a key) that ``is_bad``; ``None`` without one."""
    todo: list[tuple[str, Any]] = [("", document)]
    while todo:
        path, value = todo.pop()
        if type(value) is str:
            if is_bad(value):
                return path
        elif type(value) is list:
            todo += [(f"{path}[{index}]", item) for index, item in enumerate(value)]
        elif type(value) is dict:
            if any(is_bad(key) for key in value):
                return path
            todo += [(member_path(path, key), item) for key, item in value.items()]
    return None
