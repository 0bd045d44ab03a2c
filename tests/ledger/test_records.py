"""What the database itself refuses, on both engines."""

from dataclasses import fields
from datetime import timedelta

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from common.clock import ManualClock
from ledger.models import (
    AdminAction,
    Event,
    Receipt,
    Request,
    StateEpoch,
    Student,
    Task,
    Tombstone,
    Version,
    VersionLeaf,
)
from ledger.rows import RequestRow
from ledger.triggers import create_guards_sql, create_sql

pytestmark = pytest.mark.usefixtures("ledger")


def make_version(clock: ManualClock, number: int, state: str = "candidate", pct: int = 0) -> Version:
    return Version.objects.create(
        student=Student.objects.get(),
        number=number,
        adapter=f"default-v{number}",
        base_model="base",
        state=state,
        traffic_pct=pct,
        stage_since_at=clock.now(),
        created_at=clock.now(),
    )


def refused(statement, *params):
    with pytest.raises(DatabaseError) as raised, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, params)
    return str(raised.value)


@pytest.mark.req("FR-3.1")
def test_a_request_row_names_exactly_the_columns_of_the_request_table():
    names = {field.name for field in fields(RequestRow)}
    assert names == {field.attname for field in Request._meta.concrete_fields}


@pytest.mark.req("INV-5", "INV-29")
@pytest.mark.parametrize(("state", "pct"), [("live", 100), ("shadow", 0), ("canary", 10)])
def test_a_second_live_or_in_flight_version_is_refused(clock: ManualClock, state: str, pct: int):
    make_version(clock, 1, state, pct)
    with pytest.raises(IntegrityError), transaction.atomic():
        make_version(clock, 2, "canary" if state == "shadow" else state, 10 if state == "shadow" else pct)
    assert Version.objects.count() == 1


@pytest.mark.req("INV-29")
@pytest.mark.parametrize(("state", "pct"), [("live", 50), ("canary", 0), ("canary", 100), ("shadow", 10)])
def test_traffic_must_fit_the_state(clock: ManualClock, state: str, pct: int):
    with pytest.raises(IntegrityError), transaction.atomic():
        make_version(clock, 1, state, pct)


@pytest.mark.req("INV-29")
def test_a_version_cannot_move_without_its_next_stage_number(clock: ManualClock):
    version = make_version(clock, 1)
    message = refused("UPDATE ledger_version SET state = 'live', traffic_pct = 100 WHERE id = %s", version.pk)
    assert "next stage" in message
    refused("UPDATE ledger_version SET state = 'shadow', stage = stage + 2 WHERE id = %s", version.pk)
    refused("UPDATE ledger_version SET stage = stage + 1 WHERE id = %s", version.pk)
    version.refresh_from_db()
    assert (version.state, version.stage) == ("candidate", 0)


@pytest.mark.req("INV-29")
def test_a_version_never_becomes_a_candidate_again_and_keeps_its_number(clock: ManualClock):
    version = make_version(clock, 1)
    Version.objects.filter(pk=version.pk).update(state="rejected", stage=1)
    refused("UPDATE ledger_version SET state = 'candidate', stage = 2 WHERE id = %s", version.pk)
    refused("UPDATE ledger_version SET number = 7 WHERE id = %s", version.pk)


@pytest.mark.req("INV-14")
def test_a_bill_of_materials_is_written_once(clock: ManualClock):
    version = make_version(clock, 1)
    Version.objects.filter(pk=version.pk).update(bom={"sha256": "a"})
    with pytest.raises(DatabaseError), transaction.atomic():
        Version.objects.filter(pk=version.pk).update(bom={"sha256": "b"})
    Version.objects.filter(pk=version.pk).update(bom={"sha256": "a"}, dataset_sha256="x")


@pytest.mark.req("INV-17")
def test_append_only_tables_refuse_updates_and_deletes(clock: ManualClock):
    version = make_version(clock, 1)
    Event.objects.create(at=clock.now(), on=clock.now().date(), kind="live", detail="v1")
    VersionLeaf.objects.create(version=version, split="train", key="a" * 64, value="b" * 64)
    Tombstone.objects.create(hash="c" * 64, created_at=clock.now())
    for table in ("ledger_event", "ledger_versionleaf", "ledger_tombstone"):
        assert "append-only" in refused(f"DELETE FROM {table}")
    assert "append-only" in refused("UPDATE ledger_event SET detail = 'v2'")
    assert Event.objects.get().detail == "v1"


