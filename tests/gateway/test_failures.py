"""The failure log while the database is away, and with a row that it refuses."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db.models.query import QuerySet
from django.db.utils import DataError, OperationalError

from common.clock import ManualClock
from gateway.failures import FailureLog
from ledger.models import Event, Failure
from tests.gateway.world import wait_for

Written = list[Any]


@pytest.fixture
def log(shared_ledger: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[FailureLog]:
    monkeypatch.setattr("gateway.failures.IDLE_S", 0.01)
    failures = FailureLog()
    yield failures
    failures.stop()


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Written], Exception | None]], None]:
    """``database(fault)``: a write of rows for which ``fault`` names an error fails with it."""
    real = QuerySet.bulk_create

    def install(fault: Callable[[Written], Exception | None]) -> None:
        def bulk_create(self: Any, rows: Written, *args: Any, **options: Any) -> Any:
            error = fault(rows)
            if error is not None:
                raise error
            return real(self, rows, *args, **options)

        monkeypatch.setattr(QuerySet, "bulk_create", bulk_create)

    return install


@pytest.mark.req("INV-27", "INV-19", "FR-1.10")
def test_failures_wait_for_a_database_that_is_away(log: FailureLog, database: Any, clock: ManualClock) -> None:
    tries = []

    def away(rows: Written) -> Exception | None:
        tries.append(len(rows))
        return OperationalError("server closed the connection") if len(tries) <= 4 else None

    database(away)
    log.refused("teacher_error", "http_500", at=clock.now(), cost_nusd=7)
    log.event("circuit", "teacher: closed->open", at=clock.now())
    log.refused("teacher_error", "timeout", at=clock.now(), cost_nusd=8)
    log.start()
    wait_for(lambda: Failure.objects.count() == 2 and Event.objects.filter(kind="circuit").count() == 1)
    assert list(Failure.objects.order_by("pk").values_list("error", "cost_nusd")) == [("http_500", 7), ("timeout", 8)]
    assert log.n_dropped == 0


@pytest.mark.req("NFR-2", "FR-1.10")
def test_what_does_not_fit_while_the_database_is_away_is_counted_as_dropped(
    log: FailureLog, database: Any, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.failures.MAX_WAITING", 3)
    is_away, tries = [True], []

    def away(rows: Written) -> Exception | None:
        tries.append(len(rows))
        return OperationalError("server closed the connection") if is_away[0] else None

    database(away)
    log.start()
    for number in range(5):
        log.refused("http_429", f"code {number}", at=clock.now())
        tries.clear()
        wait_for(lambda: len(tries) > 1)
    is_away[0] = False
    wait_for(lambda: Failure.objects.count() == 3)
    assert log.n_dropped == 2


@pytest.mark.req("INV-27", "FR-1.10")
@pytest.mark.parametrize("error", [DataError("value too long"), ValueError("a NUL character")])
def test_a_row_that_the_database_refuses_takes_no_other_with_it(
    log: FailureLog, database: Any, clock: ManualClock, error: Exception
) -> None:
    database(lambda rows: error if any("bad" in getattr(row, "error", "") for row in rows) else None)
    for name in ("one", "bad", "two"):
        log.refused("http_502", name, at=clock.now())
    log.start()
    wait_for(lambda: Failure.objects.count() == 2)
    log.refused("http_502", "three", at=clock.now())
    wait_for(lambda: Failure.objects.count() == 3)
    assert set(Failure.objects.values_list("error", flat=True)) == {"one", "two", "three"}
    assert log.n_dropped == 1
