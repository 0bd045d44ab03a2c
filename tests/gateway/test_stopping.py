"""A gateway that is stopped in the middle of its work."""

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from common.clock import ManualClock
from gateway.cascade.types import Answer, Call
from gateway.dispatch import CheckDispatcher
from gateway.failures import FailureLog
from gateway.incoming import Incoming
from gateway.serving import Gateway
from gateway.settings import GatewaySettings
from ledger.models import Check, Failure, Request, Student
from tests.fakes import ScriptedStudent, ScriptedTeacher, answer, unanimous
from tests.gateway.world import BILLING, MESSAGES, make_task, make_version

HUNG = threading.Event()


class HangingTeacher(ScriptedTeacher):
    """A teacher that never answers on the event loop, and takes a moment to be hung up on."""

    async def complete(self, call: Call) -> Answer:
        HUNG.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
        raise AssertionError


@pytest.fixture
def running(shared_ledger: None, clock: ManualClock, gateway_settings: GatewaySettings) -> Callable[..., Gateway]:
    """``running(**settings)``: a gateway to start inside an event loop."""
    HUNG.clear()
    Student.objects.update(backend="scripted")
    make_task(clock)
    make_version(clock, 1)

    def make(**changes: Any) -> Gateway:
        return Gateway(
            replace(gateway_settings, **changes),
            clock,
            random.Random(1),
            dispatcher=CheckDispatcher(lambda ids: None),
            failures=FailureLog(),
            holder="this process",
        )

    return make


def served(gateway: Gateway, clock: ManualClock, **changes: Any) -> Awaitable[Any]:
    """One request, counted in flight as the endpoint counts it."""

    async def run() -> Any:
        snapshot = await gateway.snapshots.current()
        gateway.n_inflight += 1
        try:
            return await gateway.answer(Incoming(uuid4(), clock.now(), MESSAGES, task="triage", **changes), snapshot)
        finally:
            gateway.n_inflight -= 1

    return run()


@pytest.mark.req("INV-27", "FR-2.9")
def test_a_request_cut_off_by_a_stop_leaves_what_it_had_spent(running: Any, clock: ManualClock) -> None:
    ScriptedStudent.reset(unanimous(BILLING, probability=0.01))

    async def scenario() -> None:
        gateway = running(teacher_backend="tests.gateway.test_stopping.HangingTeacher")
        gateway.start()
        request = asyncio.ensure_future(served(gateway, clock, client="shop"))
        while not HUNG.is_set():
            await asyncio.sleep(0.005)
        request.cancel()
        await gateway.stop()
        assert request.cancelled()

    asyncio.run(scenario())
    failure = Failure.objects.get()
    assert (failure.stage, failure.client, failure.task) == ("cancelled", "shop", "triage")
    assert failure.cost_nusd == 10 * 60 + 15 * 240
    assert not Request.objects.exists()


@pytest.mark.req("INV-28", "INV-22")
def test_a_stop_settles_the_checks_whose_text_only_this_process_has(running: Any, clock: ManualClock) -> None:
    ScriptedStudent.reset(unanimous(BILLING))
    ScriptedTeacher.reset(lambda call: answer(BILLING))

    async def scenario() -> None:
        gateway = running(audit_rate=1.0)
        gateway.start()
        for _ in range(3):
            await served(gateway, clock, store=False)
        await gateway.stop()

    asyncio.run(scenario())
    assert not Check.objects.exists()
    assert set(Request.objects.values_list("audit", flat=True)) == {"agree"}


@pytest.mark.req("INV-28", "NFR-2")
def test_a_stop_does_not_wait_for_ever_for_them(
    running: Any, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.serving.SETTLE_REST_S", 0.1)
    released = threading.Event()

    def slowly(call: Call) -> Answer:
        released.wait(60)
        return answer(BILLING)

    ScriptedStudent.reset(unanimous(BILLING))
    ScriptedTeacher.reset(slowly)

    async def scenario() -> None:
        gateway = running(audit_rate=1.0)
        gateway.start()
        for _ in range(5):
            await served(gateway, clock, store=False)
        while len(ScriptedTeacher.calls) < 2:
            await asyncio.sleep(0.005)
        await gateway.stop()
        released.set()
        gateway._settlers.shutdown(wait=True)

    asyncio.run(scenario())
    assert len(ScriptedTeacher.calls) == 2, "those that had not begun are left to be swept as lost"
    assert Check.objects.count() == 3
