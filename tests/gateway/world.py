"""Rows the gateway's tests start from."""

from typing import Any

from common.clock import ManualClock
from ledger.models import Student, Task, Version
from ledger.taskspec import parse_spec

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
