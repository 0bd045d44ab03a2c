"""The ledger writer: groups, back-pressure, a database that is away, rows that are refused."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.fernet import Fernet
from django.db import IntegrityError, OperationalError, connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from common.clock import ManualClock
from ledger.contributions import ROLLUP_SUMS, Contributions
from ledger.models import Example, HourlyRollup, Request, StageTally, Student
from ledger.rows import CheckRow, ExampleRow, LedgerEntry, RequestRow
from ledger.writer import replay, thread
from ledger.writer.batch import write_entries
from ledger.writer.spool import Spool
from ledger.writer.thread import LedgerWriter, QueueFull
from tests.gateway.world import make_version

AT = datetime(2026, 11, 2, 12, 30, tzinfo=UTC)
KEY = Fernet(Fernet.generate_key())


def make_row(number: int, **changes: Any) -> RequestRow:
    values = {
        "id": UUID(int=number),
        "at": AT,
        "on": AT.date(),
        "student_id": Student.objects.get().pk,
        "task": "default",
        "route": "cold_start",
        "served_by": "teacher",
        "cost_nusd": 10,
        "teacher_cost_nusd": 10,
        "baseline_nusd": 10,
    }
    return RequestRow(**{**values, **changes})


def make_example(number: int, **changes: Any) -> ExampleRow:
    digest = f"{number:064x}"
    values: dict[str, Any] = {
        "hash": digest,
        "prompt_hash": digest,
        "task": "default",
        "messages": [{"role": "user", "content": "hé"}],
        "completion": "ok",
        "params": None,
        "teacher_model": "t",
        "licence": "MIT",
        "licence_url": "",
        "split": "train",
        "redactions": 0,
        "origin": "cold_start",
        "client": "",
        "end_user": "",
        "at": AT,
    }
    return ExampleRow(**{**values, **changes})


def write(writer: LedgerWriter, entries: Sequence[LedgerEntry]) -> None:
    """Run a writer for the length of one burst of concurrent requests."""

    async def burst() -> None:
        writer.start()
        try:
            await asyncio.gather(*(writer.write(entry) for entry in entries))
        finally:
            await asyncio.to_thread(writer.stop)

    asyncio.run(burst())


@pytest.mark.usefixtures("ledger")
@pytest.mark.req("INV-27", "FR-3.1")
def test_one_group_writes_rows_examples_and_sums_in_one_transaction():
    repeated = [LedgerEntry(make_row(n, stored=True), [make_example(7)]) for n in (1, 2, 3)]
    write_entries([*repeated, LedgerEntry(make_row(4), [])], connection)
    assert Request.objects.count() == 4
    assert Example.objects.get().seen == 3
    rollup = HourlyRollup.objects.get()
    assert (rollup.n_requests, rollup.n_stored, rollup.cost_nusd) == (4, 3, 40)


@pytest.mark.usefixtures("ledger")
@pytest.mark.req("INV-29")
def test_a_group_with_one_bad_row_writes_nothing():
    entries = [LedgerEntry(make_row(1), [make_example(1)]), LedgerEntry(make_row(2, cost_nusd=99), [])]
    with pytest.raises(IntegrityError, match="request_cost_is_the_sum"), transaction.atomic():
        write_entries(entries, connection)
    assert (Request.objects.count(), Example.objects.count(), HourlyRollup.objects.count()) == (0, 0, 0)


@pytest.mark.usefixtures("shared_ledger")
@pytest.mark.req("FR-3.1")
def test_concurrent_requests_share_commits_and_each_waits_for_its_own(tmp_path: Path):
    committed: list[int] = []
    writer = LedgerWriter(Spool(tmp_path, KEY), 1000, lambda entries: committed.append(len(entries)))
    write(writer, [LedgerEntry(make_row(n), []) for n in range(1, 201)])
    assert Request.objects.count() == sum(committed) == 200
    assert len(committed) < 200


@pytest.mark.usefixtures("shared_ledger")
@pytest.mark.req("FR-3.1")
def test_a_full_queue_refuses_new_requests_and_still_writes_what_was_served(tmp_path: Path):
    writer = LedgerWriter(Spool(tmp_path, KEY), 0, lambda entries: None)
    with pytest.raises(QueueFull):
        writer.require_room()
    write(writer, [LedgerEntry(make_row(1), [])])
    assert Request.objects.count() == 1


@pytest.mark.usefixtures("shared_ledger")
@pytest.mark.req("INV-7", "INV-28", "INV-12")
def test_while_the_database_is_away_answers_go_out_and_rows_come_back_from_the_spool(tmp_path: Path, monkeypatch):
    away = threading.Event()
    away.set()

    def flaky(entries: Sequence[LedgerEntry], connection: Any) -> None:
        if away.is_set():
            raise OperationalError("the database is away")
        write_entries(entries, connection)

    monkeypatch.setattr(thread, "write_entries", flaky)
    spool = Spool(tmp_path, KEY)
    entries = [LedgerEntry(make_row(n), [make_example(n)]) for n in (1, 2)]
    writer = LedgerWriter(spool, 100, lambda entries: None)
    write(writer, entries)
    assert (Request.objects.count(), spool.count(), writer.n_spooled) == (0, 2, 2)
    assert all(b"cold_start" not in path.read_bytes() for path in tmp_path.iterdir())
    away.clear()
    recovered: list[int] = []
    again = LedgerWriter(spool, 100, lambda entries: None, on_recovery=recovered.append)
    write(again, [LedgerEntry(make_row(3), [])])
    assert recovered == [2]
    assert (Request.objects.count(), Example.objects.count(), spool.count()) == (3, 2, 0)


@pytest.mark.usefixtures("shared_ledger")
@pytest.mark.req("INV-7")
def test_a_row_the_database_refuses_is_spooled_alone_and_its_neighbours_are_written(tmp_path: Path):
    spool = Spool(tmp_path, KEY)
    entries = [LedgerEntry(make_row(n, cost_nusd=10 if n != 2 else 99), []) for n in (1, 2, 3)]
    write(LedgerWriter(spool, 100, lambda entries: None), entries)
    assert set(Request.objects.values_list("id", flat=True)) == {UUID(int=1), UUID(int=3)}
    assert spool.count() == 0
    assert [path.name for path in tmp_path.iterdir()] == [f"{UUID(int=2).hex}.refused"]


@pytest.mark.usefixtures("shared_ledger")
@pytest.mark.req("INV-7", "INV-28")
def test_a_value_the_driver_refuses_blocks_neither_its_group_nor_the_rows_behind_it_in_the_spool(tmp_path: Path):
    spool = Spool(tmp_path, KEY)
    bad = LedgerEntry(make_row(1, cost_nusd=2**70, teacher_cost_nusd=2**70), [])
    write(LedgerWriter(spool, 100, lambda entries: None), [bad, *(LedgerEntry(make_row(n), []) for n in (2, 3, 4))])
    assert {row.int for row in Request.objects.values_list("id", flat=True)} == {2, 3, 4}
    spool.keep([bad, LedgerEntry(make_row(5), [])])
    write(LedgerWriter(spool, 100, lambda entries: None), [LedgerEntry(make_row(6), [])])
    assert {row.int for row in Request.objects.values_list("id", flat=True)} == {2, 3, 4, 5, 6}
    assert [path.name for path in tmp_path.iterdir()] == [f"{UUID(int=1).hex}.refused"]


@pytest.mark.usefixtures("shared_ledger")
@pytest.mark.req("INV-7", "INV-28")
@pytest.mark.parametrize("back", ["disk", "database"])
def test_rows_that_neither_database_nor_disk_takes_wait_in_memory(tmp_path: Path, monkeypatch, back: str):
    broken = {"disk", "database"}
    recovered = threading.Event()

    def write_unless_away(entries: Sequence[LedgerEntry], connection: Any) -> None:
        if "database" in broken:
            raise OperationalError("the database is away")
        write_entries(entries, connection)

    class FullDisk(Spool):
        def keep(self, entries: Any) -> None:
            if "disk" in broken:
                raise OSError(28, "No space left on device")
            super().keep(entries)
            recovered.set()

    monkeypatch.setattr(thread, "write_entries", write_unless_away)
    monkeypatch.setattr(replay, "RETRY_S", 0.01)
    spool = FullDisk(tmp_path, KEY)
    entries = [LedgerEntry(make_row(n), []) for n in (1, 2, 3)]

    async def outage() -> None:
        writer = LedgerWriter(spool, 3, lambda entries: recovered.set())
        writer.start()
        for entry in entries:
            await asyncio.wait_for(writer.write(entry), 30)
        with pytest.raises(QueueFull):
            writer.require_room()
        broken.discard(back)
        assert await asyncio.to_thread(recovered.wait, 30)
        await asyncio.to_thread(writer.stop)
        writer.require_room()

    asyncio.run(outage())
    assert (Request.objects.count(), spool.count()) == ((0, 3) if back == "disk" else (3, 0))


@pytest.mark.usefixtures("shared_ledger")
@pytest.mark.req("INV-7")
def test_a_database_that_hangs_on_rows_of_the_past_keeps_no_request_waiting(tmp_path: Path, monkeypatch):
    spool = Spool(tmp_path, KEY)
    spool.keep([LedgerEntry(make_row(1), [])])
    hanging, released = threading.Event(), threading.Event()
    entry = LedgerEntry(make_row(2), [])

    def hang(*args: Any) -> None:
        hanging.set()
        released.wait(60)

    monkeypatch.setattr(thread, "write_once", hang)

    async def requests() -> None:
        writer = LedgerWriter(spool, 100, lambda entries: None)
        writer.start()
        assert await asyncio.to_thread(hanging.wait, 30)
        await asyncio.wait_for(writer.write(entry), 30)
        assert not released.is_set()
        released.set()
        await asyncio.to_thread(writer.stop)

    asyncio.run(requests())
    assert Request.objects.get().pk == UUID(int=2)


@pytest.mark.usefixtures("shared_ledger")
@pytest.mark.req("INV-29")
def test_a_failure_to_pass_committed_rows_on_writes_nothing_twice(tmp_path: Path):
    def fail(entries: Sequence[LedgerEntry]) -> None:
        raise ValueError

    writer = LedgerWriter(Spool(tmp_path, KEY), 100, fail)
    write(writer, [LedgerEntry(make_row(n), []) for n in (1, 2)])
    assert (Request.objects.count(), HourlyRollup.objects.get().n_requests, writer.n_spooled) == (2, 2, 0)


@pytest.mark.usefixtures("ledger")
@pytest.mark.req("INV-28")
def test_an_example_that_comes_late_from_the_spool_does_not_turn_its_last_sight_back(tmp_path: Path):
    later = AT + timedelta(hours=1)
    write_entries([LedgerEntry(make_row(1), [make_example(7)]), LedgerEntry(make_row(2), [make_example(7, at=later)])],
                  connection)  # fmt: skip
    assert (Example.objects.get().first_seen_at, Example.objects.get().last_seen_at) == (AT, later)
    write_entries([LedgerEntry(make_row(3), [make_example(7)])], connection)
    assert (Example.objects.get().last_seen_at, Example.objects.get().seen) == (later, 3)


@pytest.mark.usefixtures("shared_ledger")
@pytest.mark.req("INV-29")
def test_a_spooled_row_that_had_been_written_after_all_is_not_counted_twice(tmp_path: Path):
    spool = Spool(tmp_path, KEY)
    write_entries([LedgerEntry(make_row(1), [])], connection)
    spool.keep([LedgerEntry(make_row(1), [])])
    assert spool.drain(lambda entry: thread.write_once(entry, "default", lambda entries: None)) == 1
    assert (Request.objects.count(), HourlyRollup.objects.get().n_requests) == (1, 1)


@pytest.mark.req("INV-28")
def test_the_spool_gives_back_exactly_what_it_kept_and_sets_unreadable_files_aside(tmp_path: Path):
    entry = LedgerEntry(
        RequestRow(UUID(int=9), AT, AT.date(), 1, "t", "r", "teacher", confidence=0.25),
        [make_example(1)],
        CheckRow(True, 4, None, b"\x00\xff sealed"),
    )
    spool = Spool(tmp_path, KEY)
    spool.keep([entry])
    (tmp_path / "0.entry").write_bytes(b"not a token")
    back: list[LedgerEntry] = []
    assert spool.drain(back.append) == 1
    assert back == [entry]
    assert [path.name for path in tmp_path.iterdir()] == ["0.unreadable"]


@pytest.mark.req("INV-28")
@pytest.mark.parametrize("tag", ["$bytes", "$uuid", "$date", "$datetime"])
@pytest.mark.parametrize("value", ["x", {"type": "string"}, 7])
def test_the_spool_takes_no_content_for_its_own_notation(tmp_path: Path, tag: str, value: Any):
    messages = [{"role": "user", "content": [{tag: value}]}]
    example = make_example(1, messages=messages, params={"properties": {tag: value}})
    entry = LedgerEntry(RequestRow(UUID(int=9), AT, AT.date(), 1, "t", "r", "teacher"), [example])
    spool = Spool(tmp_path, KEY)
    spool.keep([entry])
    back: list[LedgerEntry] = []
    assert spool.drain(back.append) == 1
    assert back == [entry]


@pytest.mark.req("INV-28", "INV-29")
def test_an_entry_is_written_by_one_process_at_a_time(tmp_path: Path):
    spool, other = Spool(tmp_path, KEY), Spool(tmp_path, KEY)
    spool.keep([LedgerEntry(RequestRow(UUID(int=9), AT, AT.date(), 1, "t", "r", "teacher"), [])])
    elsewhere: list[LedgerEntry] = []
    assert spool.drain(lambda entry: elsewhere.extend([entry] * other.drain(elsewhere.append))) == 1
    assert elsewhere == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.req("INV-28")
def test_an_entry_that_a_killed_process_was_writing_is_written_by_the_next(tmp_path: Path):
    key = Fernet.generate_key()
    spool = Spool(tmp_path, Fernet(key))
    entry = LedgerEntry(RequestRow(UUID(int=9), AT, AT.date(), 1, "t", "r", "teacher"), [])
    spool.keep([entry])
    code = (
        "import sys, time; from pathlib import Path; from cryptography.fernet import Fernet\n"
        "from ledger.writer.spool import Spool\n"
        "def write(entry): print('writing', flush=True); time.sleep(600)\n"
        "Spool(Path(sys.argv[1]), Fernet(sys.argv[2].encode())).drain(write)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), key.decode()], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"writing\n"
    back: list[LedgerEntry] = []
    assert spool.drain(back.append) == 0
    child.send_signal(signal.SIGKILL)
    child.wait(30)
    assert spool.drain(back.append) == 1
    assert back == [entry]


@pytest.mark.req("INV-28")
def test_an_entry_whose_write_fails_stays_in_the_spool(tmp_path: Path):
    spool = Spool(tmp_path, KEY)
    spool.keep([LedgerEntry(RequestRow(UUID(int=9), AT, AT.date(), 1, "t", "r", "teacher"), [])])

    def fail(entry: LedgerEntry) -> None:
        raise OperationalError

    with pytest.raises(OperationalError):
        spool.drain(fail)
    assert spool.count() == 1


rows = st.builds(
    RequestRow,
    id=st.uuids(),
    at=st.datetimes(timezones=st.just(UTC)),
    on=st.dates(),
    student_id=st.just(1),
    task=st.sampled_from(["a", "b"]),
    route=st.sampled_from(["student", "confidence", "student_error"]),
    served_by=st.sampled_from(["student", "teacher"]),
    version_id=st.none() | st.integers(1, 2),
    stage=st.integers(0, 2),
    audit=st.sampled_from(["none", "pending", "agree", "disagree", "failed"]),
    shadow=st.sampled_from(["none", "pending", "agree", "disagree", "escalate", "unarbitrated", "failed"]),
    shadow_version_id=st.none() | st.just(3),
    shadow_stage=st.just(1),
    cost_nusd=st.integers(0, 10**12),
    wall_ms=st.floats(0, 1e6),
)


@pytest.mark.req("INV-27")
@given(st.lists(rows, max_size=8))
def test_taking_away_what_was_added_leaves_zero_everywhere(batch: list[RequestRow]):
    sums = Contributions()
    for row in batch:
        sums.add(row)
    assert sum(totals[ROLLUP_SUMS.index("n_requests")] for totals in sums.rollups.values()) == len(batch)
    for row in batch:
        sums.add(row, -1)
    assert not any(any(totals) for totals in (*sums.rollups.values(), *sums.tallies.values()))


@pytest.mark.usefixtures("ledger")
@pytest.mark.req("FR-6.4")
def test_shadow_evidence_counts_live_coverage_only_where_live_answered():

    clock = ManualClock(AT)
    live, shadow = make_version(clock, 1), make_version(clock, 2, "shadow", 0)
    common = {"version_id": live.pk, "stage": 1, "shadow_version_id": shadow.pk, "shadow_stage": 1}
    for number, (route, served_by, verdict) in enumerate(
        [
            ("student", "student", "agree"),
            ("n_choices", "teacher", "agree"),
            ("confidence", "teacher", "unarbitrated"),
            ("student_error", "teacher", "escalate"),
            ("student", "student", "failed"),
        ],
        1,
    ):
        row = make_row(
            number, route=route, served_by=served_by, escalated=served_by == "teacher", shadow=verdict, **common
        )
        write_entries([LedgerEntry(row, [])], connection)
    tally = StageTally.objects.get(version=shadow)
    assert (tally.n_shadow, tally.n_would_serve, tally.n_shadow_agree, tally.n_unarbitrated) == (4, 3, 2, 1)
    assert (tally.n_live_answered, tally.n_live_served) == (3, 2)
