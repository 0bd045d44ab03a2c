"""Nights that are followed and started by hand, and keys that are shown once."""

import hashlib
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from ledger.models import AdminAction, ApiKey, Event, Night, RuntimeFlag, Student, Version
from tests.admin.conftest import NOW

REASON = {"reason": "new labels arrived"}


def _progress(client: Client, night: Night) -> Any:
    return client.get(reverse("admin:ledger_night_progress", args=[night.pk]))


@pytest.mark.req("FR-6.1")
def test_the_progress_endpoint_says_how_far_each_step_is(admin: Client, world: SimpleNamespace) -> None:
    night = _progress(admin, world.night).json()
    assert night["is_running"] is True
    assert [(step["name"], step["status"], step["pct"], step["count"]) for step in night["steps"]] == [
        ("building", "done", 100, ""),
        ("training", "now", 30, "3 of 10"),
        ("loading", "todo", 0, ""),
        ("evaluating", "todo", 0, ""),
        ("admitting", "todo", 0, ""),
    ]
    assert (night["detail"], night["log"]) == ("fitting tickets", ["2026-03-10T12:00:00+00:00  building: 812 rows"])


@pytest.mark.req("FR-6.1")
@pytest.mark.parametrize(
    ("state", "outcome", "statuses"),
    [
        ("done", "v1: canary 10%", ["done"] * 5),
        ("failed", "training: TrainingFailed: too few labels", ["done", "failed", "todo", "todo", "todo"]),
        ("skipped", "12 new examples, 50 needed", ["skipped", "todo", "todo", "todo", "todo"]),
    ],
)
def test_an_ended_night_shows_where_it_ended_and_why(
    admin: Client, student: Student, state: str, outcome: str, statuses: list[str]
) -> None:
    night = Night.objects.create(
        student=student, on=NOW.date(), state=state, outcome=outcome, started_at=NOW, updated_at=NOW
    )
    progress = _progress(admin, night).json()
    assert progress["is_running"] is False
    assert [step["status"] for step in progress["steps"]] == statuses
    assert progress["outcome"] == outcome
    content = admin.get(reverse("admin:ledger_night_change", args=[night.pk])).content.decode()
    assert "data-progress-url" not in content
    assert outcome in content


@pytest.mark.req("FR-6.1")
def test_the_page_of_a_running_night_follows_it(admin: Client, world: SimpleNamespace) -> None:
    content = admin.get(reverse("admin:ledger_night_change", args=[world.night.pk])).content.decode()
    assert f'data-progress-url="{reverse("admin:ledger_night_progress", args=[world.night.pk])}"' in content
    assert '<progress max="100" value="30"' in content


def test_progress_needs_the_view_permission(staff: Callable[..., Client], world: SimpleNamespace) -> None:
    assert _progress(staff("view_version"), world.night).status_code == 403
    assert _progress(staff("view_night"), world.night).status_code == 200
    assert staff("view_night").get(reverse("admin:ledger_night_progress", args=[0])).status_code == 404


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The nights that were sent to a worker."""
    ids: list[int] = []
    monkeypatch.setattr("nightschool.tasks.run_night.delay", ids.append)
    return ids


@pytest.mark.req("FR-6.1")
def test_a_night_is_started_by_hand_and_sent_to_a_worker(
    admin: Client, student: Student, sent: list[int], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        response = admin.post(reverse("admin:ledger_night_start", args=[student.pk]), REASON)
    night = Night.objects.get()
    assert response["Location"] == reverse("admin:ledger_night_change", args=[night.pk])
    assert (night.state, night.is_scheduled, night.student) == ("building", False, student)
    assert sent == [night.pk]
    row = AdminAction.objects.get()
    assert (row.actor, row.action, row.target, row.reason) == ("ada", "run_night", "default", REASON["reason"])
    assert Event.objects.get().kind == "admin"


@pytest.mark.req("INV-5")
def test_a_night_is_not_started_beside_another_or_a_release_in_flight_or_while_paused(
    admin: Client, student: Student, make_version: Callable[..., Version], sent: list[int]
) -> None:
    url = reverse("admin:ledger_night_start", args=[student.pk])
    version = make_version(1, ("shadow", 0))
    assert "v1 is in flight (shadow)" in admin.post(url, REASON).content.decode()
    Version.objects.filter(pk=version.pk).update(state="retired", stage=2)
    RuntimeFlag.objects.create(name="training_paused", value="on", updated_at=NOW, updated_by="ada")
    assert "training is paused" in admin.post(url, REASON).content.decode()
    RuntimeFlag.objects.all().delete()
    Night.objects.create(student=student, on=NOW.date(), state="training", started_at=NOW, updated_at=NOW)
    response = admin.post(url, REASON)
    assert response.status_code == 409
    assert "has not ended" in response.content.decode()
    assert (Night.objects.count(), sent, AdminAction.objects.count()) == (1, [], 0)


def test_the_night_list_offers_a_start_to_who_may(
    admin: Client, staff: Callable[..., Client], student: Student
) -> None:
    url = reverse("admin:ledger_night_changelist")
    assert "Run a night of default now" in admin.get(url).content.decode()
    assert "Run a night of default now" not in staff("view_night").get(url).content.decode()


@pytest.mark.req("INV-13")
def test_a_key_is_shown_exactly_once_and_only_its_hash_is_kept(admin: Client, student: Student) -> None:
    response = admin.post(reverse("admin:ledger_apikey_add"), {"name": "shop", "may_store": "on"})
    content = response.content.decode()
    found = re.search(r'<code id="new-key">([^<]+)</code>', content)
    assert found is not None
    key = found.group(1)
    row = ApiKey.objects.get()
    assert (row.name, row.may_store, row.created_by) == ("shop", True, "ada")
    assert row.key_sha256 == hashlib.sha256(key.encode()).hexdigest()
    assert "no-store" in response["Cache-Control"]
    for url in (
        reverse("admin:ledger_apikey_changelist"),
        reverse("admin:ledger_apikey_change", args=[row.pk]),
        reverse("admin:ledger_adminaction_changelist"),
        reverse("admin:index"),
    ):
        shown = admin.get(url).content.decode()
        assert key not in shown
        assert row.key_sha256 not in shown
    assert key not in str(list(AdminAction.objects.values()))


@pytest.mark.req("INV-13")
def test_a_taken_or_unfit_key_name_makes_no_key(admin: Client, world: SimpleNamespace) -> None:
    for name in ("shop", "two words", "", "x" * 65):
        response = admin.post(reverse("admin:ledger_apikey_add"), {"name": name})
        assert response.status_code == 200
        assert 'id="new-key"' not in response.content.decode()
    assert ApiKey.objects.count() == 1


@pytest.mark.req("INV-13")
def test_a_key_is_revoked_for_good(admin: Client, world: SimpleNamespace) -> None:
    url = reverse("admin:ledger_apikey_revoke", args=[world.key_row.pk])
    assert admin.get(url).status_code == 200
    assert admin.post(url, {"reason": "it leaked"}).status_code == 302
    world.key_row.refresh_from_db()
    assert world.key_row.is_revoked
    assert admin.post(url, {"reason": "it leaked"}).status_code == 409
    assert AdminAction.objects.filter(action="revoke_key").count() == 1


@pytest.mark.req("INV-13")
def test_keys_are_made_only_by_who_may(staff: Callable[..., Client], world: SimpleNamespace) -> None:
    client = staff("view_apikey")
    assert client.get(reverse("admin:ledger_apikey_add")).status_code == 403
    assert client.post(reverse("admin:ledger_apikey_add"), {"name": "mine"}).status_code == 403
    assert ApiKey.objects.count() == 1
