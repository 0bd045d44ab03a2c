"""Confirmed actions: what is affected, a typed reason, the permission on GET and on POST, refusals with a message."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from common.clock import ManualClock
from ledger.models import AdminAction, Event, RuntimeFlag, Version
from ledger.tasks import save_task

REASON = {"reason": "too many complaints"}


def _url(model: str, action: str, pk: Any) -> str:
    return reverse(f"admin:ledger_{model}_{action}", args=[pk])


def _buttons(client: Client, model: str, pk: Any) -> list[str]:
    response = client.get(reverse(f"admin:ledger_{model}_change", args=[pk]))
    return [item["action"].name for item in response.context["available_actions"]]


def _place(version: Version) -> tuple[str, int]:
    version.refresh_from_db()
    return version.state, version.traffic_pct


@pytest.mark.req("FR-12.1")
def test_only_the_moves_that_are_legal_now_have_buttons(
    admin: Client, world: SimpleNamespace, make_version: Any
) -> None:
    assert _buttons(admin, "version", world.canary.pk) == ["rollback", "retire", "promote", "promote-live"]
    assert _buttons(admin, "version", world.live.pk) == ["retire"]
    rejected = make_version(3, ("rejected", 0))
    assert _buttons(admin, "version", rejected.pk) == []
    Version.objects.filter(pk=world.canary.pk).update(state="retired", traffic_pct=0, stage=3)
    assert _buttons(admin, "version", rejected.pk) == ["bring-back"]


@pytest.mark.req("FR-12.1")
def test_the_confirmation_page_says_what_is_affected_and_changes_nothing(admin: Client, world: SimpleNamespace) -> None:
    content = admin.get(_url("version", "rollback", world.canary.pk)).content.decode()
    assert "default v2 is canary 10% now, stage 2." in content
    assert "its 10% of traffic goes to v1, which is live." in content
    assert 'name="reason"' in content
    assert _place(world.canary) == ("canary", 10)
    assert not AdminAction.objects.filter(action="rollback").exists()


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize(
    ("action", "who", "place", "audited"),
    [
        ("rollback", "canary", ("rolled_back", 0), "rollback"),
        ("retire", "canary", ("retired", 0), "retire"),
        ("retire", "live", ("retired", 0), "retire"),
        ("promote", "canary", ("canary", 50), "promote"),
        ("promote-live", "canary", ("live", 100), "promote"),
    ],
)
def test_a_confirmed_action_moves_the_version_and_is_audited_with_its_reason(
    admin: Client, world: SimpleNamespace, action: str, who: str, place: tuple[str, int], audited: str
) -> None:
    version = getattr(world, who)
    response = admin.post(_url("version", action, version.pk), REASON)
    assert response.status_code == 302
    assert response["Location"] == reverse("admin:ledger_version_change", args=[version.pk])
    assert _place(version) == place
    row = AdminAction.objects.filter(action=audited).get()
    assert (row.actor, row.target, row.reason) == ("ada", str(version), REASON["reason"])
    assert Event.objects.filter(kind="admin", version=version).count() == 1


@pytest.mark.req("FR-12.1")
def test_an_ended_version_is_brought_back_as_a_canary(admin: Client, world: SimpleNamespace, make_version: Any) -> None:
    admin.post(_url("version", "rollback", world.canary.pk), REASON)
    admin.post(_url("version", "bring-back", world.canary.pk), REASON)
    assert _place(world.canary) == ("canary", 10)
    world.canary.refresh_from_db()
    assert world.canary.stage == 4


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize("reason", ["", "  ", "no", "x" * 501])
def test_a_missing_or_unfit_reason_runs_nothing(admin: Client, world: SimpleNamespace, reason: str) -> None:
    response = admin.post(_url("version", "rollback", world.canary.pk), {"reason": reason})
    assert response.status_code == 200
    assert response.context["form"].errors["reason"]
    assert _place(world.canary) == ("canary", 10)


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize("action", ["rollback", "promote", "promote-live", "bring-back"])
def test_an_illegal_move_is_refused_with_a_message(admin: Client, world: SimpleNamespace, action: str) -> None:
    url = _url("version", action, world.live.pk)
    for response, status in ((admin.get(url), 200), (admin.post(url, REASON), 409)):
        assert response.status_code == status
        assert "Not possible:" in response.content.decode()
        assert 'name="reason"' not in response.content.decode()
    assert _place(world.live) == ("live", 100)
    assert not AdminAction.objects.filter(target=str(world.live)).exists()


@pytest.mark.req("FR-12.1")
def test_a_refusal_of_the_service_itself_is_shown(admin: Client, world: SimpleNamespace) -> None:
    response = admin.post(_url("version", "rollback", world.canary.pk), {"reason": "two\tcolumns"})
    assert response.status_code == 409
    assert "a reason is needed: one line" in response.content.decode()
    assert _place(world.canary) == ("canary", 10)


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize("method", ["get", "post"])
def test_an_action_needs_its_permission_on_get_and_on_post(
    staff: Callable[..., Client], world: SimpleNamespace, method: str
) -> None:
    client = staff("view_version", "change_version", "view_task", "change_task", "view_apikey", "view_runtimeflag")
    urls = [
        _url("version", "rollback", world.canary.pk),
        _url("version", "retire", world.live.pk),
        _url("version", "promote", world.canary.pk),
        _url("task", "pin", world.task.pk),
        _url("apikey", "revoke", world.key_row.pk),
        _url("runtimeflag", "on", "student_disabled"),
        reverse("admin:ledger_night_start", args=[world.student.pk]),
    ]
    before = AdminAction.objects.count()
    for url in urls:
        assert getattr(client, method)(url, REASON).status_code == 403, url
    assert AdminAction.objects.count() == before
    assert _place(world.canary) == ("canary", 10)
    assert _buttons(client, "version", world.canary.pk) == []


@pytest.mark.req("FR-12.1")
def test_the_operate_permission_is_enough(staff: Callable[..., Client], world: SimpleNamespace) -> None:
    client = staff("view_version", "operate_version")
    assert client.post(_url("version", "rollback", world.canary.pk), REASON).status_code == 302
    assert _place(world.canary) == ("rolled_back", 0)


@pytest.mark.req("INV-18")
def test_a_post_without_a_csrf_token_runs_nothing(admin: Client, world: SimpleNamespace) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies
    assert strict.post(_url("version", "rollback", world.canary.pk), REASON).status_code == 403
    assert _place(world.canary) == ("canary", 10)


def test_an_unknown_target_leads_away_without_an_error(admin: Client, world: SimpleNamespace) -> None:
    assert admin.get(_url("version", "rollback", 999_999)).status_code == 302
    assert admin.get(_url("runtimeflag", "on", "nonsense")).status_code == 302


@pytest.mark.req("INV-10")
def test_a_task_is_pinned_and_unpinned(admin: Client, world: SimpleNamespace) -> None:
    assert _buttons(admin, "task", world.task.pk) == ["pin"]
    admin.post(_url("task", "pin", world.task.pk), REASON)
    world.task.refresh_from_db()
    assert (world.task.is_runtime_pinned, world.task.pin_reason) == (True, REASON["reason"])
    assert "by an operator" in admin.get(reverse("admin:ledger_task_changelist")).content.decode()
    assert _buttons(admin, "task", world.task.pk) == ["unpin"]
    admin.post(_url("task", "unpin", world.task.pk), REASON)
    world.task.refresh_from_db()
    assert not world.task.is_runtime_pinned


@pytest.mark.req("INV-10")
def test_a_pin_in_the_spec_is_not_an_operators_to_remove(
    admin: Client, world: SimpleNamespace, clock: ManualClock
) -> None:
    task = save_task("tickets", {"pinned": True}, world.student, "api", clock)
    assert _buttons(admin, "task", task.pk) == []
    assert admin.post(_url("task", "unpin", task.pk), REASON).status_code == 409


@pytest.mark.req("FR-12.1")
def test_a_switch_is_flipped_with_a_reason_and_back(admin: Client, world: SimpleNamespace) -> None:
    response = admin.post(_url("runtimeflag", "on", "student_disabled"), REASON)
    assert response["Location"] == reverse("admin:index")
    assert RuntimeFlag.objects.get().value == "on"
    assert admin.post(_url("runtimeflag", "on", "student_disabled"), REASON).status_code == 409
    admin.post(_url("runtimeflag", "off", "student_disabled"), REASON)
    assert RuntimeFlag.objects.get().value == "off"
    assert [row.action for row in AdminAction.objects.filter(action="set_flag")] == ["set_flag", "set_flag"]


@pytest.mark.req("FR-12.1")
def test_the_audit_rate_is_a_number_from_0_to_1(admin: Client, world: SimpleNamespace) -> None:
    url = _url("runtimeflag", "set", "audit_rate")
    for bad in ("", "2", "-1", "nan", "much"):
        assert admin.post(url, {**REASON, "rate": bad}).status_code == 200
    assert not RuntimeFlag.objects.exists()
    assert admin.post(url, {**REASON, "rate": "0.25"}).status_code == 302
    assert RuntimeFlag.objects.get().value == "0.25"
    assert admin.post(_url("runtimeflag", "reset", "audit_rate"), REASON).status_code == 302
    assert not RuntimeFlag.objects.exists()


@pytest.mark.req("FR-12.1")
def test_audits_cannot_be_turned_off_under_a_canary(admin: Client, world: SimpleNamespace) -> None:
    response = admin.post(_url("runtimeflag", "set", "audit_rate"), {**REASON, "rate": "0"})
    assert response.status_code == 409
    assert "default v2 is a canary" in response.content.decode()
    assert not RuntimeFlag.objects.exists()


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize(("name", "action"), [("student_disabled", "set"), ("audit_rate", "on")])
def test_a_switch_takes_only_its_own_kind_of_value(
    admin: Client, world: SimpleNamespace, name: str, action: str
) -> None:
    assert admin.post(_url("runtimeflag", action, name), {**REASON, "rate": "0.5"}).status_code == 409
    assert not RuntimeFlag.objects.exists()
