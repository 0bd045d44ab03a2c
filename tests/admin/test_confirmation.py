"""The confirmation mixin itself: what its callers cannot get wrong."""

import pytest
from django.contrib import admin as django_admin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.test import RequestFactory

from common.confirmation import ConfirmedAction, ConfirmedActionsMixin, Done, actor_of
from ledger.models import Student


@pytest.mark.req("FR-12.1")
def test_an_action_without_a_permission_fails_closed_even_for_a_superuser(student: Student) -> None:
    def never(*_args: object, **_fields: object) -> Done:
        raise AssertionError("ran")

    action = ConfirmedAction("x", "X", "", effect=lambda target: [], run=never)
    request = RequestFactory().post("/", {"reason": "because"})
    request.user = User.objects.create_superuser("root", "", "a password")
    page = ConfirmedActionsMixin(Student, django_admin.site)
    with pytest.raises(PermissionDenied):
        page.confirm(request, action, student, "/")


@pytest.mark.req("FR-12.1")
def test_the_actor_is_named_as_the_audit_log_names_people() -> None:
    request = RequestFactory().get("/")
    request.user = User(username="a" * 150)
    assert actor_of(request) == "a" * 76
