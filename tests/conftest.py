"""Fixtures of the whole suite: clock, settings with scripted models, a gateway on a real port."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection

from common.clock import ManualClock
from common.money import Price
from gateway.settings import EndpointSettings, GatewaySettings
from ledger.bootstrap import ensure_defaults
from ledger.models import StateEpoch, Student, Task
from ledger.triggers import create_guards_sql, create_sql, drop_guards_sql, drop_sql
from receipts.licences import OPENMDW
from tests.fakes import ScriptedStudent, ScriptedTeacher

TEACHER_MODEL = "nvidia/nemotron-3-ultra"


@pytest.fixture(autouse=True, scope="session")
def _append_only_tables_can_be_flushed() -> Iterator[None]:
    """Between transactional tests Django empties every table, which the append-only triggers rightly refuse."""
    flush = connection.ops.execute_sql_flush
    is_sqlite = connection.vendor == "sqlite"
    drop, create = (drop_sql, create_sql) if is_sqlite else (drop_guards_sql, create_guards_sql)

    def flush_without_triggers(sql_list: list[str]) -> None:
        with connection.cursor() as cursor:
            for statement in drop(connection.vendor):
                cursor.execute(statement)
            flush(sql_list)
            for statement in create(connection.vendor):
                cursor.execute(statement)

    connection.ops.execute_sql_flush = flush_without_triggers  # type: ignore[method-assign]
    yield
    connection.ops.execute_sql_flush = flush  # type: ignore[method-assign]


@pytest.fixture
def ledger(db: None) -> None:
    """A ledger with its default rows, inside a transaction."""
    ensure_defaults(Student, Task, StateEpoch)


@pytest.fixture
def shared_ledger(transactional_db: None) -> None:
    """A ledger with its default rows that other threads and processes can see."""
    ensure_defaults(Student, Task, StateEpoch)


@pytest.fixture
def clock() -> ManualClock:
    """A clock at noon UTC on 2026-11-02."""
    return ManualClock(datetime(2026, 11, 2, 12, 0, tzinfo=UTC))


@pytest.fixture
def student(ledger: None) -> Student:
    """The default student, sampled by the scripted backend."""
    Student.objects.update(backend="scripted")
    return Student.objects.get()


def scripted_settings(**changes: Any) -> GatewaySettings:
    """Gateway settings with the scripted teacher and student at $1/$3 and $0.06/$0.24 per million tokens."""
    values: dict[str, Any] = {
        "teacher": EndpointSettings(model=TEACHER_MODEL, price=Price(1_000_000_000, 3_000_000_000)),
        "teacher_licence": OPENMDW,
        "teacher_backend": "tests.fakes.ScriptedTeacher",
        "student": EndpointSettings(price=Price(60_000_000, 240_000_000)),
        "student_backends": {"scripted": "tests.fakes.ScriptedStudent"},
        "audit_rate": 0.0,
        "data_key": "a data key of the tests",
    }
    return GatewaySettings(**{**values, **changes})


@pytest.fixture
def gateway_settings(tmp_path: Any) -> GatewaySettings:
    """Scripted settings with a spool of their own."""
    return scripted_settings(spool_dir=str(tmp_path / "spool"), artefact_dir=str(tmp_path / "adapters"))


@pytest.fixture(autouse=True)
def _forget_scripts() -> Iterator[None]:
    yield
    for scripted in (ScriptedTeacher, ScriptedStudent):
        scripted.calls = []


def free_port() -> int:
    """Return a free port on the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def serve(shared_ledger: None, settings: Any, tmp_path: Any) -> Iterator[Callable[..., str]]:
    """``serve(**gateway settings)`` runs the whole ASGI application on a real port and returns its base URL."""
    import uvicorn

    from gateway import background
    from ratchet_project.asgi import application

    servers: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(**changes: Any) -> str:
        Student.objects.update(backend="scripted")
        settings.RATCHET_GATEWAY = scripted_settings(**{"spool_dir": str(tmp_path / "spool"), **changes})
        settings.CELERY_BROKER_URL = "memory://"
        background.process_context.cache_clear()
        port = free_port()
        config = uvicorn.Config(application, host="127.0.0.1", port=port, log_level="error", lifespan="on")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        deadline = time.monotonic() + 10
        while not server.started and thread.is_alive() and time.monotonic() < deadline:
            threading.Event().wait(0.01)
        assert server.started, "the server did not start"
        servers.append((server, thread))
        return f"http://127.0.0.1:{port}"

    yield start
    for server, thread in servers:
        server.should_exit = True
        thread.join(10)
    connection.close()
