"""Every page renders for an operator, with a bounded number of queries and without a word of request text."""

import re
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from common.clock import ManualClock
from common.ids import request_label
from ledger.events import record_event
from ledger.models import AdminAction, ApiKey, Event, Night, StageTally, Student, Version
from ledger.tasks import save_task
from tests.admin.conftest import MARKER, NOW, add_example, add_request

LISTS = ["student", "version", "task", "request", "example", "night", "event", "adminaction", "runtimeflag", "apikey"]


def _list(model: str) -> str:
    return reverse(f"admin:ledger_{model}_changelist")


def _detail(model: str, pk: Any) -> str:
    return reverse(f"admin:ledger_{model}_change", args=[pk])


def _queries(client: Client, url: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200
    return len(captured)


@pytest.mark.req("INV-12")
@pytest.mark.parametrize("model", LISTS)
def test_every_list_renders_without_request_text(admin: Client, world: SimpleNamespace, model: str) -> None:
    response = admin.get(_list(model))
    assert response.status_code == 200
    assert MARKER not in response.content.decode()


@pytest.mark.req("INV-12")
def test_every_detail_page_renders_and_only_the_example_shows_text(admin: Client, world: SimpleNamespace) -> None:
    urls = {
        "student": world.student.pk, "version": world.canary.pk, "task": world.task.pk,
        "request": world.pending.pk, "night": world.night.pk, "event": Event.objects.first().pk,
        "adminaction": AdminAction.objects.first().pk, "apikey": world.key_row.pk,
    }  # fmt: skip
    for model, pk in urls.items():
        response = admin.get(_detail(model, pk))
        assert response.status_code == 200, model
        assert MARKER not in response.content.decode(), model
    assert f"{MARKER} [EMAIL]" in admin.get(_detail("example", world.example.pk)).content.decode()


@pytest.mark.req("INV-24")
def test_a_purged_example_says_so_and_shows_no_text(admin: Client, world: SimpleNamespace) -> None:
    purged = add_example(2, messages=None, completion=None, purged_at=NOW, purge_reason="erasure")
    content = admin.get(_detail("example", purged.pk)).content.decode()
    assert "only hashes are left" in content
    assert "None" not in content


@pytest.mark.req("FR-12.1")
def test_no_record_can_be_added_changed_or_deleted_through_a_form(admin: Client, world: SimpleNamespace) -> None:
    rows = {"version": world.canary, "request": world.pending, "example": world.example, "night": world.night}
    for model, row in rows.items():
        assert admin.get(reverse(f"admin:ledger_{model}_add")).status_code == 403
        assert admin.post(_detail(model, row.pk), {"state": "live", "traffic_pct": 100}).status_code == 403
        assert admin.post(reverse(f"admin:ledger_{model}_delete", args=[row.pk]), {"post": "yes"}).status_code == 403
    world.canary.refresh_from_db()
    assert (world.canary.state, world.canary.traffic_pct) == ("canary", 10)
    assert admin.post(reverse("admin:ledger_student_delete", args=[world.student.pk])).status_code == 403
    assert admin.post(reverse("admin:ledger_task_delete", args=[world.task.pk])).status_code == 403


def _double(world: SimpleNamespace, clock: ManualClock, make_version: Callable[..., Version]) -> None:
    for position in range(3, 9):
        other = Student.objects.create(
            name=f"s{position}", base_model="m", backend="openai", trainer="command", created_at=NOW
        )
        save_task(f"task-{position}", {}, other, "api", clock, actor="ada")
        version = make_version(position, ("rejected", 0))
        add_request(world.student, version, NOW - timedelta(minutes=position))
        add_example(position)
        Night.objects.create(
            student=world.student,
            on=NOW.date(),
            state="done",
            version=version,
            is_scheduled=False,
            started_at=NOW,
            updated_at=NOW,
        )
        record_event("alert", "x", clock=clock, student_id=other.pk, version_id=version.pk)
        ApiKey.objects.create(name=f"key-{position}", key_sha256=str(position), created_at=NOW)


@pytest.mark.req("NFR-1")
@pytest.mark.parametrize("model", LISTS)
def test_lists_take_as_many_queries_for_many_rows_as_for_few(
    admin: Client, world: SimpleNamespace, clock: ManualClock, make_version: Callable[..., Version], model: str
) -> None:
    few = _queries(admin, _list(model))
    _double(world, clock, make_version)
    assert _queries(admin, _list(model)) == few


@pytest.mark.req("NFR-1")
def test_the_request_list_never_counts_its_table(admin: Client, world: SimpleNamespace) -> None:
    with CaptureQueriesContext(connection) as captured:
        admin.get(_list("request"))
    touching = [query["sql"] for query in captured if '"ledger_request"' in query["sql"]]
    assert len(touching) == 1
    assert "COUNT(" not in touching[0].upper()
    assert "LIMIT 50" in touching[0]


@pytest.mark.parametrize(
    ("query", "n_rows"),
    [("", 4), ("?task=tickets", 4), ("?task=other", 0), ("?route=student", 4), ("?on=2026-03-10", 4),
     ("?on=2026-03-09", 0), ("?served_by__exact=teacher", 0), ("?q=nonsense", 0)],
)  # fmt: skip
def test_requests_are_filtered_by_date_task_route_and_server(
    admin: Client, world: SimpleNamespace, query: str, n_rows: int
) -> None:
    response = admin.get(_list("request") + query)
    assert len(response.context["cl"].result_list) == n_rows


def test_a_request_is_found_by_the_id_its_client_saw(admin: Client, world: SimpleNamespace) -> None:
    label = request_label(world.pending.pk)
    response = admin.get(_list("request") + f"?q={label}")
    assert [row.pk for row in response.context["cl"].result_list] == [world.pending.pk]
    assert label in admin.get(_detail("request", world.pending.pk)).content.decode()


def test_a_version_page_shows_its_evidence_and_what_the_gate_says(admin: Client, world: SimpleNamespace) -> None:
    content = admin.get(_detail("version", world.canary.pk)).content.decode()
    for text in (
        "87.5%</strong> (7 of 8)",
        "52.9% to 97.8%",
        "hold: 8 of 20 audits at 10%",
        "v2: shadow",
        "canary 50%",
    ):
        assert text in content


def test_a_version_page_shows_the_golden_record_of_each_task_and_if_it_is_served(
    admin: Client, world: SimpleNamespace, clock: ManualClock
) -> None:
    url = _detail("version", world.live.pk)
    assert (
        '<td>0.8100</td><td>97%</td><td>70%</td><td>90%</td><td>60</td><td>30</td><td class="r-text">served</td>'
        in (admin.get(url).content.decode())
    )
    save_task("tickets", {"fields": {"category": {"type": "text"}}}, world.student, "api", clock)
    assert "its spec changed since" in admin.get(url).content.decode()


def test_a_version_page_shows_shadow_evidence_beside_lives(admin: Client, make_version: Callable[..., Version]) -> None:
    version = make_version(7, ("shadow", 0))
    StageTally.objects.create(
        version=version, stage=1, task="tickets", n_shadow=50, n_would_serve=40, n_shadow_agree=39, n_unarbitrated=1,
        n_live_answered=50, n_live_served=35,
    )  # fmt: skip
    content = admin.get(_detail("version", version.pk)).content.decode()
    assert "50, would serve 40 of 100 needed" in content
    assert "97.5%</strong> (39 of 40, 1 unarbitrated)" in content
    assert "80% / 70%" in content


def test_a_malformed_evaluation_does_not_break_the_pages(admin: Client, make_version: Callable[..., Version]) -> None:
    version = make_version(8, evaluation={"precision": "high", "threshold": None, "tasks": {"a": 3, "b": {}}})
    assert admin.get(_detail("version", version.pk)).status_code == 200
    assert admin.get(_list("version")).status_code == 200


@pytest.mark.req("INV-18")
def test_pages_need_a_login(client: Client, world: SimpleNamespace) -> None:
    for url in (
        reverse("admin:index"),
        _list("request"),
        reverse("admin:ledger_night_progress", args=[world.night.pk]),
    ):
        response = client.get(url)
        assert response.status_code == 302
        assert response["Location"].startswith("/admin/login/")
    assert client.get("/admin/login/").status_code == 200
    assert client.get("/")["Location"] == "/admin/"


@pytest.mark.req("INV-18")
def test_logging_in_leads_to_the_dashboard(client: Client, admin: Client) -> None:
    response = client.post("/admin/login/", {"username": "ada", "password": "a password"})
    assert response["Location"] == "/admin/"


def test_a_staff_user_without_permissions_sees_no_list(staff: Callable[..., Client], world: SimpleNamespace) -> None:
    client = staff()
    assert client.get(reverse("admin:index")).status_code == 200
    for model in LISTS:
        assert client.get(_list(model)).status_code == 403


def test_pages_load_nothing_from_other_hosts(admin: Client, client: Client, world: SimpleNamespace) -> None:
    urls = (reverse("admin:index"), _list("version"), _detail("version", world.live.pk))
    for response in (client.get("/admin/login/"), *(admin.get(url) for url in urls)):
        sources = re.findall(r'(?:src|<link[^>]*href)="([^"]+)"', response.content.decode())
        assert sources
        assert all(source.startswith("/") for source in sources)


def test_an_ended_version_still_shows_the_evidence_of_the_stage_it_ended_in(
    admin: Client, make_version: Callable[..., Version]
) -> None:
    version = make_version(9, ("canary", 10), ("rolled_back", 0))
    StageTally.objects.create(version=version, stage=1, task="tickets", n_served=50, n_audits=20, n_agree=10)
    content = admin.get(_detail("version", version.pk)).content.decode()
    assert "Evidence of stage 1, which its release ended in" in content
    assert "50%</strong> (10 of 20)" in content


def test_the_pages_own_files_are_served_by_the_application_itself(client: Client) -> None:
    for name in ("ratchet/admin.css", "ratchet/admin.js", "ratchet/favicon.svg", "unfold/css/styles.css"):
        assert client.get(f"/static/{name}").status_code == 200
