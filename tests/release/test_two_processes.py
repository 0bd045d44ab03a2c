"""Two operating-system processes cannot make two live versions, on either engine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection, connections
from django.db.backends.sqlite3.base import DatabaseWrapper

from ledger.bootstrap import ensure_defaults
from ledger.models import Event, StateEpoch, Student, Task
from tests.release.builders import build_version, place

pytestmark = pytest.mark.slow


def environment(url: str) -> dict[str, str]:
    return {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "ratchet_project.settings_test"}


def race(url: str) -> list[str]:
    """Let two processes promote the same canary after both have read the same state; return what each came to."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.release.racer", "2"],
            env=environment(url), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert [racer.stdout.readline() for racer in racers] == ["ready\n", "ready\n"]
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    return sorted(racer.communicate(timeout=30)[0].strip() for racer in racers)


def assert_one_of_two_wins(url: str, clock) -> None:
    student = Student.objects.get()
    old = build_version(student, clock, "live", 1)
    new = build_version(student, clock, "canary", 2, traffic_pct=50)
    assert race(url) == ["False", "True"]
    assert (place(old), place(new)) == (("retired", 0, 4), ("live", 100, 4))
    assert list(Event.objects.order_by("pk").values_list("kind", flat=True)) == ["live_retired", "live"]


@pytest.mark.postgres
@pytest.mark.req("INV-5", "INV-29", "FR-12.9")
def test_two_processes_cannot_make_two_live_versions_on_postgresql(shared_ledger, clock):
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    database = connection.settings_dict
    host = f"{database['HOST']}:{database['PORT'] or 5432}"
    password = f":{database['PASSWORD']}" if database["PASSWORD"] else ""
    assert_one_of_two_wins(f"postgres://{database['USER']}{password}@{host}/{database['NAME']}", clock)


@pytest.fixture
def ledger_file(tmp_path: Path, django_db_blocker) -> Iterator[str]:
    """A migrated SQLite file as the default database of this process; yields its URL."""
    url = f"sqlite:///{tmp_path / 'ledger.sqlite3'}"
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, env=environment(url), check=True, timeout=120)
    options = {
        **connections.settings["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "ledger.sqlite3"),
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},
    }
    before = connections["default"]
    with django_db_blocker.unblock():
        connections["default"] = DatabaseWrapper(options, "default")
        yield url
        connections["default"].close()
        connections["default"] = before


@pytest.mark.req("INV-5", "INV-29", "FR-12.9")
def test_two_processes_cannot_make_two_live_versions_on_an_sqlite_file(ledger_file, clock):
    ensure_defaults(Student, Task, StateEpoch)
    assert_one_of_two_wins(ledger_file, clock)
