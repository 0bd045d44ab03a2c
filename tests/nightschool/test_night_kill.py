"""A real process, really killed in the middle of a night."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETUP = """
import django; django.setup()
from common.clock import SystemClock
from django.conf import settings
from ledger.models import Student
from tests.nightschool.conftest import TASK, SPEC, World
Student.objects.update(backend="scripted", trainer="stalling")
world = World(SystemClock(), Student.objects.get(), None)
world.add_task(TASK, SPEC)
world.store(10)
world.store(4, "golden")
"""


def query(path: Path, sql: str) -> list[tuple]:
    with sqlite3.connect(path, timeout=20) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.slow
@pytest.mark.req("INV-29", "INV-28", "FR-4.4")
def test_a_killed_process_loses_nothing_and_the_next_one_ends_the_night(tmp_path: Path) -> None:
    ledger, marker = tmp_path / "ledger.sqlite3", tmp_path / "training"
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "ratchet_project.settings",
        "DATABASE_URL": f"sqlite:///{ledger}",
        "RATCHET_VAR_DIR": str(tmp_path),
        "RATCHET_ENV_FILE": os.devnull,
        "RATCHET_TEACHER_MODEL": "nvidia/nemotron-3-ultra",
        "RATCHET_TEACHER_BACKEND": "tests.fakes.ScriptedTeacher",
        "RATCHET_STUDENT_BACKENDS": "scripted=tests.fakes.ScriptedStudent",
        "RATCHET_TRAINERS": "stalling=tests.nightschool.fakes.StallingTrainer",
        "RATCHET_MIN_NEW_EXAMPLES": "10",
        "RATCHET_NIGHT_HOLD_S": "2",
    }

    def manage(*args: str) -> list[str]:
        return [sys.executable, str(ROOT / "manage.py"), *args]

    def run(command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)

    assert run(manage("migrate", "-v0")).returncode == 0
    prepared = run([sys.executable, "-c", SETUP])
    assert prepared.returncode == 0, prepared.stderr
    victim = subprocess.Popen(
        manage("night"), cwd=ROOT, env={**environment, "STALL_MARKER": str(marker)}, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not marker.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    victim.send_signal(signal.SIGKILL)
    assert victim.wait(10) == -signal.SIGKILL
    assert query(ledger, "select state, attempts from ledger_night") == [("training", 1)]
    leaves = query(ledger, "select split, key, value from ledger_versionleaf order by id")
    assert len(leaves) == 14
    time.sleep(2.1)
    resumed = run(manage("night"))
    assert resumed.returncode == 0, resumed.stderr
    assert "resumed (training), attempt 2" in resumed.stdout
    assert query(ledger, "select state, attempts from ledger_night") == [("done", 2)]
    assert query(ledger, "select adapter, state, train_examples from ledger_version") == [
        ("default-v1", "rejected", 10)
    ]
    assert query(ledger, "select split, key, value from ledger_versionleaf order by id") == leaves
    assert query(ledger, "select kind from ledger_event order by id") == [("trained",), ("rejected",)]
