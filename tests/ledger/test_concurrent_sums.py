"""Several writers at once: every row once, and sums that equal their rows."""

import random
import threading
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connections

from ledger.daytable import day_table
from ledger.models import HourlyRollup, Request, Student
from ledger.recount import recount
from ledger.rows import ExampleRow, LedgerEntry, RequestRow
from ledger.writer.batch import write_entries

MIDNIGHT = datetime(2026, 11, 3, tzinfo=UTC)
N_WRITERS, N_GROUPS, GROUP = 4, 12, 5


def entry(number: int, student_id: int, draws: random.Random) -> LedgerEntry:
    """A request within a minute of midnight; every writer touches the same few rollups and examples."""
    at = MIDNIGHT + timedelta(seconds=draws.uniform(-60, 60))
    cost = draws.randrange(10**9)
    row = RequestRow(UUID(int=number), at, at.date(), student_id, f"task-{draws.randrange(3)}", "cold_start", "teacher",
                     cost_nusd=cost, teacher_cost_nusd=cost, wall_ms=draws.random(), stored=True)  # fmt: skip
    digest = f"{draws.randrange(4):064x}"
    example = ExampleRow(digest, digest, row.task, [], "ok", None, "t", "MIT", "", "train", 0, "cold_start", "", "", at)
    return LedgerEntry(row, [example])


@pytest.mark.usefixtures("shared_ledger")
@pytest.mark.req("INV-27", "INV-29", "FR-3.1")
def test_concurrent_writers_around_midnight_leave_exact_sums():
    student_id = Student.objects.get().pk
    together = threading.Barrier(N_WRITERS)
    errors: list[Exception] = []

    def write(writer: int) -> None:
        draws = random.Random(writer)
        try:
            together.wait(30)
            for group in range(N_GROUPS):
                first = (writer * N_GROUPS + group) * GROUP + 1
                entries = [entry(number, student_id, draws) for number in range(first, first + GROUP)]
                write_entries(entries, connections["default"])
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(N_WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
    assert Request.objects.count() == N_WRITERS * N_GROUPS * GROUP
    assert recount() == []
    assert set(HourlyRollup.objects.values_list("hour_at", flat=True)) == {MIDNIGHT - timedelta(hours=1), MIDNIGHT}
    days = {day.on: day.n_requests for day in day_table()}
    assert days == {
        on: Request.objects.filter(on=on).count() for on in (MIDNIGHT.date() - timedelta(1), MIDNIGHT.date())
    }
