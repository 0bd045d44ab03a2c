"""What of a model's output is the answer: reasoning removed, a lone code fence around JSON unwrapped."""

import re
from typing import Any

import orjson

_THINK_BLOCK = re.compile(r"<think>(?:(?!<think>).)*?</think>", re.IGNORECASE | re.DOTALL)
_CLOSING = re.compile(r"</think>", re.IGNORECASE)
_OPENING = re.compile(r"\s*<think>", re.IGNORECASE)
_MAX_JSON_CHARS = 1_000_000
_MAX_JSON_NESTING = 100


def strip_reasoning(text: str) -> str:
    """Remove complete ``<think>`` blocks, what precedes a lone closing tag, and an unfinished leading block."""
    if _CLOSING.search(text):
        text = _THINK_BLOCK.sub("", text)
        text = _CLOSING.split(text)[-1]
    return "" if _OPENING.match(text) else text.strip()


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that ``text`` is, bare or in one fence; ``None`` for anything else. Never raises."""
    value = parse_container(text)
    return value if isinstance(value, dict) else None


def parse_container(text: str) -> dict[str, Any] | list[Any] | None:
    """Return the JSON object or list that ``text`` is, bare or in one fence, at most 100 levels deep; else ``None``."""
    if len(text) > _MAX_JSON_CHARS:
        return None
    try:
        value = orjson.loads(_unfence(text))
    except (orjson.JSONDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict | list) and not _is_deep(text, value) else None


def _is_deep(text: str, value: Any) -> bool:
    if text.count("{") + text.count("[") <= _MAX_JSON_NESTING:
        return False
    level = [value]
    for _ in range(_MAX_JSON_NESTING):
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return False
    return True


def _inside(item: Any) -> list[Any]:
    inner = item.values() if isinstance(item, dict) else item
    return [value for value in inner if isinstance(value, dict | list)]


def _unfence(text: str) -> str:
    stripped = text.strip()
    if not (stripped.startswith("```") and stripped.endswith("```") and len(stripped) > 6):
        return stripped
    head, newline, body = stripped[3:-3].partition("\n")
    return body.strip() if (newline and head.strip().isalnum()) or not head.strip() else stripped[3:-3].strip()


def clean_answer(text: str, *, is_json: bool) -> str:
    """Return the answer as it is served and stored.

    A JSON answer that is one object is kept whole, so that a tag quoted inside its strings survives; free text keeps
    its fences, since a code block is content there.
    """
    if is_json and parse_object(text) is not None:
        return _unfence(text)
    cleaned = strip_reasoning(text)
    if is_json and parse_object(cleaned) is not None:
        return _unfence(cleaned)
    return cleaned
