"""Bulk SQL that Django's ORM has no words for: COPY, and upserts that add to what is there. Same on both engines."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


def columns(model: type[models.Model], names: Sequence[str]) -> list[str]:
    """Return the quoted column names of ``model`` for the given attribute names."""
    by_attname = {field.attname: field.column for field in model._meta.concrete_fields}
    return [f'"{by_attname[name]}"' for name in names]


def adapt(connection: BaseDatabaseWrapper, values: Iterable[Any]) -> tuple[Any, ...]:
    """Convert one row's values to what the driver takes (SQLite stores times, dates and UUIDs as text)."""
    if connection.vendor == "postgresql":
        return tuple(values)
    return tuple(_for_sqlite(value) for value in values)


def _for_sqlite(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds" if value.microsecond else "seconds")
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, date):
        return value.isoformat()
    return value


def insert_rows(
    connection: BaseDatabaseWrapper, model: type[models.Model], names: Sequence[str], rows: Sequence[Iterable[Any]]
) -> None:
    """Insert rows with COPY on PostgreSQL and ``executemany`` on SQLite, inside the caller's transaction."""
    table = model._meta.db_table
    listed = ", ".join(columns(model, names))
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Django does not wrap the driver's COPY, so its errors would not be django.db.utils errors.
            with connection.wrap_database_errors, cursor.copy(f'COPY "{table}" ({listed}) FROM STDIN') as copy:
                for row in rows:
                    copy.write_row(tuple(row))
            return
        marks = ", ".join(["%s"] * len(names))
        cursor.executemany(
            f'INSERT INTO "{table}" ({listed}) VALUES ({marks})',  # noqa: S608 - names come from the model
            [adapt(connection, row) for row in rows],
        )


def add_to_sums(
    connection: BaseDatabaseWrapper,
    model: type[models.Model],
    keys: Sequence[str],
    sums: Sequence[str],
    totals: Mapping[Any, Sequence[int]],
) -> None:
    """Add ``totals`` (key tuple to sums) to the rows of ``model``, creating the missing ones.

    Rows are taken in key order, so that two writers lock them in the same order and never deadlock.
    """
    if not totals:
        return
    table = model._meta.db_table
    key_columns, sum_columns = columns(model, keys), columns(model, sums)
    updates = ", ".join(f'{column} = "{table}".{column} + excluded.{column}' for column in sum_columns)
    marks = ", ".join(["%s"] * (len(keys) + len(sums)))
    sql = (
        f'INSERT INTO "{table}" ({", ".join(key_columns + sum_columns)}) VALUES ({marks}) '  # noqa: S608
        f"ON CONFLICT ({', '.join(key_columns)}) DO UPDATE SET {updates}"
    )
    with connection.cursor() as cursor:
        cursor.executemany(sql, [adapt(connection, (*key, *totals[key])) for key in sorted(totals)])


def json_text(value: Any) -> str | None:
    """Return a value as the JSON text that both engines store in a JSON column."""
    return None if value is None else json.dumps(value, ensure_ascii=False)
