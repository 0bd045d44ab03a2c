"""Routing snapshots: what they read, and how soon a change is honoured."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from common.clock import ManualClock
from gateway.cascade.types import SERVE_NOTHING, Route
from gateway.incoming import Incoming, UnknownTask, admit
from gateway.keys import create_key, identify, revoke_key
from gateway.snapshot import build_snapshot, read_epoch, version_route
from gateway.watcher import FRESH_S, SnapshotWatcher
from ledger.models import ApiKey, NoTrain, RuntimeFlag, Student, Task, Version
from privacy.end_users import EVERY_CLIENT, end_user_hash
from tests.conftest import scripted_settings
from tests.gateway.world import MESSAGES, make_task, make_version


def incoming(clock: ManualClock, **changes: Any) -> Incoming:

    return Incoming(**{"id": uuid4(), "at": clock.now(), "messages": MESSAGES, "task": "triage"} | changes)


@pytest.mark.usefixtures("student")
@pytest.mark.req("FR-2.3", "FR-14.1", "INV-7")
@pytest.mark.parametrize("junk", ["0.9", None, True, float("nan"), [], -1, 3])
def test_a_malformed_evaluation_serves_nothing_instead_of_failing(clock: ManualClock, junk: Any):
    version = make_version(clock, 1)
    version.evaluation = {"threshold": junk, "tasks": {"a": {"threshold": junk, "spec_hash": "h"}, "b": junk}}
    route = version_route(version)
    assert (route.threshold, route.task_thresholds) == (SERVE_NOTHING, {"a": ("h", SERVE_NOTHING)})
    version.evaluation = junk
    assert version_route(version, 0.8).threshold == 0.8


@pytest.mark.usefixtures("student")
@pytest.mark.req("FR-14.1")
def test_a_disabled_task_serves_nothing_whatever_its_threshold(clock: ManualClock):
    version = make_version(clock, 1)
    version.evaluation = {"threshold": 0.7, "tasks": {"a": {"threshold": 0.6, "spec_hash": "h", "disabled": "why"}}}
    assert version_route(version).task_thresholds["a"] == ("h", SERVE_NOTHING)


@pytest.mark.usefixtures("student")
@pytest.mark.req("FR-12.1")
def test_switches_apply_and_a_bad_switch_row_reads_as_the_default(clock: ManualClock):
    for name, value in (("audit_rate", "often"), ("student_disabled", "on")):
        RuntimeFlag.objects.create(name=name, value=value, updated_at=clock.now(), updated_by="ops")
    policy = build_snapshot(scripted_settings(audit_rate=0.05)).policy
    assert (policy.audit_rate, policy.is_student_disabled) == (0.05, True)
    RuntimeFlag.objects.filter(name="audit_rate").update(value="0.5")
    assert build_snapshot(scripted_settings()).policy.audit_rate == 0.5


@pytest.mark.usefixtures("student")
@pytest.mark.req("INV-10", "FR-12.1")
def test_a_runtime_pin_pins_without_changing_the_spec_hash(clock: ManualClock):
    task = make_task(clock)
    Task.objects.update(is_runtime_pinned=True)
    snapshot = build_snapshot(scripted_settings())
    spec, _ = snapshot.tasks["triage"]
    assert (spec.is_pinned, spec.spec_hash) == (True, task.spec_hash)
    assert admit(incoming(clock), snapshot, scripted_settings()).request.teacher_only is Route.PINNED


@pytest.mark.usefixtures("student")
@pytest.mark.req("FR-2.15")
@pytest.mark.parametrize(("rule", "route"), [("distill", None), ("teacher", Route.UNKNOWN_TASK)])
def test_an_unregistered_task_follows_the_policy(clock: ManualClock, rule: str, route: Route | None):
    settings = scripted_settings(unknown_tasks=rule)
    admitted = admit(incoming(clock, task="made-up"), build_snapshot(settings), settings)
    assert (admitted.request.teacher_only, admitted.request.task.name) == (route, "made-up")


@pytest.mark.usefixtures("student")
@pytest.mark.req("FR-2.15")
def test_an_unregistered_task_can_be_refused(clock: ManualClock):
    settings = scripted_settings(unknown_tasks="reject")
    with pytest.raises(UnknownTask):
        admit(incoming(clock, task="made-up"), build_snapshot(settings), settings)


@pytest.mark.usefixtures("student")
@pytest.mark.req("FR-13.1", "FR-13.2", "INV-22", "INV-23")
def test_opt_outs_are_reported_broadest_first_and_end_users_are_scoped_hashes(clock: ManualClock):
    make_task(clock)
    settings = scripted_settings()
    hashed = end_user_hash(settings.data_key, "shop", "ann@example.com")
    NoTrain.objects.create(client="shop", end_user=hashed, created_at=clock.now())
    snapshot = build_snapshot(settings)

    def opt_out(**changes: Any) -> str:
        return admit(incoming(clock, client="shop", **changes), snapshot, settings).opt_out

    assert opt_out() == ""
    assert opt_out(end_users=("ann@example.com",)) == "end_user"
    assert opt_out(end_users=("bob", "ann@example.com")) == "end_user"
    assert opt_out(end_users=("ann@example.com",), store=False) == "request"
    assert opt_out(store=False, key_may_store=False) == "key"
    assert opt_out(store=True, key_may_store=False) == "key"
    other = admit(incoming(clock, client="other", end_users=("ann@example.com",)), snapshot, settings)
    assert (other.opt_out, other.end_user == hashed, len(other.end_user)) == ("", False, 16)
    everywhere = end_user_hash(settings.data_key, EVERY_CLIENT, "bob")
    NoTrain.objects.create(client=EVERY_CLIENT, end_user=everywhere, created_at=clock.now())
    snapshot = build_snapshot(settings)
    for client in ("shop", "other", ""):
        assert admit(incoming(clock, client=client, end_users=("bob",)), snapshot, settings).opt_out == "end_user"


@pytest.mark.usefixtures("student")
@pytest.mark.req("INV-13")
def test_a_key_is_shown_once_kept_as_a_hash_and_refused_once_revoked(clock: ManualClock):
    key = create_key("shop", actor="ops", clock=clock)
    row = ApiKey.objects.get()
    assert key not in str(vars(row))
    assert key not in repr(build_snapshot(scripted_settings()))
    entry = identify(key, build_snapshot(scripted_settings()).keys)
    assert entry is not None
    assert entry.name == "shop"
    revoke_key(row, actor="ops", reason="left the company", clock=clock)
    assert identify(key, build_snapshot(scripted_settings()).keys) is None


@pytest.mark.usefixtures("shared_ledger")
@pytest.mark.req("INV-29", "FR-12.1")
def test_a_change_by_another_connection_is_honoured_by_a_request_that_starts_100_ms_later(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("gateway.watcher.WAIT_S", 30.0)
    settings = scripted_settings()
    make_version(clock, 1)
    watcher = SnapshotWatcher(lambda: build_snapshot(settings), read_epoch, settings.snapshot_poll_s)

    async def scenario() -> tuple[Any, Any]:
        watcher.start()
        try:
            before = await watcher.current()
            await asyncio.to_thread(roll_back)
            await asyncio.sleep(FRESH_S)
            return before, await watcher.current()
        finally:
            await asyncio.to_thread(watcher.stop)

    def roll_back() -> None:
        Version.objects.update(state="retired", traffic_pct=0, stage=2)
        connection.close()

    before, after = asyncio.run(scenario())
    student_id = Student.objects.get().pk
    assert before.students[student_id].live is not None
    assert after.students[student_id].live is None


@pytest.mark.req("INV-7")
def test_while_the_database_is_away_requests_go_on_with_the_last_snapshot():
    away = False

    def epoch() -> int:
        if away:
            raise ConnectionError
        return 1

    class Built:
        epoch = 1

    watcher = SnapshotWatcher(Built, epoch, 0.01)  # type: ignore[arg-type]

    async def scenario() -> Any:
        nonlocal away
        watcher.start()
        away = True
        await asyncio.sleep(FRESH_S + 0.05)
        return await watcher.current()

    assert isinstance(asyncio.run(scenario()), Built)
    watcher.stop()


@pytest.mark.usefixtures("student")
@pytest.mark.req("FR-2.3", "FR-2.15")
def test_without_per_task_records_a_changed_spec_still_serves_nothing(clock: ManualClock):
    task = make_task(clock)
    version = make_version(clock, 1)
    version.evaluation = {"threshold": 0.7, "tasks": {}, "spec_hashes": {"triage": task.spec_hash}}
    spec, _ = build_snapshot(scripted_settings()).tasks["triage"]
    assert version_route(version).threshold_for(spec) == 0.7
    version.evaluation["spec_hashes"] = {"triage": "an older spec"}
    assert version_route(version).threshold_for(spec) == SERVE_NOTHING


@pytest.mark.usefixtures("student")
@pytest.mark.req("INV-7", "INV-10", "FR-12.1")
@pytest.mark.parametrize("junk", [{"no such option": 1}, [], "x", {"fields": {"a": {"type": "of a later release"}}}])
def test_a_task_whose_spec_cannot_be_read_is_left_to_the_teacher_and_holds_up_no_other_change(
    clock: ManualClock, junk: Any
):
    make_task(clock, "sound")
    make_task(clock)
    Task.objects.filter(name="triage").update(spec=junk)
    RuntimeFlag.objects.create(name="student_disabled", value="on", updated_at=clock.now(), updated_by="ops")
    settings = scripted_settings()
    snapshot = build_snapshot(settings)
    assert snapshot.policy.is_student_disabled
    admitted = admit(incoming(clock), snapshot, settings)
    assert (admitted.request.teacher_only, admitted.opt_out) == (Route.PINNED, "task")
    assert admit(incoming(clock, task="sound"), snapshot, settings).request.teacher_only is None
