"""Who and what a request is for: metadata, task, storage opt-out and end users. Pure; raw values are never logged."""

import re
from typing import Any

from gateway.wire.checks import boolean, invalid_value, mapping, member_path, text
from gateway.wire.errors import invalid_request
from ledger.taskspec import TASK_NAME_PATTERN

MAX_KEYS = 16
MAX_KEY_CHARS = 64
MAX_VALUE_CHARS = 512
TASK_KEY = "ratchet_task"
STORE_KEY = "ratchet_store"
TASK_NAME = re.compile(TASK_NAME_PATTERN)

_OPT_OUTS = ("false", "0", "none")
_OPT_INS = ("true", "1")


def read_metadata(value: Any) -> dict[str, str]:
    """Check ``metadata``: at most 16 keys of 64 characters with string values of 512."""
    metadata = mapping(value, "metadata")
    if len(metadata) > MAX_KEYS:
        raise invalid_request(
            f"Invalid 'metadata': too many properties. Expected at most {MAX_KEYS}, but got {len(metadata)} instead.",
            code="object_above_max_properties",
            param="metadata",
        )
    for key, item in metadata.items():
        text(key, "metadata", most=MAX_KEY_CHARS)
        text(item, member_path("metadata", key), most=MAX_VALUE_CHARS)
    return metadata


def read_task(metadata: dict[str, str]) -> str | None:
    """Return the task that the metadata names, or ``None``."""
    name = metadata.get(TASK_KEY)
    return None if name is None else task_name(name, f"metadata.{TASK_KEY}")


def task_name(name: str, param: str) -> str:
    """Accept the name of a task, from the metadata or a header."""
    if not TASK_NAME.fullmatch(name):
        raise invalid_value(param, "use 1 to 64 letters, digits, '_', '.' or '-'")
    return name


def read_store(body: dict[str, Any], metadata: dict[str, str]) -> bool | None:
    """Return ``False`` when the request opts out of storage, else ``None``: nothing in it can opt in (INV-22)."""
    stored = body.get("store")
    is_refused = opts_out(metadata.get(STORE_KEY, "true"), f"metadata.{STORE_KEY}")
    if stored is not None and not boolean(stored, "store"):
        is_refused = True
    return False if is_refused else None


def opts_out(wish: str, param: str) -> bool:
    """Return whether a word, from the metadata or a header, keeps a request out of storage.

    An unknown word is refused, since guessing could store what the client meant to keep out.
    """
    word = wish.lower()
    if word not in _OPT_OUTS and word not in _OPT_INS:
        raise invalid_value(param, "use none or false to keep the request out of training, else true")
    return word in _OPT_OUTS


def read_end_users(body: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the request's end-user identifiers as sent: ``safety_identifier``, else ``user``, and the other one."""
    named = [text(body[key], key) for key in ("safety_identifier", "user") if body.get(key) is not None]
    distinct = list(dict.fromkeys(filter(None, named)))
    return (distinct[0] if distinct else None), (distinct[1] if len(distinct) > 1 else None)
