"""Versions in any state with any evidence, and a clock that stands still."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from common.clock import ManualClock
from ledger.models import Event, StageTally, Student, Version

NOW = datetime(2026, 3, 4, 12, 30, tzinfo=UTC)
GOOD = {"precision": 1.0, "coverage": 0.8, "threshold": 0.7, "test_n": 50, "golden_n": 100}
TRAFFIC = {"live": 100, "canary": 10}


@pytest.fixture
def clock() -> ManualClock:
    """The morning of the tests."""
    return ManualClock(NOW)


@pytest.fixture
def student(db: None) -> Student:
    """The default student."""
    return Student.objects.get(name="default")


@pytest.fixture
def make_version(student: Student) -> Callable[..., Version]:
    """Create a version of the default student in any state, as if it had been moved there."""

    def make(state: str, number: int = 1, **fields: Any) -> Version:
        values = {
            "traffic_pct": TRAFFIC.get(state, 0),
            "stage": 0 if state == "candidate" else 3,
            "evaluation": GOOD,
            **fields,
        }
        return Version.objects.create(
            student=fields.get("student", student),
            number=number,
            adapter=f"student-v{number}",
            base_model="base",
            state=state,
            stage_since_at=NOW,
            created_at=NOW,
            **{name: value for name, value in values.items() if name != "student"},
        )

    return make


def tally(version: Version, task: str = "default", **sums: int) -> StageTally:
    """Give a version evidence in its current stage."""
    return StageTally.objects.create(version=version, stage=version.stage, task=task, **sums)


def audits(version: Version, n_agree: int, n_audits: int) -> None:
    """Set the audits of a version's current stage."""
    StageTally.objects.update_or_create(
        version=version,
        stage=version.stage,
        task="default",
        defaults={"n_served": n_audits, "n_audits": n_audits, "n_agree": n_agree},
    )


def shadow(version: Version, *, n: int, serves: int, agree: int, answered: int = 0, live: int = 0, open: int = 0) -> None:
    """Set the shadow evidence of a version's current stage."""
    StageTally.objects.update_or_create(
        version=version,
        stage=version.stage,
        task="default",
        defaults={
            "n_shadow": n,
            "n_would_serve": serves,
            "n_shadow_agree": agree,
            "n_unarbitrated": open,
            "n_live_answered": answered,
            "n_live_served": live,
        },
    )


def log() -> list[tuple[str, str]]:
    """The release log so far, oldest first."""
    return list(Event.objects.order_by("pk").values_list("kind", "detail"))
