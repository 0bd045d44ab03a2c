"""A group of inserts that goes to the database together.

On PostgreSQL the group is one message: rows travel as JSON that the server unfolds (``json_populate_recordset``), and a
message of several statements is one transaction (PostgreSQL manual, "Multiple Statements in a Simple Query"). Measured
with one row, BEGIN, COPY, two upserts and COMMIT are nine round trips and 1,400 µs of our CPU, the group a quarter of
that. On SQLite, where a round trip costs nothing, each insert is an ``executemany``.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cache
from typing import Any
from uuid import UUID

import orjson
from django.db import models
from django.db.backends.utils import CursorWrapper

Names = tuple[str, ...]


class Inserts:
    """Collects inserts and runs them in the order they were added, which is also the order of their locks."""

    def __init__(self, vendor: str) -> None:
        self._is_postgresql = vendor == "postgresql"
        self._statements: list[tuple[str, Any]] = []

    def add(
        self, model: type[models.Model], names: Names, rows: Sequence[Mapping[str, Any] | Any], conflict: str = ""
    ) -> None:
        """Add the insert of ``rows``, mappings or dataclasses with at least ``names``, with its ON CONFLICT clause.

        Rows that other writers may touch come in key order, so that two writers lock them in the same order.
        """
        if not rows:
            return
        table, listed = model._meta.db_table, _listed(names)
        insert = f'INSERT INTO "{table}" ({listed})'
        if self._is_postgresql:
            source = f'SELECT {listed} FROM json_populate_recordset(NULL::"{table}", %s::json)'  # noqa: S608 - our names
            self._statements.append((f"{insert} {source} {conflict}", orjson.dumps(rows).decode()))
        else:
            # "WHERE true" keeps SQLite from reading ON CONFLICT as a join (its manual, "Parsing Ambiguity").
            source = f"SELECT {', '.join(['%s'] * len(names))} WHERE true"
            self._statements.append((f"{insert} {source} {conflict}", [_sqlite_row(row, names) for row in rows]))

    def run(self, cursor: CursorWrapper) -> None:
        """Run what was added. In autocommit mode PostgreSQL takes it as one transaction; SQLite needs the caller's."""
        if not self._statements:
            return
        if self._is_postgresql:
            cursor.execute("; ".join(sql for sql, _ in self._statements), [rows for _, rows in self._statements])
            return
        for sql, rows in self._statements:
            cursor.executemany(sql, rows)


@cache
def adding(model: type[models.Model], keys: Names, sums: Names) -> str:
    """Return the ON CONFLICT clause that adds ``sums`` to the row with the same ``keys``."""
    table = model._meta.db_table
    updates = ", ".join(f'"{name}" = "{table}"."{name}" + excluded."{name}"' for name in sums)
    return f"ON CONFLICT ({_listed(keys)}) DO UPDATE SET {updates}"


@cache
def _listed(names: Names) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _sqlite_row(row: Any, names: Names) -> list[Any]:
    values = (row[name] for name in names) if isinstance(row, Mapping) else (getattr(row, name) for name in names)
    return [_for_sqlite(value) for value in values]


def _for_sqlite(value: Any) -> Any:
    """SQLite stores times, dates, UUIDs and JSON as text."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds" if value.microsecond else "seconds")
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict | list):
        return orjson.dumps(value).decode()
    return value


def binary(value: bytes | None, vendor: str) -> Any:
    """Return bytes as they travel: PostgreSQL's hex form inside JSON, bytes themselves on SQLite."""
    return f"\\x{value.hex()}" if value is not None and vendor == "postgresql" else value
