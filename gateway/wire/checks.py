"""Checks of single JSON values, each raising OpenAI's error with the path of the field at fault. Pure.

A check is ``check(value, param)``: it returns the value to use or raises ``APIError``.
"""

import re
from collections.abc import Callable, Collection
from typing import Any

from gateway.wire.errors import APIError, invalid_request

Check = Callable[[Any, str], Any]

INT64 = 2**63
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KINDS = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}


def wrong_type(param: str, expected: str, value: Any) -> APIError:
    """Return the error for a value of the wrong JSON type."""
    kind = _KINDS.get(type(value), "null")
    return invalid_request(
        f"Invalid type for '{param}': expected {expected}, but got {kind} instead.", code="invalid_type", param=param
    )


def missing(param: str) -> APIError:
    """Return the error for a required field that is absent."""
    return invalid_request(f"Missing required parameter: '{param}'.", code="missing_required_parameter", param=param)


def invalid_value(param: str, rule: str) -> APIError:
    """Return the error for a value of the right type that breaks ``rule``."""
    return invalid_request(f"Invalid value for '{param}': {rule}.", code="invalid_value", param=param)


def member_path(param: str, key: str) -> str:
    """Return the path of an object's member; a key that is not a plain word is text of the client's and stays out."""
    if not _PLAIN_KEY.fullmatch(key):
        return param
    return f"{param}.{key}" if param else key


def boolean(value: Any, param: str) -> bool:
    """Accept ``true`` and ``false``."""
    if type(value) is not bool:
        raise wrong_type(param, "a boolean", value)
    return value


def array(value: Any, param: str, *, most: int = 0) -> list[Any]:
    """Accept a non-empty array of at most ``most`` items (0: any number)."""
    if type(value) is not list:
        raise wrong_type(param, "an array", value)
    if not value:
        raise invalid_request(
            f"Invalid '{param}': empty array. Expected at least one item.", code="empty_array", param=param
        )
    if most and len(value) > most:
        raise invalid_request(
            f"Invalid '{param}': array too long. Expected at most {most} items, but got {len(value)} instead.",
            code="array_above_max_length",
            param=param,
        )
    return value


def mapping(value: Any, param: str) -> dict[str, Any]:
    """Accept an object."""
    if type(value) is not dict:
        raise wrong_type(param, "an object", value)
    return value


def text(value: Any, param: str, *, most: int = 0) -> str:
    """Accept a string of at most ``most`` characters (0: any length)."""
    if type(value) is not str:
        raise wrong_type(param, "a string", value)
    if most and len(value) > most:
        raise invalid_request(
            f"Invalid '{param}': string too long. Expected at most {most} characters, but got {len(value)} instead.",
            code="string_above_max_length",
            param=param,
        )
    return value


def filled_text(value: Any, param: str, *, most: int = 0) -> str:
    """Accept a string that is not empty."""
    if text(value, param, most=most) == "":
        raise invalid_request(f"Invalid '{param}': empty string.", code="empty_string", param=param)
    return value


def required_text(owner: dict[str, Any], key: str, param: str, *, most: int = 0) -> str:
    """Return the non-empty string ``owner[key]``; ``param`` is the path of ``owner``."""
    path = f"{param}.{key}" if param else key
    if key not in owner:
        raise missing(path)
    return filled_text(owner[key], path, most=most)


def one_of(value: Any, param: str, allowed: Collection[str]) -> str:
    """Accept one of some strings."""
    if text(value, param) not in allowed:
        raise invalid_value(param, f"supported values are {', '.join(sorted(allowed))}")
    return value


def integer(low: int, high: int) -> Check:
    """Return a check for an integer from ``low`` to ``high``."""

    def check(value: Any, param: str) -> int:
        if type(value) is float and abs(value) >= INT64:  # how the parser reads an integer beyond 64 bits
            _require_range(value, param, low, high, "integer")
        if type(value) is not int:
            raise wrong_type(param, "an integer", value)
        _require_range(value, param, low, high, "integer")
        return value

    return check


def number(low: float, high: float) -> Check:
    """Return a check for a number from ``low`` to ``high``."""

    def check(value: Any, param: str) -> int | float:
        if type(value) is not float and type(value) is not int:
            raise wrong_type(param, "a number", value)
        _require_range(value, param, low, high, "decimal")
        return value

    return check


def _require_range(value: float, param: str, low: float, high: float, kind: str) -> None:
    if value < low:
        raise invalid_request(
            f"Invalid '{param}': {kind} below minimum value. Expected a value >= {low}, but got {value} instead.",
            code=f"{kind}_below_min_value",
            param=param,
        )
    if value > high:
        raise invalid_request(
            f"Invalid '{param}': {kind} above maximum value. Expected a value <= {high}, but got {value} instead.",
            code=f"{kind}_above_max_value",
            param=param,
        )
