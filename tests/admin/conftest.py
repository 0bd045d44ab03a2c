"""A small world for the admin's pages: one student with history, and people with and without permissions."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models import F
from django.test import Client

from common.clock import ManualClock, SystemClock
from common.ids import uuid7
from gateway.keys import create_key
from ledger.events import record_event
from ledger.models import ApiKey, Check, Example, HourlyRollup, Night, Request, StageTally, Student, Version
from ledger.tasks import save_task

MARKER = "the-words-of-a-customer"
NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
LABEL_SPEC = {"fields": {"category": {"type": "label", "values": ["billing", "bug"]}}}


@pytest.fixture(autouse=True)
def _fast_settings(settings: Any) -> None:
    settings.RATCHET_NOTICE = ""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("ada", "", "a password"))
    return client


@pytest.fixture
def staff(db: None) -> Callable[..., Client]:
    """Return a client of a staff user who has exactly the named ledger permissions."""

    def make(*codenames: str) -> Client:
        user = User.objects.create_user(f"staff-{User.objects.count()}", password="a password", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames, content_type__app_label="ledger"))
        client = Client()
        client.force_login(user)
        return client

    return make


@pytest.fixture
def student(ledger: None) -> Student:
    return Student.objects.get(name="default")


@pytest.fixture
def make_version(student: Student, clock: ManualClock) -> Callable[..., Version]:
    """Return a maker of versions that have moved through the given (state, traffic) places."""

    def make(number: int, *places: tuple[str, int], evaluation: dict[str, Any] | None = None) -> Version:
        golden = {"precision": 0.975, "coverage": 0.74, "threshold": 0.78, "golden_n": 140, "test_n": 70}
        version = Version.objects.create(
            student=student,
            number=number,
            adapter=f"default-v{number}",
            base_model=student.base_model,
            stage_since_at=clock.now(),
            created_at=clock.now(),
            train_examples=100,
            evaluation=golden if evaluation is None else evaluation,
        )
        for state, traffic_pct in places:
            Version.objects.filter(pk=version.pk).update(state=state, traffic_pct=traffic_pct, stage=F("stage") + 1)
            record_event(state, f"v{number}: {state}", clock=clock, student_id=student.pk, version_id=version.pk)
        version.refresh_from_db()
        return version

    return make


def add_request(student: Student, version: Version | None, at: datetime, **changes: Any) -> Request:
    """Store one request row, served by the student when there is a version."""
    values: dict[str, Any] = {
        "id": uuid7(at), "at": at, "on": at.date(), "student": student, "task": "tickets", "client": "shop",
        "route": "student" if version else "cold_start", "served_by": "student" if version else "teacher",
        "version": version, "stage": version.stage if version else None, "confidence": 0.91 if version else None,
        "threshold": 0.78 if version else None, "cost_nusd": 1_000, "student_cost_nusd": 1_000,
        "baseline_nusd": 30_000, "wall_ms": 4.2,
    }  # fmt: skip
    return Request.objects.create(**(values | changes))


def add_example(position: int, **changes: Any) -> Example:
    """Store one example whose text is the marker."""
    values: dict[str, Any] = {
        "hash": f"{position:064x}", "prompt_hash": f"{position:064x}", "task": "tickets",
        "messages": [{"role": "user", "content": f"{MARKER} [EMAIL]"}], "completion": '{"category": "bug"}',
        "teacher_model": "open-teacher", "licence": "apache-2.0", "split": "train", "origin": "escalation",
        "first_seen_at": NOW, "last_seen_at": NOW,
    }  # fmt: skip
    return Example.objects.create(**(values | changes))


@pytest.fixture
def world(student: Student, make_version: Callable[..., Version], clock: ManualClock) -> SimpleNamespace:
    """One live version, one canary, requests, audits, examples, nights and a key."""
    task = save_task("tickets", LABEL_SPEC, student, "file", clock)
    record = {"threshold": 0.81, "precision": 0.97, "coverage": 0.7, "agreement": 0.9, "golden_n": 60, "test_n": 30}
    golden = {"precision": 0.975, "coverage": 0.74, "threshold": 0.78, "golden_n": 140, "test_n": 70}
    golden["tasks"] = {"tickets": record | {"spec_hash": task.spec_hash}}  # type: ignore[assignment]
    live = make_version(1, ("canary", 10), ("canary", 50), ("live", 100), evaluation=golden)
    canary = make_version(2, ("shadow", 0), ("canary", 10))
    StageTally.objects.create(version=live, stage=3, task="tickets", n_served=60, n_audits=40, n_agree=39)
    StageTally.objects.create(version=canary, stage=2, task="tickets", n_served=20, n_audits=8, n_agree=7)
    StageTally.objects.create(
        version=canary, stage=1, task="tickets", n_shadow=120, n_would_serve=100, n_shadow_agree=99,
        n_live_answered=120, n_live_served=90,
    )  # fmt: skip
    requests = [add_request(student, live, NOW - timedelta(minutes=minute)) for minute in range(3)]
    pending = add_request(student, canary, NOW - timedelta(hours=1), audit="pending")
    Check.objects.create(request=pending, created_at=NOW, version=canary, wants_audit=True, payload=MARKER.encode())
    for hours, served in ((30, 4), (1, 6)):
        HourlyRollup.objects.create(
            hour_at=(NOW - timedelta(hours=hours)).replace(minute=0), student=student, task="tickets", client="shop",
            route="student", n_requests=10, n_student_served=served, n_audited=4, n_audit_agree=3,
            cost_nusd=123_456_789, baseline_nusd=1_123_456_790,
        )  # fmt: skip
    night = Night.objects.create(
        student=student, on=NOW.date(), state="training", done=3, total=10, detail="fitting tickets",
        log=[{"at": "2026-03-10T12:00:00+00:00", "line": "building: 812 rows"}], started_at=NOW, updated_at=NOW,
    )  # fmt: skip
    ended = Night.objects.create(
        student=student, on=NOW.date() - timedelta(days=1), state="done", version=live, outcome="v1: canary 10%",
        started_at=NOW, updated_at=NOW, finished_at=NOW + timedelta(seconds=75),
    )  # fmt: skip
    key = create_key("shop", actor="ada", clock=SystemClock())
    return SimpleNamespace(
        student=student, task=task, live=live, canary=canary, requests=requests, pending=pending, night=night,
        ended=ended, example=add_example(1), key=key, key_row=ApiKey.objects.get(name="shop"),
    )  # fmt: skip
