"""Tool calls of an answer in OpenAI's shape, whatever dialect the endpoint speaks. Pure but for fresh call ids."""

import uuid
from typing import Any

import orjson


def read_tool_calls(message: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return a message's tool calls, or its legacy ``function_call`` as one; ``None`` when it makes no call."""
    entries = message.get("tool_calls")
    if not entries and isinstance(message.get("function_call"), dict):
        entries = [{"function": message["function_call"]}]
    if not isinstance(entries, list):
        return None
    calls = [call for entry in entries if (call := _call(entry)) is not None]
    return calls or None


def _call(entry: Any) -> dict[str, Any] | None:
    if not isinstance(entry, dict):
        return None
    kind = _word(entry.get("type")) or "function"
    call: dict[str, Any] = {"id": _word(entry.get("id")) or f"call_{uuid.uuid4().hex[:24]}", "type": kind}
    if kind != "function":
        return entry | call
    function = entry.get("function")
    if not isinstance(function, dict) or not _word(function.get("name")):
        return None
    call["function"] = {"name": function["name"], "arguments": _arguments(function.get("arguments"))}
    return call


def _arguments(value: Any) -> str:
    if isinstance(value, str):
        return value or "{}"
    return "{}" if value is None else orjson.dumps(value).decode()


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
