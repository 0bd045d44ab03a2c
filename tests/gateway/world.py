"""Rows the gateway's tests start from."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

from common.clock import ManualClock
from gateway.settings import GatewaySettings
from gateway.watcher import FRESH_S
from ledger.models import ApiKey, NoTrain, Student, Task, Version
from ledger.taskspec import parse_spec
from privacy.end_users import end_user_hash

TRIAGE = {"fields": {"category": {"type": "label", "values": ["billing", "technical"]}}}
BILLING, TECHNICAL = '{"category": "billing"}', '{"category": "technical"}'
MESSAGES = [{"role": "user", "content": "I was charged twice"}]


def make_task(clock: ManualClock, name: str = "triage", document: Any = None, **changes: Any) -> Task:
    """Register a task of the default student."""
    spec = parse_spec(name, TRIAGE if document is None else document)
    return Task.objects.create(
        name=name,
        student=Student.objects.get(name="default"),
        spec=spec.document,
        spec_hash=spec.spec_hash,
        source="api",
        created_at=clock.now(),
        updated_at=clock.now(),
        **changes,
    )


def make_version(clock: ManualClock, number: int, state: str = "live", pct: int = 100, **changes: Any) -> Version:
    """Create a version already in a state."""
    return Version.objects.create(
        student=Student.objects.get(name="default"),
        number=number,
        adapter=f"default-v{number}",
        base_model="base",
        state=state,
        traffic_pct=pct,
        stage_since_at=clock.now(),
        created_at=clock.now(),
        **{"evaluation": {"threshold": 0.8}, "stage": 1, **changes},
    )


def register_no_train(clock: ManualClock, settings: GatewaySettings, scope: str, identifier: str) -> NoTrain:
    """Register an end user of a client, or of every client, as never to be stored."""
    hashed = end_user_hash(settings.data_key, scope, identifier)
    return NoTrain.objects.create(client=scope, end_user=hashed, created_at=clock.now())


def stop_storing(changed: Task | ApiKey) -> None:
    """Turn storing off for a task or a client's key."""
    if isinstance(changed, Task):
        changed.spec = {**changed.spec, "store": False}
    else:
        changed.may_store = False
    changed.save()


def wait_for(happened: Callable[[], bool], patience_s: float = 30.0) -> None:
    """Return as soon as another thread made it happen; fail after a time that only a hang takes."""
    deadline = time.monotonic() + patience_s
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def elsewhere(change: Callable[[], object]) -> None:
    """Commit a change on another thread's connection, as another process does, and wait until it must be honoured."""

    def run() -> None:
        try:
            change()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run).result()
    time.sleep(FRESH_S)
