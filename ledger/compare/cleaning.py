"""What of a model's output is the answer: reasoning removed, a lone code fence around JSON unwrapped."""

import re
from typing import Any

import orjson

_THINK_BLOCK = re.compile(r"<think>(?:(?!<think>).)*?</think>", re.IGNORECASE | re.DOTALL)
_CLOSING, _OPENING = "</think>", "<think>"
_MAX_JSON_CHARS = 1_000_000


def strip_reasoning(text: str) -> str:
    """Remove complete ``<think>`` blocks, what precedes a lone closing tag, and an unfinished leading block."""
    lowered = text.lower()
    if _CLOSING not in lowered and _OPENING not in lowered:
        return text.strip()
    if _CLOSING in lowered:
        text = _THINK_BLOCK.sub("", text)
        lowered = text.lower()
        if _CLOSING in lowered:
            text = text[lowered.rindex(_CLOSING) + len(_CLOSING) :]
    if text.lstrip().lower().startswith(_OPENING):
        return ""
    return text.strip()


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that ``text`` is, bare or in one fence; ``None`` for anything else. Never raises."""
    if len(text) > _MAX_JSON_CHARS:
        return None
    try:
        value = orjson.loads(_unfence(text))
    except (orjson.JSONDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


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
