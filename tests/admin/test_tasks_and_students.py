"""Editing tasks and students: validated as serving and the gate read them, audited, and nothing else."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from common.clock import ManualClock
from ledger.models import AdminAction, Event, Student, Task
from ledger.tasks import save_task
from ledger.taskspec import parse_spec
from tests.admin.conftest import LABEL_SPEC

ADD_TASK = "/admin/ledger/task/add/"


def _spec_errors(response: Any) -> list[str]:
    return list(response.context["adminform"].form.errors["spec"])


@pytest.mark.req("FR-8.1")
def test_a_task_is_added_with_its_hash_its_event_and_its_audit_row(admin: Client, student: Student) -> None:
    data = {"name": "tickets", "student": student.pk, "spec": json.dumps(LABEL_SPEC)}
    assert admin.post(ADD_TASK, data).status_code == 302
    task = Task.objects.get(name="tickets")
    assert task.source == "api"
    assert task.spec_hash == parse_spec("tickets", LABEL_SPEC).spec_hash
    assert Event.objects.get().kind == "task_registered"
    assert AdminAction.objects.values_list("actor", "action", "target").get() == ("ada", "save_task", "tickets")


@pytest.mark.req("FR-8.1")
def test_every_mistake_of_a_spec_is_shown_with_its_path(admin: Client, student: Student) -> None:
    spec = {"fields": {"a": {"type": "telepathy"}}, "pinned": "yes", "colour": 1}
    response = admin.post(ADD_TASK, {"name": "tickets", "student": student.pk, "spec": json.dumps(spec)})
    errors = _spec_errors(response)
    assert len(errors) == 3
    assert [error.split(":")[0] for error in errors] == ["tickets.colour", "tickets.fields.a", "tickets.pinned"]
    assert not Task.objects.filter(name="tickets").exists()


@pytest.mark.parametrize("spec", ["{", "[]", "3", '"text"'])
def test_a_spec_that_is_no_object_is_refused(admin: Client, student: Student, spec: str) -> None:
    response = admin.post(ADD_TASK, {"name": "tickets", "student": student.pk, "spec": spec})
    assert response.status_code == 200
    assert _spec_errors(response)


@pytest.mark.parametrize("name", ["", "two words", "ä", "x" * 65, "default"])
def test_an_unfit_or_taken_task_name_is_refused(admin: Client, student: Student, name: str) -> None:
    n_before = Task.objects.count()
    response = admin.post(ADD_TASK, {"name": name, "student": student.pk, "spec": "{}"})
    assert response.status_code == 200
    assert "name" in response.context["adminform"].form.errors
    assert Task.objects.count() == n_before


@pytest.mark.req("FR-8.1")
def test_a_changed_spec_moves_its_hash_and_a_second_save_writes_nothing(admin: Client, world: SimpleNamespace) -> None:
    url = reverse("admin:ledger_task_change", args=[world.task.pk])
    data = {"student": world.student.pk, "spec": json.dumps({**LABEL_SPEC, "store": False})}
    before = world.task.spec_hash
    for _ in range(2):
        assert admin.post(url, data).status_code == 302
    world.task.refresh_from_db()
    assert (world.task.name, world.task.source, world.task.spec["store"]) == ("tickets", "api", False)
    assert world.task.spec_hash != before
    assert Event.objects.filter(kind="task_changed").count() == 1
    assert AdminAction.objects.filter(action="save_task").count() == 1


def test_save_task_keeps_the_description_and_writes_nothing_for_no_change(student: Student, clock: ManualClock) -> None:
    document = {"description": "Route questions", **LABEL_SPEC}
    first = save_task("tickets", document, student, "file", clock)
    again = save_task("tickets", document, student, "file", clock)
    assert first.pk == again.pk
    assert again.spec["description"] == "Route questions"
    assert Event.objects.count() == 1
    assert not AdminAction.objects.exists()


def test_save_task_refuses_a_bad_document_before_it_touches_anything(student: Student, clock: ManualClock) -> None:
    with pytest.raises(ValueError, match=r"tickets\.pinned: must be true or false"):
        save_task("tickets", {"pinned": 1}, student, "api", clock)
    assert not Task.objects.filter(name="tickets").exists()


@pytest.mark.req("INV-6")
def test_the_task_list_shows_what_each_task_is_served_at(
    admin: Client, world: SimpleNamespace, clock: ManualClock
) -> None:
    def shown() -> dict[str, str]:
        response = admin.get(reverse("admin:ledger_task_changelist"))
        page = response.context["cl"]
        return {task.name: page.model_admin.live_threshold(task) for task in page.result_list}

    save_task("pinned", {"pinned": True}, world.student, "api", clock)
    assert shown() == {"default": "0.7800", "pinned": "teacher only", "tickets": "0.8100"}
    save_task("tickets", {}, world.student, "api", clock)
    assert shown()["tickets"] == "serves nothing"


def _student_form(**changes: Any) -> dict[str, Any]:
    form = {"endpoints": "[]", "samples": "5", "temperature": "0.5", "policy": "{}", "night_at": "03:30:00"}
    return form | changes


@pytest.mark.req("FR-12.1")
def test_a_students_sampling_policy_and_nights_are_edited_and_audited(admin: Client, student: Student) -> None:
    url = reverse("admin:ledger_student_change", args=[student.pk])
    response = admin.post(url, _student_form(policy='{"min_audits": 15}'))
    assert response.status_code == 302
    student.refresh_from_db()
    assert (student.samples, student.temperature, student.policy) == (5, 0.5, {"min_audits": 15})
    assert student.is_night_enabled is False
    row = AdminAction.objects.get()
    assert (row.action, row.target, row.actor) == ("save_student", "default", "ada")
    assert row.after["policy"] == {"min_audits": 15}
    assert set(row.before) == set(row.after) == {"samples", "temperature", "policy", "is_night_enabled", "night_at"}
    admin.post(url, _student_form(policy='{"min_audits": 15}'))
    assert AdminAction.objects.count() == 1


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy", '{"min_audit": 15}'),
        ("policy", '{"min_audits": 0}'),
        ("policy", '{"live_floor": "high"}'),
        ("policy", "[]"),
        ("policy", '"x"'),
        ("policy", "{"),
        ("endpoints", '["ftp://host"]'),
        ("endpoints", '{"a": 1}'),
        ("samples", "0"),
        ("samples", "17"),
        ("temperature", "3"),
    ],
)
def test_bad_student_settings_are_refused_at_their_field(
    admin: Client, student: Student, field: str, value: str
) -> None:
    url = reverse("admin:ledger_student_change", args=[student.pk])
    response = admin.post(url, _student_form(**{field: value}))
    if value == "[]":
        assert response.status_code == 302  # nothing in it: no override
    else:
        assert response.status_code == 200
        assert list(response.context["adminform"].form.errors) == [field]
        assert not AdminAction.objects.exists()


def test_what_a_students_versions_depend_on_is_fixed(admin: Client, student: Student) -> None:
    url = reverse("admin:ledger_student_change", args=[student.pk])
    admin.post(url, _student_form(name="other", base_model="other", backend="openai", trainer="command"))
    before = (student.name, student.base_model, student.backend, student.trainer)
    student.refresh_from_db()
    assert (student.name, student.base_model, student.backend, student.trainer) == before


def test_a_student_is_added_with_a_registered_backend_and_trainer(admin: Client, student: Student) -> None:
    url = reverse("admin:ledger_student_add")
    form = _student_form(name="second", base_model="open-base", backend="openai", trainer="command")
    assert admin.post(url, {**form, "backend": "telepathy"}).status_code == 200
    assert admin.post(url, form).status_code == 302
    assert Student.objects.get(name="second").created_at is not None


def test_editing_needs_the_change_permission(staff: Callable[..., Client], world: SimpleNamespace) -> None:
    client = staff("view_student", "view_task", "operate_version", "pin_task")
    student_url = reverse("admin:ledger_student_change", args=[world.student.pk])
    task_url = reverse("admin:ledger_task_change", args=[world.task.pk])
    assert client.get(student_url).status_code == client.get(task_url).status_code == 200
    assert client.post(student_url, _student_form()).status_code == 403
    assert client.post(task_url, {"student": world.student.pk, "spec": "{}"}).status_code == 403


def test_a_new_tasks_and_a_new_students_documents_start_empty(admin: Client, student: Student) -> None:
    for model, field in (("task", "spec"), ("student", "endpoints"), ("student", "policy")):
        content = admin.get(reverse(f"admin:ledger_{model}_add")).content.decode()
        shown = content.split(f'name="{field}"')[1].split("</textarea>")[0].rsplit(">", 1)[1]
        assert shown.strip() == ""
