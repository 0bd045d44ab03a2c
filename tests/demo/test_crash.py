"""Workers that are killed: a night is finished by the next one, and no drawn audit is lost."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from sim.demo import dataset
from sim.demo.client import post_all, session
from sim.demo.clock import move_to
from tests.demo.live_system import LiveSystem

pytestmark = pytest.mark.slow

N_FIRST_DAY, N_SECOND_DAY = 400, 200
YESTERDAY = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=1)


def post(system, messages):
    async def run():
        async with session(system.url) as http:
            return await post_all(http, messages)

    return asyncio.run(run())


@pytest.fixture(scope="module")
def messages():
    return dataset.load()["sms-spam"]


@pytest.fixture
def system(tmp_path, messages):
    """A day of answers is stored, and the night's training waits for its gate."""
    system = LiveSystem(
        tmp_path,
        TEST_TRAINING_GATE=str(tmp_path / "gate"),
        RATCHET_TRAINERS="waiting=tests.demo.slow_trainer.WaitingTrainer",
        RATCHET_NIGHT_HOLD_S="10",
        RATCHET_MIN_PRECISION="0.5",
        RATCHET_AUDIT_RATE="1.0",
        RATCHET_CANARY_AUDIT_RATE="1.0",
        RATCHET_MIN_AUDITS="1000",
    )
    move_to(system.clock_file, YESTERDAY)
    with system.up(teacher_latency_ms=300):
        system.python("from ledger.models import Student; Student.objects.update(trainer='waiting')")
        post(system, messages[:N_FIRST_DAY])
        yield system


def kill_worker_with_claims(system):
    """Kill the worker of the checks while it holds some; on a busy machine it may settle them before the blow falls."""
    held = "select min(1, count(*)) from ledger_check where claimed_until_at is not null"
    for _ in range(10):
        system.wait_for(held, 1)
        system.kill_worker("checks,gate,maintenance")
        if system.value(held):
            return
    raise AssertionError("the worker held no check whenever it was killed")


@pytest.mark.req("INV-28", "INV-29")
def test_a_killed_worker_loses_neither_its_night_nor_an_audit(system, messages):
    move_to(system.clock_file, YESTERDAY.replace(hour=23))
    system.wait_for("select count(*) from ledger_night where state = 'training' and detail = 'waiting'", 1)
    system.kill_worker("nights")
    (system.folder / "gate").touch()
    system.wait_for("select count(*) from ledger_night where state = 'done'", 1)
    assert system.query("select attempts, is_scheduled from ledger_night") == [(2, 1)]
    assert system.query("select number, state, traffic_pct from ledger_version") == [(1, "canary", 10)]

    move_to(system.clock_file, YESTERDAY + timedelta(hours=20))
    with ThreadPoolExecutor(1) as posting:
        posted = posting.submit(post, system, messages[N_FIRST_DAY:][:N_SECOND_DAY])
        kill_worker_with_claims(system)
        served = sum(outcome.served_by == "student" for outcome in posted.result())
    assert served > 0

    # The dead worker's claims run out on the system's clock; then the sweep hands its checks to the next worker.
    move_to(system.clock_file, YESTERDAY + timedelta(hours=21))
    system.wait_for("select count(*) from ledger_check", 0)
    audits = dict(system.query("select audit, count(*) from ledger_request where audit != 'none' group by audit"))
    assert sum(audits.values()) == served
    assert set(audits) <= {"agree", "disagree"}
    assert system.python("from sim.demo.summary import recount; print(recount())") == "[]"
