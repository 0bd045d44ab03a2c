"""One durable commit for a group of requests: examples, requests, checks, then sums, in this fixed lock order."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from ledger.contributions import ROLLUP_SUMS, TALLY_SUMS, Contributions, RollupKey, TallyKey
from ledger.models import Check, HourlyRollup, Request, StageTally
from ledger.rows import REQUEST_COLUMNS, LedgerEntry
from ledger.writer.examples import store_examples
from ledger.writer.upsert import add_to_sums, insert_rows

_CHECK_COLUMNS = (
    "request_id",
    "created_at",
    "version_id",
    "wants_audit",
    "shadow_version_id",
    "payload",
    "holder",
    "attempts",
)


def write_entries(entries: Sequence[LedgerEntry], connection: BaseDatabaseWrapper) -> None:
    """Write ``entries`` in one transaction: all of them, or none.

    A request whose every example was refused (erased hashes) is recorded as not stored.
    """
    with transaction.atomic(using=connection.alias):
        erased = store_examples(connection, [row for entry in entries for row in entry.examples])
        sums = Contributions()
        for entry in entries:
            if entry.examples and erased:
                entry.request.stored = any(row.hash not in erased for row in entry.examples)
            sums.add(entry.request)
        rows = [tuple(getattr(entry.request, name) for name in REQUEST_COLUMNS) for entry in entries]
        insert_rows(connection, Request, REQUEST_COLUMNS, rows)
        checks = [_check_values(entry, entry.request.at) for entry in entries if entry.check is not None]
        if checks:
            insert_rows(connection, Check, _CHECK_COLUMNS, checks)
        add_contributions(connection, sums)


def add_contributions(connection: BaseDatabaseWrapper, sums: Contributions) -> None:
    """Add summed contributions to the rollups and the stage tallies, in the caller's transaction."""
    add_to_sums(connection, HourlyRollup, RollupKey._fields, ROLLUP_SUMS, sums.rollups)
    add_to_sums(connection, StageTally, TallyKey._fields, TALLY_SUMS, sums.tallies)


def _check_values(entry: LedgerEntry, at: datetime) -> tuple[object, ...]:
    check = entry.check
    assert check is not None  # noqa: S101 - the caller filtered
    return (
        entry.request.id, at, check.version_id, check.wants_audit, check.shadow_version_id, check.payload,
        check.holder, 0,
    )  # fmt: skip
