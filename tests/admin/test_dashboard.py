"""The dashboard: per student what serves and what is on its way, exact money, switches, checks, events, the notice."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from common.clock import ManualClock
from ledger.models import HourlyRollup, Student
from tests.admin.conftest import MARKER, NOW

_CLOCK = ManualClock(NOW)


def fixed_clock() -> ManualClock:
    """The clock that the settings of these tests name."""
    return _CLOCK


@pytest.fixture(autouse=True)
def _at_noon(settings: Any) -> None:
    settings.RATCHET_CLOCK = "tests.admin.test_dashboard.fixed_clock"


def test_it_shows_each_student_with_its_live_version_and_the_one_on_its_way(
    admin: Client, world: SimpleNamespace
) -> None:
    response = admin.get(reverse("admin:index"))
    content = response.content.decode()
    (card,) = response.context["students"]
    assert (card["live"], card["moving"]) == (world.live, world.canary)
    assert [(stop.label, stop.status) for stop in card["track"]] == [
        ("golden", "done"), ("shadow", "done"), ("canary 10%", "now"), ("canary 50%", "todo"), ("live", "todo")
    ]  # fmt: skip
    assert card["says"] == "hold: 8 of 20 audits at 10%"
    assert "Night of 2026-03-10" in content
    assert "data-progress-url" in content
    assert content.count("<svg") == 3
    assert MARKER not in content


@pytest.mark.req("INV-27")
def test_its_money_is_exact(admin: Client, world: SimpleNamespace) -> None:
    (card,) = admin.get(reverse("admin:index")).context["students"]
    assert (card["total"].cost_nusd, card["total"].baseline_nusd) == (246_913_578, 2_246_913_580)
    assert card["total"].saved_nusd == 2_000_000_002
    assert card["latest"].saved_nusd == 1_000_000_001
    assert card["is_today"] is True
    assert card["latest"].student_share == 0.6


def test_it_shows_the_switches_with_their_buttons_and_the_checks_that_are_owed(
    admin: Client, world: SimpleNamespace
) -> None:
    context = admin.get(reverse("admin:index")).context
    buttons = {
        row["flag"].name: [item["action"].name for item in row["available_actions"]] for row in context["switches"]
    }
    assert buttons == {
        "student_disabled": ["on"],
        "releases_frozen": ["on"],
        "training_paused": ["on"],
        "audit_rate": ["set"],
    }
    assert context["checks"] == {"n": 1, "oldest_at": NOW}


@pytest.mark.req("INV-20")
def test_the_notice_is_on_every_page(admin: Client, world: SimpleNamespace, settings: Any) -> None:
    urls = [reverse("admin:index"), reverse("admin:ledger_version_change", args=[world.live.pk])]
    urls.append(reverse("admin:ledger_request_changelist"))
    assert all("r-notice" not in admin.get(url).content.decode() for url in urls)
    settings.RATCHET_NOTICE = "Simulation: no real customers."
    assert all("Simulation: no real customers." in admin.get(url).content.decode() for url in urls)
    assert "Simulation: no real customers." in Client().get(reverse("admin:login")).content.decode()


def test_it_shows_only_what_the_user_may_see(staff: Callable[..., Client], world: SimpleNamespace) -> None:
    nothing = staff().get(reverse("admin:index"))
    assert "students" not in nothing.context
    assert "no permission to view anything" in nothing.content.decode()
    some = staff("view_student").get(reverse("admin:index"))
    assert len(some.context["students"]) == 1
    assert "events" not in some.context
    assert all(row["available_actions"] == [] for row in some.context["switches"])


def test_an_empty_system_has_a_dashboard(admin: Client, student: Student) -> None:
    content = admin.get(reverse("admin:index")).content.decode()
    assert "No live version: the teacher answers" in content
    assert "No requests yet." in content


@pytest.mark.req("NFR-1")
def test_its_queries_do_not_grow_with_the_history(admin: Client, world: SimpleNamespace) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            admin.get(reverse("admin:index"))
        return len(captured)

    before = queries()
    for hour in range(1, 10):
        HourlyRollup.objects.create(
            hour_at=NOW.replace(hour=hour, minute=0), student=world.student, task="t", route="student", n_requests=1
        )
    assert queries() == before
    assert before <= 30


def test_the_sidebar_lists_only_what_the_user_may_view(
    admin: Client, staff: Callable[..., Client], world: SimpleNamespace
) -> None:
    def titles(client: Client) -> list[str]:
        navigation = client.get(reverse("admin:index")).context["sidebar_navigation"]
        return [item["title"] for group in navigation for item in group["items"]]

    assert titles(staff("view_version", "view_event")) == ["Dashboard", "Versions", "Events"]
    assert titles(admin)[:5] == ["Dashboard", "Students", "Versions", "Tasks", "Nights"]
    assert len(titles(admin)) == 13


@pytest.mark.parametrize(
    "path",
    ["auth/user/", "auth/user/add/", "auth/group/", "django_celery_beat/periodictask/",
     "django_celery_beat/periodictask/add/", "django_celery_beat/intervalschedule/",
     "django_celery_beat/crontabschedule/"],
)  # fmt: skip
def test_accounts_and_schedules_render(admin: Client, path: str) -> None:
    assert admin.get(f"/admin/{path}").status_code == 200
