"""What must be there before the server starts, checked one by one, each with a line that says what to do."""

import errno
import ipaddress
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.db import DatabaseError, connection
from django.utils.module_loading import import_string
from kombu import Connection

from common.money import NUSD_PER_USD
from gateway.settings import GatewaySettings
from ledger.models import ApiKey
from nightschool.settings import NightSettings
from ratchet_project.environment import Environment

DEFAULT_TEACHER = GatewaySettings().teacher_backend
CONNECT_TIMEOUT_S = 3
PORT_MAX = 65535


class Level(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the start-up report. Names variables and hosts, never a secret."""

    level: Level
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.level:<5}  {self.subject}: {self.text}"


def inspect(gateway: GatewaySettings, env: Environment, broker_url: str) -> list[Finding]:
    """Return the findings about the teacher, the student, the database and the broker."""
    variable = "REDIS_URL" if env.text("REDIS_URL") and not env.text("CELERY_BROKER_URL") else "CELERY_BROKER_URL"
    return [*_teacher(gateway, env), _student(gateway), *_audits(gateway), _database(), _broker(broker_url, variable)]


def own_parts(gateway: GatewaySettings, nights: NightSettings, clock: str) -> Iterator[Finding]:
    """Yield an error for each class that cannot be imported and each folder that cannot be written to."""
    classes = [("RATCHET_CLOCK", clock), ("RATCHET_TEACHER_BACKEND", gateway.teacher_backend)]
    classes += [("RATCHET_STUDENT_BACKENDS", path) for path in gateway.student_backends.values()]
    classes += [("RATCHET_TRAINERS", path) for path in nights.trainers.values()]
    for variable, path in classes:
        try:
            import_string(path)
        except Exception as error:  # noqa: BLE001 - an operator's module may fail in any way
            yield Finding(Level.ERROR, "class", f"cannot import {path} ({variable}): {type(error).__name__}")
    folders = {
        "RATCHET_DATA_DIR": nights.data_dir,
        "RATCHET_ARTEFACT_DIR": gateway.artefact_dir,
        "RATCHET_SPOOL_DIR": gateway.spool_dir,
    }
    for variable, folder in folders.items():
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            yield Finding(Level.ERROR, "folder", f"cannot write to {folder} ({variable}): {reason}")


def _teacher(gateway: GatewaySettings, env: Environment) -> Iterator[Finding]:
    if gateway.teacher_backend != DEFAULT_TEACHER:
        yield Finding(Level.NOTE, "teacher", f"{gateway.teacher_backend} instead of an endpoint")
        return
    missing = [
        name
        for name, value in (
            ("RATCHET_TEACHER_BASE_URL (an OpenAI-compatible endpoint, ending in /v1)", gateway.teacher.base_url),
            (
                "RATCHET_TEACHER_MODEL (an open model whose licence allows training on its answers)",
                gateway.teacher.model,
            ),
        )
        if not value
    ]
    for name in missing:
        yield Finding(Level.ERROR, "teacher", f"set {name}")
    if missing:
        return
    licence = gateway.teacher_licence.name if gateway.teacher_licence else "unknown"
    yield Finding(Level.OK, "teacher", f"{gateway.teacher.model} ({licence}) at {host_of(gateway.teacher.base_url)}")
    if not gateway.teacher.api_key:
        yield Finding(Level.NOTE, "teacher", "RATCHET_TEACHER_API_KEY is not set: no key is sent")
    if not env.text("RATCHET_TEACHER_PRICE_IN") or not env.text("RATCHET_TEACHER_PRICE_OUT"):
        price = gateway.teacher.price
        yield Finding(
            Level.NOTE,
            "teacher",
            f"counted at ${price.input_nusd / NUSD_PER_USD:g} in and ${price.output_nusd / NUSD_PER_USD:g} out "
            "per million tokens; your provider's prices go into RATCHET_TEACHER_PRICE_IN and RATCHET_TEACHER_PRICE_OUT",
        )


def _audits(gateway: GatewaySettings) -> Iterator[Finding]:
    rate = gateway.audit_rate if gateway.canary_audit_rate is None else gateway.canary_audit_rate
    if not rate:
        yield Finding(
            Level.NOTE,
            "audits",
            "a canary is never measured, so no version goes live and its student's nights wait: set "
            "RATCHET_CANARY_AUDIT_RATE (or RATCHET_AUDIT_RATE) above 0",
        )


def _student(gateway: GatewaySettings) -> Finding:
    if gateway.student.base_url:
        return Finding(Level.OK, "student", f"endpoint at {host_of(gateway.student.base_url)}")
    return Finding(
        Level.NOTE,
        "student",
        "RATCHET_STUDENT_BASE is not set: students are CPU classifiers, for tasks whose every field is a label",
    )


def _database() -> Finding:
    where = database_name(connection.settings_dict)
    try:
        if connection.vendor == "postgresql":
            # The pool would only say that it got no connection in time.
            psycopg.connect(**connection.get_connection_params(), connect_timeout=CONNECT_TIMEOUT_S).close()
        connection.ensure_connection()
    except (DatabaseError, psycopg.Error) as error:
        reason = " ".join(str(error).split())
        return Finding(Level.ERROR, "database", f"cannot connect to {where} (DATABASE_URL): {reason}")
    return Finding(Level.OK, "database", where)


def database_name(settings: dict[str, Any]) -> str:
    """Say which database is used, without user or password."""
    if "sqlite" in settings["ENGINE"]:
        return f"SQLite at {settings['NAME']}"
    return f"PostgreSQL database {settings['NAME']} on {settings['HOST'] or 'the local socket'}"


def _broker(url: str, variable: str) -> Finding:
    if url.startswith("filesystem://"):
        return Finding(Level.OK, "broker", "a folder on this machine (set REDIS_URL for several hosts)")
    try:
        with Connection(url, connect_timeout=CONNECT_TIMEOUT_S) as broker:
            broker.ensure_connection(max_retries=1, interval_start=0, timeout=CONNECT_TIMEOUT_S)
    except Exception as error:  # noqa: BLE001 - a transport says of a bad URL whatever its library says
        return Finding(Level.ERROR, "broker", f"cannot connect to {host_of(url)} ({variable}): {type(error).__name__}")
    return Finding(Level.OK, "broker", host_of(url))


def host_of(url: str) -> str:
    """Return the host and port of a URL, without its user, password and path."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "a URL that cannot be read"
    return f"{parts.hostname or url.split('://', 1)[0]}{f':{port}' if port else ''}"


def is_loopback(host: str) -> bool:
    """Whether ``host`` is an address that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def access(gateway: GatewaySettings, host: str) -> Finding:
    """Say who can reach the endpoint; without any key it is this machine only. Needs a migrated database."""
    if gateway.api_keys or ApiKey.objects.exists():  # a revoked one still shuts the door
        return Finding(Level.OK, "access", f"API keys are required; listening on {host}")
    if is_loopback(host):
        return Finding(
            Level.NOTE,
            "access",
            f"no API key: listening on {host} only, for this machine; set RATCHET_API_KEY for others",
        )
    return Finding(
        Level.ERROR,
        "access",
        f"HOST={host} would be open to others without a key: set RATCHET_API_KEY, or leave HOST at 127.0.0.1",
    )


def port_finding(host: str, port: int) -> Finding | None:
    """Return an error when the port cannot be listened on, else ``None``."""
    if not 1 <= port <= PORT_MAX:
        return Finding(Level.ERROR, "port", f"{port} is no port: choose one from 1 to {PORT_MAX} with PORT=")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return Finding(Level.ERROR, "port", f"{port} on {host} is taken by another program: choose one with PORT=")
        return Finding(Level.ERROR, "port", f"cannot listen on {host}:{port} ({error.strerror or error})")
    return None
