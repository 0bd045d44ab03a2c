"""``manage.py setup`` prepares a database, whatever it was before."""

import io

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import call_command
from django_celery_beat.models import PeriodicTask

from ratchet_project.beat import BEAT

pytestmark = pytest.mark.django_db


def setup():
    output = io.StringIO()
    call_command("setup", stdout=output)
    return output.getvalue()


def test_the_first_run_creates_the_schedule_and_an_admin_whose_password_it_prints(monkeypatch):
    monkeypatch.delenv("DJANGO_SUPERUSER_PASSWORD", raising=False)
    output = setup()
    password = output.split("password ")[1].split()[0]
    assert len(password) == 16
    assert authenticate(username="admin", password=password).is_superuser
    assert PeriodicTask.objects.count() == len(BEAT)


def test_a_second_run_changes_nothing_and_prints_no_password():
    setup()
    before = list(get_user_model().objects.values())
    assert setup() == "admin: there is a superuser already (manage.py changepassword sets a new password)\n"
    assert list(get_user_model().objects.values()) == before
    assert PeriodicTask.objects.count() == len(BEAT)


@pytest.mark.req("INV-13")
def test_a_given_password_is_used_and_not_printed(monkeypatch):
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "chosen-by-the-operator")
    output = setup()
    assert "chosen-by-the-operator" not in output
    assert authenticate(username="admin", password="chosen-by-the-operator").is_superuser


def test_a_superuser_of_another_name_is_enough():
    get_user_model().objects.create_superuser(username="ops", password="x")
    assert "there is a superuser already" in setup()
    assert get_user_model().objects.count() == 1
