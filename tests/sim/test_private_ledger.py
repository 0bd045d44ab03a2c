"""A simulation's ledger is its own; the operator's database is neither read nor written."""

import sqlite3

import pytest
from django.db import connection, connections

from common.errors import Refused
from ledger.models import Event, Student, Version
from sim.private_ledger import private_ledger
from sim.scenario import FIRST_DAY


@pytest.mark.req("FR-9.4")
@pytest.mark.django_db
def test_rows_go_to_the_private_ledger_and_the_own_database_is_back_afterwards():
    own, own_settings = connections["default"], connections.settings["default"]
    with private_ledger() as folder:
        assert connection.vendor == "sqlite"
        assert connection.settings_dict["NAME"] == str(folder / "ledger.sqlite3")
        assert Student.objects.count() == 1
        Event.objects.create(at=FIRST_DAY, on=FIRST_DAY.date(), kind="test", detail="")
        assert Event.objects.count() == 1
    assert connections["default"] is own
    assert connections.settings["default"] is own_settings
    assert not Event.objects.filter(kind="test").exists()
    assert not folder.exists()


@pytest.mark.req("FR-9.4")
@pytest.mark.django_db
def test_the_own_database_is_back_after_an_error():
    own = connections["default"]
    with pytest.raises(KeyError), private_ledger():
        raise KeyError
    assert connections["default"] is own


@pytest.mark.req("FR-9.4")
@pytest.mark.django_db
def test_the_private_ledger_keeps_the_databases_own_rules():
    with private_ledger():
        student = Student.objects.get()
        version = Version.objects.create(
            student=student, number=1, adapter="a", base_model="b", stage_since_at=FIRST_DAY, created_at=FIRST_DAY
        )
        with pytest.raises(Exception, match="next stage number"):
            Version.objects.filter(pk=version.pk).update(state="rejected")


@pytest.mark.req("FR-9.4")
@pytest.mark.django_db
def test_a_kept_ledger_is_a_complete_database_and_never_an_existing_file(tmp_path):
    path = tmp_path / "run.sqlite3"
    with private_ledger(path):
        Event.objects.create(at=FIRST_DAY, on=FIRST_DAY.date(), kind="test", detail="")
    with sqlite3.connect(path) as kept:
        assert kept.execute("select kind from ledger_event").fetchall() == [("test",)]
        tables = {name for (name,) in kept.execute("select name from sqlite_master where type = 'table'")}
    assert {"auth_user", "django_session", "ledger_request"} <= tables
    before = path.read_bytes()
    with pytest.raises(Refused, match="exists"), private_ledger(path):
        pass
    with pytest.raises(Refused, match="not a folder"), private_ledger(tmp_path / "no" / "run.sqlite3"):
        pass
    assert path.read_bytes() == before
