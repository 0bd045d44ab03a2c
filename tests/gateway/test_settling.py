"""Checks off the path: exactly once, nothing lost, and the same rows as inline checking."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.db import connection

from common.clock import ManualClock
from gateway import background
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
from ledger.models import ApiKey, Check, Example, HourlyRollup, Request, StageTally, Tombstone
from ledger.rows import CheckRow, LedgerEntry
from ledger.writer.batch import write_entries
from privacy.end_users import EVERY_CLIENT
from tests.fakes import ScriptedStudent, ScriptedTeacher, answer, unanimous
from tests.gateway.world import (
    BILLING,
    MESSAGES,
    TECHNICAL,
    make_task,
    make_version,
    register_no_train,
    stop_storing,
)

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
        payload = None if row.store_opt_out else CheckPayload.of(owed, admitted.end_users).seal(context.cipher)
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


@pytest.mark.req("INV-22", "FR-13.2")
@pytest.mark.parametrize(
    ("scope", "identifier"),
    [("shop", "ann"), ("shop", "ann@example.com"), (EVERY_CLIENT, "ann"), (EVERY_CLIENT, "ann@example.com")],
)
def test_an_end_user_registered_while_the_check_waited_is_not_stored(owe, context, clock, settings_, scope, identifier):
    make_task(clock)
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous(BILLING))
    ScriptedTeacher.reset(lambda call: answer(BILLING))
    row = owe(client="shop", end_users=("ann", "ann@example.com"))
    other = owe(client="shop", end_users=("bob",))
    register_no_train(clock, settings_, scope, identifier)
    assert settle_check(row.pk, context)
    row.refresh_from_db()
    assert (row.audit, row.stored, row.store_opt_out, Example.objects.count()) == ("agree", False, "end_user", 0)
    assert HourlyRollup.objects.get().n_stored == 0
    assert settle_check(other.pk, context)
    other.refresh_from_db()
    assert (other.stored, other.store_opt_out, Example.objects.count()) == (True, "", 1)


@pytest.mark.req("INV-22", "FR-13.2")
def test_a_check_sealed_before_identifiers_were_kept_still_honours_its_requests_end_user(
    owe, context, clock, settings_
):
    make_task(clock)
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous(BILLING))
    ScriptedTeacher.reset(lambda call: answer(BILLING))
    row = owe(client="shop", end_users=("ann",))
    check = Check.objects.get()
    document = orjson.loads(context.cipher.decrypt(bytes(check.payload)))
    del document["end_users"]
    Check.objects.update(payload=context.cipher.encrypt(orjson.dumps(document)))
    register_no_train(clock, settings_, "shop", "ann")
    assert settle_check(row.pk, context)
    row.refresh_from_db()
    assert (row.store_opt_out, Example.objects.count()) == ("end_user", 0)


@pytest.mark.req("INV-22", "FR-13.1")
@pytest.mark.parametrize("opt_out", ["global", "task", "key"])
def test_storing_that_was_turned_off_while_the_check_waited_is_off(owe, context, clock, settings_, opt_out):
    task = make_task(clock)
    make_version(clock, 1)
    key = ApiKey.objects.create(name="shop", key_sha256="0" * 64, created_at=clock.now())
    ScriptedStudent.reset(unanimous(BILLING))
    ScriptedTeacher.reset(lambda call: answer(BILLING))
    row = owe(client="shop")
    if opt_out in ("task", "key"):
        stop_storing({"task": task, "key": key}[opt_out])
    else:
        context = replace(context, settings=replace(settings_, stores_examples=False))
    assert settle_check(row.pk, context)
    row.refresh_from_db()
    assert (row.audit, row.stored, row.store_opt_out, Example.objects.count()) == ("agree", False, opt_out, 0)


@pytest.mark.req("INV-28", "INV-29", "INV-27")
def test_a_claim_outlasts_the_calls_of_a_check_so_nobody_pays_for_them_twice(owe, context, clock):
    make_task(clock)
    make_version(clock, 1)
    make_version(clock, 2, "shadow", 0)
    ScriptedStudent.reset(lambda call: unanimous(BILLING if call.version.number == 1 else TECHNICAL)(call))
    row = owe()
    endpoints = context.settings
    others = []

    def slowly(call: Any) -> Any:
        clock.advance(timedelta(seconds=endpoints.teacher.deadline_s - 1))
        others.append((sweep_checks(context), settle_check(row.pk, context) if len(others) < 2 else None))
        return answer("prose" if call.purpose == "audit" else BILLING)

    ScriptedTeacher.reset(slowly)
    assert settle_check(row.pk, context)
    assert others == [([], False), ([], False)]
    assert [call.purpose for call in ScriptedTeacher.calls] == ["audit", "arbitration"]


@pytest.mark.req("INV-27", "INV-28")
def test_an_audit_that_is_tried_again_pays_for_its_shadow_once(owe, context, clock):
    make_task(clock)
    make_version(clock, 1)
    make_version(clock, 2, "shadow", 0)
    ScriptedStudent.reset(unanimous(BILLING))
    ScriptedTeacher.reset(lambda call: UpstreamError("HTTP 500", status=500))
    row = owe()
    assert not settle_check(row.pk, context)
    ScriptedTeacher.script = staticmethod(lambda call: answer(BILLING))
    clock.advance(timedelta(minutes=1))
    assert settle_check(row.pk, context)
    row.refresh_from_db()
    assert (row.audit, row.shadow) == ("agree", "agree")
    sampled = [call.purpose for call in ScriptedStudent.calls]
    assert sampled == ["sample", "shadow"]
    assert row.student_cost_nusd == len(sampled) * (10 * 60 + 15 * 240)


@pytest.mark.req("INV-28", "FR-2.11")
def test_a_check_that_crashes_holds_up_no_other_and_is_lost_in_the_end(
    owe, context, clock, settings_, monkeypatch, caplog
):
    make_task(clock)
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous(BILLING))
    ScriptedTeacher.reset(lambda call: answer(BILLING))
    bad, good = owe(), owe()
    Check.objects.filter(pk=bad.pk).update(payload=context.cipher.encrypt(b'{"secret text": 1}'))
    monkeypatch.setattr("gateway.background.process_context", lambda: context)
    assert background.settle([bad.pk, good.pk]) == 1
    assert "secret text" not in caplog.text
    for _ in range(settings_.check_max_attempts):
        clock.advance(timedelta(hours=1))
        assert sweep_checks(context) == [bad.pk]
        background.settle([bad.pk])
    bad.refresh_from_db()
    assert (bad.audit, Check.objects.count()) == ("lost", 0)


@pytest.mark.req("INV-28", "INV-29")
def test_a_held_check_that_is_being_settled_is_not_swept_away_as_lost(owe, context, clock):
    make_task(clock)
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous(BILLING))
    row = owe()
    held = CheckPayload.open(bytes(Check.objects.get().payload), context.cipher)
    Check.objects.update(payload=None, holder="this process")
    clock.advance(timedelta(minutes=9, seconds=59))

    def slowly(call: Any) -> Any:
        clock.advance(timedelta(seconds=5))
        sweep_checks(context)
        return answer(BILLING)

    ScriptedTeacher.reset(slowly)
    assert settle_check(row.pk, context, held)
    row.refresh_from_db()
    assert (row.audit, row.teacher_cost_nusd) == ("agree", 10 * 1000 + 5 * 3000)
