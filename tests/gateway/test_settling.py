"""Checks off the path: exactly once, nothing lost, and the same rows as inline checking."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from common.clock import ManualClock
from gateway.cascade.serve import serve
from gateway.drivers import drive_sync
from gateway.engine import SyncEngine
from gateway.incoming import Incoming, admit
from gateway.models import Models
from gateway.payload import CheckPayload, fernet
from gateway.recording import check_input, request_row, served_example
from gateway.settings import GatewaySettings
from gateway.settling import SettlingContext, settle_check, sweep_checks
from gateway.snapshot import build_snapshot
from gateway.upstream.base import UpstreamError
from ledger.models import Check, Example, HourlyRollup, Request, StageTally, Tombstone
from ledger.rows import CheckRow, LedgerEntry
from ledger.writer.batch import write_entries
from tests.fakes import ScriptedStudent, ScriptedTeacher, answer, unanimous
from tests.gateway.world import BILLING, MESSAGES, TECHNICAL, make_task, make_version

pytestmark = pytest.mark.usefixtures("student")


@pytest.fixture
def settings_(gateway_settings: GatewaySettings) -> GatewaySettings:
    return replace(gateway_settings, audit_rate=1.0)


@pytest.fixture
def context(settings_: GatewaySettings, clock: ManualClock) -> SettlingContext:
    return SettlingContext(settings_, Models(settings_, random.Random(1)), clock, fernet(settings_.data_key))


@pytest.fixture
def owe(settings_: GatewaySettings, clock: ManualClock, context: SettlingContext) -> Callable[..., Request]:
    """Serve one request as the async gateway does, leaving its check unsettled."""

    def run(**changes: Any) -> Request:
        incoming = Incoming(**{"id": uuid4(), "at": clock.now(), "messages": MESSAGES, "task": "triage"} | changes)
        snapshot = build_snapshot(settings_)
        admitted = admit(incoming, snapshot, settings_)
        served = drive_sync(serve(admitted.request, snapshot.policy, random.Random(3)), context.models.ask_sync)
        row = request_row(incoming, admitted, served, wall_ms=served.bill.latency_ms)
        examples = served_example(incoming, admitted, served, settings_)
        row.stored = bool(examples)
        owed = check_input(admitted, served)
        assert owed is not None
        payload = None if row.store_opt_out else CheckPayload.of(owed).seal(context.cipher)
        check = CheckRow(
            owed.wants_audit, row.version_id, row.shadow_version_id, payload, "gone" if not payload else ""
        )
        write_entries([LedgerEntry(row, examples, check)], connection)
        return Request.objects.get(pk=row.id)

    return run


@pytest.mark.req("INV-28", "FR-2.5", "INV-27")
def test_a_settled_audit_writes_its_verdict_costs_example_and_sums_once(owe, context, clock):
    make_task(clock)
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous(BILLING))
    ScriptedTeacher.reset(lambda call: answer(TECHNICAL))
    row = owe()
    served_cost = row.cost_nusd
    assert settle_check(row.pk, context)
    assert not settle_check(row.pk, context)
    row.refresh_from_db()
    assert (row.audit, row.student_agree, row.stored) == ("disagree", False, True)
    assert row.teacher_cost_nusd == row.baseline_nusd == 10 * 1000 + 5 * 3000
    assert row.cost_nusd == served_cost + row.teacher_cost_nusd
    assert not Check.objects.exists()
    assert Example.objects.get().completion == TECHNICAL
    rollup = HourlyRollup.objects.get()
    assert (rollup.n_requests, rollup.n_audited, rollup.n_audit_agree, rollup.cost_nusd) == (1, 1, 0, row.cost_nusd)
    tally = StageTally.objects.get()
    assert (tally.n_served, tally.n_audits, tally.n_agree) == (1, 1, 0)
    assert len(ScriptedTeacher.calls) == 1


@pytest.mark.req("FR-2.11", "INV-28")
@pytest.mark.parametrize("opinion", [BILLING, TECHNICAL, "prose"])
def test_off_path_and_inline_checking_leave_identical_rows(owe, context, clock, settings_, opinion):
    make_task(clock)
    make_version(clock, 1)
    make_version(clock, 2, "shadow", 0)
    ScriptedStudent.reset(lambda call: unanimous(BILLING if call.version.number == 1 else TECHNICAL)(call))
    ScriptedTeacher.reset(lambda call: answer(opinion))
    row = owe()
    settle_check(row.pk, context)
    off_path = _everything()
    Request.objects.all().delete()
    for model in (HourlyRollup, StageTally, Example):
        model.objects.all().delete()
    engine = SyncEngine(settings_, context.models, clock, random.Random(3))
    engine.handle("triage", MESSAGES)
    engine.flush()
    assert _everything() == off_path


_ORDER: dict[Any, list[str]] = {StageTally: ["version"]}


def _everything() -> dict[str, Any]:
    skipped = {"id", "request_id", "wall_ms", "wall_us"}
    return {
        model.__name__: [
            {name: value for name, value in row.items() if name not in skipped}
            for row in model.objects.order_by(*_ORDER.get(model, [])).values()
        ]
        for model in (Request, HourlyRollup, StageTally, Example)
    }


@pytest.mark.req("INV-28", "INV-15")
def test_a_check_whose_teacher_is_down_waits_for_a_later_sweep_and_then_is_no_audit(owe, context, clock, settings_):
    make_task(clock)
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous(BILLING))
    ScriptedTeacher.reset(lambda call: UpstreamError("HTTP 500", status=500))
    row = owe()
    for attempt in range(settings_.check_max_attempts - 1):
        assert not settle_check(row.pk, context)
        assert sweep_checks(context) == [], f"attempt {attempt} backs off"
        clock.advance(timedelta(hours=1))
        assert sweep_checks(context) == [row.pk]
    assert settle_check(row.pk, context)
    row.refresh_from_db()
    assert (row.audit, row.stored, Example.objects.count()) == ("failed", False, 0)
    assert StageTally.objects.get().n_audits == 0


@pytest.mark.req("INV-28")
def test_a_worker_that_died_holding_a_check_loses_only_time(owe, context, clock):
    make_task(clock)
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous(BILLING))
    ScriptedTeacher.reset(lambda call: answer(BILLING))
    row = owe()
    Check.objects.update(claimed_until_at=clock.now() + timedelta(seconds=120), attempts=1)
    assert not settle_check(row.pk, context)
    clock.advance(timedelta(seconds=121))
    assert sweep_checks(context) == [row.pk]
    assert settle_check(row.pk, context)


@pytest.mark.req("INV-22", "INV-28")
def test_the_check_of_an_opted_out_request_is_lost_only_with_the_process_that_held_its_text(owe, context, clock):
    make_task(clock)
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous(BILLING))
    row = owe(store=False)
    assert not settle_check(row.pk, context)
    assert sweep_checks(context) == []
    clock.advance(timedelta(minutes=11))
    sweep_checks(context)
    row.refresh_from_db()
    assert (row.audit, Check.objects.count(), Example.objects.count()) == ("lost", 0, 0)


@pytest.mark.req("INV-28")
def test_a_check_sealed_under_a_lost_key_is_settled_as_lost_not_retried_for_ever(owe, context, clock):
    make_task(clock)
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous(BILLING))
    row = owe()
    assert settle_check(row.pk, replace(context, cipher=fernet("another key")))
    row.refresh_from_db()
    assert (row.audit, Check.objects.count()) == ("lost", 0)


@pytest.mark.req("INV-24")
def test_an_erased_example_is_refused_when_its_check_settles(owe, context, clock):
    make_task(clock)
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous(BILLING))
    ScriptedTeacher.reset(lambda call: answer(BILLING))
    settle_check(owe().pk, context)
    erased = Example.objects.get().hash
    Example.objects.all().delete()
    Tombstone.objects.create(hash=erased, created_at=clock.now())
    row = owe()
    settle_check(row.pk, context)
    row.refresh_from_db()
    assert (row.audit, row.stored, Example.objects.count()) == ("agree", False, 0)