APPEND_ONLY = ["ledger_event", "ledger_adminaction", "ledger_versionleaf", "ledger_receipt", "ledger_tombstone"]


@pytest.fixture
def sealed(ledger: None, clock: ManualClock) -> None:
    """One row in every append-only table."""
    now = clock.now()
    version = make_version(clock, 1)
    Event.objects.create(at=now, on=now.date(), kind="live", detail="v1")
    AdminAction.objects.create(at=now, actor="ann", action="retire", target="v1")
    VersionLeaf.objects.create(version=version, split="train", key="a" * 64, value="b" * 64)
    Receipt.objects.create(on=now.date(), document={"saved": 1}, created_at=now)
    Tombstone.objects.create(hash="c" * 64, created_at=now)


def columns_of(table: str) -> list[str]:
    with connection.cursor() as cursor:
        return [column.name for column in connection.introspection.get_table_description(cursor, table)]


@pytest.mark.req("INV-17")
@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.usefixtures("sealed")
def test_append_only_tables_refuse_what_amounts_to_a_delete(table: str):
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        assert "append-only" in refused(f"TRUNCATE {table} CASCADE")
        return
    names = ", ".join(f'"{name}"' for name in columns_of(table))
    assert "append-only" in refused(f"REPLACE INTO {table} ({names}) SELECT {names} FROM {table}")
    if table in ("ledger_versionleaf", "ledger_receipt"):
        rest = names.removeprefix('"id", ')
        assert "append-only" in refused(f"REPLACE INTO {table} ({rest}) SELECT {rest} FROM {table}")


@pytest.mark.req("INV-29")
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite empties a table with DELETE, which its triggers see")
def test_a_truncated_table_moves_the_epoch(clock: ManualClock):
    before = StateEpoch.objects.get().value
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE ledger_notrain")
    assert StateEpoch.objects.get().value == before + 1


@pytest.mark.req("INV-17", "INV-29")
def test_every_trigger_is_there_after_the_migrations():
    wanted = {
        statement.split()[2]
        for statement in (*create_sql(connection.vendor), *create_guards_sql(connection.vendor))
        if statement.startswith("CREATE TRIGGER")
    }
    source = (
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        if connection.vendor == "sqlite"
        else "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
    )
    with connection.cursor() as cursor:
        cursor.execute(source)
        assert wanted <= {name for (name,) in cursor.fetchall()}


@pytest.mark.req("INV-28")
def test_a_verdict_is_written_once(clock: ManualClock):
    row = Request.objects.create(
        id="0197f5a0-0000-7000-8000-000000000001",
        at=clock.now(),
        on=clock.now().date(),
        student=Student.objects.get(),
        task="default",
        route="student",
        served_by="student",
        audit="pending",
    )
    Request.objects.filter(pk=row.pk).update(audit="disagree")
    with pytest.raises(DatabaseError), transaction.atomic():
        Request.objects.filter(pk=row.pk).update(audit="agree")
    with pytest.raises(DatabaseError), transaction.atomic():
        Request.objects.filter(pk=row.pk).update(shadow="agree")


@pytest.mark.req("INV-27")
def test_a_cost_that_is_not_the_sum_of_its_parts_is_refused(clock: ManualClock):
    with pytest.raises(IntegrityError), transaction.atomic():
        Request.objects.create(
            id="0197f5a0-0000-7000-8000-000000000002",
            at=clock.now(),
            on=clock.now().date(),
            student=Student.objects.get(),
            task="default",
            route="student",
            served_by="student",
            cost_nusd=3,
            student_cost_nusd=1,
            teacher_cost_nusd=1,
        )


@pytest.mark.req("INV-29")
def test_whatever_routing_reads_moves_the_epoch_also_when_changed_by_hand(clock: ManualClock):
    def epoch() -> int:
        return StateEpoch.objects.get().value

    before = epoch()
    version = make_version(clock, 1)
    Task.objects.update(is_runtime_pinned=True)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ledger_student SET samples = 5")
    version.delete()
    assert epoch() == before + 4
    Event.objects.create(at=clock.now() + timedelta(1), on=clock.now().date(), kind="x", detail="y")
    assert epoch() == before + 4
