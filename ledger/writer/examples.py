"""Storing teacher answers: insert, or count another occurrence; a tombstoned hash is refused for ever (INV-24)."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from django.db.backends.utils import CursorWrapper

from ledger.models import Example, Tombstone
from ledger.rows import ExampleRow
from ledger.writer.statements import Inserts

_COPIED = (
    "hash", "prompt_hash", "task", "messages", "completion", "params", "teacher_model", "licence", "licence_url",
    "split", "redactions", "origin", "client", "end_user",
)  # fmt: skip
_FIRST = {
    "is_verified": False, "is_golden_only": False, "is_contested": False, "purge_reason": "", "was_train": False,
}  # fmt: skip
_COLUMNS = (*_COPIED, *_FIRST, "seen", "first_seen_at", "last_seen_at")
_RESTORED = ("messages", "completion", "params", "teacher_model", "licence", "licence_url", "redactions")


def erased_hashes(cursor: CursorWrapper, hashes: Collection[str]) -> set[str]:
    """Return those of ``hashes`` that were erased and must never be stored again."""
    if not hashes:
        return set()
    marks = ", ".join(["%s"] * len(hashes))
    table = Tombstone._meta.db_table
    cursor.execute(f'SELECT hash FROM "{table}" WHERE hash IN ({marks})', list(hashes))  # noqa: S608 - our own names
    return {row[0] for row in cursor.fetchall()}


def add_examples(inserts: Inserts, rows: Sequence[ExampleRow]) -> None:
    """Add the storing of ``rows``, which the caller has checked against the tombstones.

    A repeated request only raises ``seen``: the first label stays. A purged example gets its text back.
    """
    repeats: dict[str, list[ExampleRow]] = {}
    for row in rows:
        repeats.setdefault(row.hash, []).append(row)
    inserts.add(Example, _COLUMNS, [_document(repeats[key]) for key in sorted(repeats)], _on_conflict())


def _document(same: Sequence[ExampleRow]) -> dict[str, Any]:
    copied = {name: getattr(same[0], name) for name in _COPIED}
    times = [row.at for row in same]
    return {**copied, **_FIRST, "seen": len(same), "first_seen_at": min(times), "last_seen_at": max(times)}


@cache
def _on_conflict() -> str:
    table = f'"{Example._meta.db_table}"'
    restored = [
        f"{name} = CASE WHEN {table}.purged_at IS NULL THEN {table}.{name} ELSE excluded.{name} END"
        for name in _RESTORED
    ]
    # A row from the spool comes late.
    newer = f"CASE WHEN excluded.last_seen_at > {table}.last_seen_at THEN excluded.last_seen_at"
    counted = [f"seen = {table}.seen + excluded.seen", f"last_seen_at = {newer} ELSE {table}.last_seen_at END"]
    updates = ", ".join([*counted, *restored, "purged_at = NULL", "purge_reason = ''"])
    return f"ON CONFLICT (hash) DO UPDATE SET {updates}"
