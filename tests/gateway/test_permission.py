"""Whether what could be stored on arrival may still be stored, by a later snapshot."""

from uuid import uuid4

import pytest

from common.clock import ManualClock
from gateway.incoming import Incoming, admit
from gateway.permission import admitted_now
from gateway.snapshot import build_snapshot
from ledger.models import ApiKey, NoTrain
from privacy.end_users import EVERY_CLIENT
from tests.conftest import scripted_settings
from tests.gateway.world import MESSAGES, make_task, register_no_train, stop_storing

pytestmark = pytest.mark.usefixtures("student")


@pytest.fixture
def incoming(clock: ManualClock) -> Incoming:
    return Incoming(uuid4(), clock.now(), MESSAGES, task="triage", client="shop", end_users=("ann", "ann@example.com"))


@pytest.mark.req("INV-22", "FR-13.1", "FR-13.2")
@pytest.mark.parametrize("reason", ["task", "key", "end_user"])
def test_an_opt_out_made_meanwhile_holds(clock: ManualClock, incoming: Incoming, reason: str):
    settings = scripted_settings()
    task = make_task(clock)
    key = ApiKey.objects.create(name="shop", key_sha256="0" * 64, created_at=clock.now())
    before = build_snapshot(settings)
    admitted = admit(incoming, before, settings)
    assert admitted_now(incoming, admitted, before, settings) is admitted
    if reason in ("task", "key"):
        stop_storing({"task": task, "key": key}[reason])
    else:
        register_no_train(clock, settings, EVERY_CLIENT, "ann@example.com")
    assert admitted_now(incoming, admitted, build_snapshot(settings), settings).opt_out == reason


@pytest.mark.req("INV-22")
def test_an_opt_out_taken_back_meanwhile_still_holds_for_the_request_it_met(clock: ManualClock, incoming: Incoming):
    settings = scripted_settings()
    make_task(clock)
    register_no_train(clock, settings, "shop", "ann")
    admitted = admit(incoming, build_snapshot(settings), settings)
    NoTrain.objects.all().delete()
    assert admitted_now(incoming, admitted, build_snapshot(settings), settings).opt_out == "end_user"


@pytest.mark.req("FR-13.1")
def test_a_task_deleted_meanwhile_keeps_the_rules_its_request_came_under(clock: ManualClock, incoming: Incoming):
    settings = scripted_settings()
    task = make_task(clock)
    admitted = admit(incoming, build_snapshot(settings), settings)
    task.delete()
    assert admitted_now(incoming, admitted, build_snapshot(settings), settings) == admitted
