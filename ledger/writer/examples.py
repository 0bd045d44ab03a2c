"""Storing teacher answers: insert, or count another occurrence; a tombstoned hash is refused for ever (INV-24)."""

from collections import Counter
from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from ledger.models import Example, Tombstone
from ledger.rows import ExampleRow
from ledger.writer.upsert import adapt, columns, json_text

_COLUMNS = (
    "hash", "prompt_hash", "task", "messages", "completion", "params", "teacher_model", "licence", "licence_url",
    "split", "seen", "redactions", "origin", "client", "end_user", "is_verified", "is_golden_only", "is_contested",
    "first_seen_at", "last_seen_at", "purge_reason", "was_train",
)  # fmt: skip


def store_examples(connection: BaseDatabaseWrapper, rows: Sequence[ExampleRow]) -> set[str]:
    """Store ``rows`` in the caller's transaction; return the hashes that were refused because they were erased.

    A repeated request only raises ``seen``: the first label stays. A purged example gets its text back.
    """
    if not rows:
        return set()
    using = connection.alias
    hashes = {row.hash for row in rows}
    erased = set(Tombstone.objects.using(using).filter(hash__in=hashes).values_list("hash", flat=True))
    times = Counter(row.hash for row in rows if row.hash not in erased)
    first = {row.hash: row for row in reversed(rows)}
    with connection.cursor() as cursor:
        values = [adapt(connection, _values(first[key], times[key])) for key in sorted(times)]
        cursor.executemany(_upsert_sql(), values)
    return erased


def _upsert_sql() -> str:
    table = f'"{Example._meta.db_table}"'
    restored = ("messages", "completion", "params", "teacher_model", "licence", "licence_url", "redactions")
    restore = ", ".join(
        f"{name} = CASE WHEN {table}.purged_at IS NULL THEN {table}.{name} ELSE excluded.{name} END"
        for name in restored
    )
    return (
        f"INSERT INTO {table} ({', '.join(columns(Example, _COLUMNS))}) "  # noqa: S608 - names come from the model
        f"VALUES ({', '.join(['%s'] * len(_COLUMNS))}) ON CONFLICT (hash) DO UPDATE SET "
        f"seen = {table}.seen + excluded.seen, last_seen_at = excluded.last_seen_at, {restore}, purged_at = NULL, purge_reason = ''"
    )


def _values(row: ExampleRow, seen: int) -> tuple[object, ...]:
    return (
        row.hash, row.prompt_hash, row.task, json_text(row.messages), row.completion, json_text(row.params),
        row.teacher_model, row.licence, row.licence_url, row.split, seen, row.redactions, row.origin, row.client,
        row.end_user, False, False, False, row.at, row.at, "", False,
    )  # fmt: skip
