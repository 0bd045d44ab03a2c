"""Recounting the sums from the requests: what the rollups and tallies say against what the rows say (INV-27)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, models, transaction

from ledger.contributions import ROLLUP_SUMS, TALLY_SUMS, Contributions, RequestLike, RollupKey, TallyKey
from ledger.models import HourlyRollup, Request, StageTally
from ledger.writer.batch import add_contributions
from ledger.writer.statements import Inserts

_COLUMNS = tuple(RequestLike.__annotations__)
_CHUNK = 2000


@dataclass(frozen=True, slots=True)
class Difference:
    """One sum that is not what the requests add up to."""

    table: str
    key: str
    column: str
    stored: int
    recounted: int

    def __str__(self) -> str:
        return f"{self.table} [{self.key}] {self.column}: {self.stored} stored, {self.recounted} recounted"


def recount(*, repair: bool = False) -> list[Difference]:
    """Compare every rollup and tally with the requests; with ``repair``, rewrite both tables in one transaction.

    Comparing sees one moment and blocks nobody on PostgreSQL; repairing holds the ledger's writers back meanwhile.
    """
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if connection.vendor == "postgresql":
            _settle_view(repair, is_outermost)
        sums = Contributions()
        for row in Request.objects.only(*_COLUMNS).order_by().iterator(chunk_size=_CHUNK):
            sums.add(row)
        differences = [
            *_differences(HourlyRollup, RollupKey._fields, ROLLUP_SUMS, sums.rollups),
            *_differences(StageTally, TallyKey._fields, TALLY_SUMS, sums.tallies),
        ]
        if repair and differences:
            HourlyRollup.objects.all().delete()
            StageTally.objects.all().delete()
            inserts = Inserts(connection.vendor)
            add_contributions(inserts, sums)
            with connection.cursor() as cursor:
                inserts.run(cursor)
    return differences


def _settle_view(repair: bool, is_outermost: bool) -> None:
    with connection.cursor() as cursor:
        if repair:
            # Waits for the commits under way, whose sums are then visible, and lets no other begin.
            cursor.execute(f'LOCK TABLE "{Request._meta.db_table}" IN SHARE MODE')
        elif is_outermost:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def _differences(
    model: type[models.Model], key_names: Sequence[str], columns: Sequence[str], recounted: Mapping[Any, Sequence[int]]
) -> Iterator[Difference]:
    rows = model._default_manager.values_list(*key_names, *columns)
    stored = {tuple(row[: len(key_names)]): row[len(key_names) :] for row in rows}
    nothing = (0,) * len(columns)
    for key in sorted({*stored, *map(tuple, recounted)}):
        pairs = zip(columns, stored.get(key, nothing), recounted.get(key, nothing), strict=True)
        for column, was, is_now in pairs:
            if was != is_now:
                yield Difference(model.__name__, " ".join(str(part) for part in key), column, was, is_now)
