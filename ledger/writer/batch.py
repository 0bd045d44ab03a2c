"""One durable commit for a group of requests: examples, requests, checks, then sums, in this fixed lock order."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from ledger.contributions import ROLLUP_SUMS, TALLY_SUMS, Contributions, RollupKey, TallyKey
from ledger.models import Check, HourlyRollup, Request, StageTally
from ledger.rows import REQUEST_COLUMNS, LedgerEntry
from ledger.writer.examples import add_examples, erased_hashes
from ledger.writer.statements import Inserts, adding, binary

_CHECK_COLUMNS = (
    "request_id", "created_at", "version_id", "wants_audit", "shadow_version_id", "payload", "holder", "attempts",
)  # fmt: skip


def write_entries(entries: Sequence[LedgerEntry], connection: BaseDatabaseWrapper) -> None:
    """Write ``entries`` in one transaction: all of them, or none.

    A request whose every example is refused (erased hashes) is recorded as not stored.
    """
    with _one_transaction(connection), connection.cursor() as cursor:
        erased = erased_hashes(cursor, {row.hash for entry in entries for row in entry.examples})
        inserts = Inserts(connection.vendor)
        add_examples(inserts, [row for entry in entries for row in entry.examples if row.hash not in erased])
        sums = Contributions()
        for entry in entries:
            if entry.examples and erased:
                entry.request.stored = any(row.hash not in erased for row in entry.examples)
            sums.add(entry.request)
        inserts.add(Request, REQUEST_COLUMNS, [entry.request for entry in entries])
        owed = [_check_document(entry, connection.vendor) for entry in entries if entry.check is not None]
        inserts.add(Check, _CHECK_COLUMNS, owed)
        add_contributions(inserts, sums)
        inserts.run(cursor)


def add_contributions(inserts: Inserts, sums: Contributions) -> None:
    """Add the adding of summed contributions to the rollups and the stage tallies."""
    for model, keys, columns, totals in (
        (HourlyRollup, RollupKey._fields, ROLLUP_SUMS, sums.rollups),
        (StageTally, TallyKey._fields, TALLY_SUMS, sums.tallies),
    ):
        names = (*keys, *columns)
        rows: list[dict[str, Any]] = [
            dict(zip(names, (*key, *added), strict=True)) for key, added in sorted(totals.items())
        ]
        inserts.add(model, names, rows, adding(model, keys, columns))


def _one_transaction(connection: BaseDatabaseWrapper) -> AbstractContextManager[Any]:
    """PostgreSQL takes the group as one transaction by itself; without BEGIN and COMMIT it is one round trip."""
    return nullcontext() if connection.vendor == "postgresql" else transaction.atomic(using=connection.alias)


def _check_document(entry: LedgerEntry, vendor: str) -> dict[str, Any]:
    check, request = entry.check, entry.request
    assert check is not None  # noqa: S101 - the caller filtered
    return {
        "request_id": request.id,
        "created_at": request.at,
        "version_id": check.version_id,
        "wants_audit": check.wants_audit,
        "shadow_version_id": check.shadow_version_id,
        "payload": binary(check.payload, vendor),
        "holder": check.holder,
        "attempts": 0,
    }
