"""What ``manage.py serve`` checks before it starts anything."""

import socket
from dataclasses import replace

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection

from common.clock import SystemClock
from gateway.keys import create_key, revoke_key
from gateway.settings import EndpointSettings, GatewaySettings
from ledger.models import ApiKey
from nightschool.settings import NightSettings
from ratchet_project import preflight
from ratchet_project.environment import Environment
from ratchet_project.preflight import Level
from ratchet_project.processes import process_specs
from receipts.licences import APACHE_2

READY = GatewaySettings(
    teacher=EndpointSettings(
        base_url="https://user:pw@teacher.example:8443/v1", api_key="sk-secret", model="qwen/qwen3-32b"
    ),
    teacher_licence=APACHE_2,
)
PRICES = {"RATCHET_TEACHER_PRICE_IN": "0.5", "RATCHET_TEACHER_PRICE_OUT": "1.5"}


def teacher_lines(gateway, variables=PRICES):
    found = preflight.inspect(gateway, Environment(variables), "filesystem://localhost")
    return [(finding.level, finding.text) for finding in found if finding.subject == "teacher"]


@pytest.mark.django_db
@pytest.mark.req("INV-13")
def test_a_complete_teacher_is_one_line_without_a_secret():
    assert teacher_lines(READY) == [(Level.OK, "qwen/qwen3-32b (Apache-2.0) at teacher.example:8443")]


@pytest.mark.django_db
def test_each_missing_part_of_the_teacher_is_an_error_that_names_its_variable():
    lines = teacher_lines(GatewaySettings())
    assert [level for level, _ in lines] == [Level.ERROR, Level.ERROR]
    assert [text.split()[1] for _, text in lines] == ["RATCHET_TEACHER_BASE_URL", "RATCHET_TEACHER_MODEL"]


@pytest.mark.django_db
def test_a_missing_key_and_price_are_notes_that_say_what_is_assumed():
    gateway = replace(READY, teacher=replace(READY.teacher, api_key=""))
    (_, _), (level, key), (price_level, price) = teacher_lines(gateway, {})
    assert (level, price_level) == (Level.NOTE, Level.NOTE)
    assert key == "RATCHET_TEACHER_API_KEY is not set: no key is sent"
    assert "RATCHET_TEACHER_PRICE_IN and RATCHET_TEACHER_PRICE_OUT" in price


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("rate", "canary_rate", "is_noted"), [(0.0, None, True), (0.05, 0.0, True), (0.0, 0.2, False), (0.05, None, False)]
)
def test_a_canary_that_would_never_be_measured_is_noted(rate, canary_rate, is_noted):
    gateway = replace(READY, audit_rate=rate, canary_audit_rate=canary_rate)
    found = [f for f in preflight.inspect(gateway, Environment({}), "filesystem://") if f.subject == "audits"]
    assert [finding.level for finding in found] == [Level.NOTE] * is_noted


@pytest.mark.django_db
def test_another_teacher_backend_needs_no_endpoint():
    lines = teacher_lines(GatewaySettings(teacher_backend="sim.mock_teacher.MockTeacher"))
    assert [level for level, _ in lines] == [Level.NOTE]


@pytest.mark.django_db
def test_without_a_student_endpoint_a_note_says_what_the_students_are():
    (finding,) = [f for f in preflight.inspect(READY, Environment({}), "filesystem://") if f.subject == "student"]
    assert (finding.level, "CPU classifiers" in finding.text) == (Level.NOTE, True)


def test_an_unreachable_database_is_an_error_that_names_the_variable(monkeypatch):
    def refuse():
        raise DatabaseError("connection refused")

    monkeypatch.setattr(connection, "ensure_connection", refuse)
    (finding,) = [f for f in preflight.inspect(READY, Environment({}), "filesystem://") if f.subject == "database"]
    assert finding.level is Level.ERROR
    assert finding.text.endswith("(DATABASE_URL): connection refused")


@pytest.mark.django_db
@pytest.mark.req("INV-13")
def test_an_unreachable_broker_is_an_error_without_its_password():
    port = free_port()
    found = preflight.inspect(READY, Environment({}), f"redis://:hunter2@127.0.0.1:{port}/0")
    (finding,) = [f for f in found if f.subject == "broker"]
    assert finding.level is Level.ERROR
    assert f"127.0.0.1:{port} (CELERY_BROKER_URL)" in finding.text
    assert "hunter2" not in finding.text


@pytest.mark.django_db
@pytest.mark.parametrize(("host", "level"), [("127.0.0.1", Level.NOTE), ("::1", Level.NOTE), ("localhost", Level.NOTE)])
def test_without_any_key_loopback_is_served_and_said(host, level):
    finding = preflight.access(GatewaySettings(), host)
    assert (finding.level, f"listening on {host} only" in finding.text) == (level, True)


@pytest.mark.django_db
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "ratchet.example"])
def test_without_any_key_another_address_is_refused(host):
    finding = preflight.access(GatewaySettings(), host)
    assert finding.level is Level.ERROR
    assert "RATCHET_API_KEY" in finding.text


@pytest.mark.django_db
def test_a_bootstrap_key_or_a_key_from_the_admin_opens_other_addresses():
    assert preflight.access(GatewaySettings(api_keys={"digest": "app"}), "0.0.0.0").level is Level.OK
    create_key("app", actor="tester", clock=SystemClock())
    assert preflight.access(GatewaySettings(), "0.0.0.0").level is Level.OK
    revoke_key(ApiKey.objects.get(), actor="tester", reason="leaked", clock=SystemClock())
    assert preflight.access(GatewaySettings(), "127.0.0.1").level is Level.OK


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_free_port_is_fine_and_a_taken_one_is_an_error_that_says_what_to_do():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        finding = preflight.port_finding("127.0.0.1", port)
        assert finding.text == f"{port} on 127.0.0.1 is taken by another program: choose one with PORT="
    assert preflight.port_finding("127.0.0.1", free_port()) is None


@pytest.mark.django_db
def test_serve_refuses_to_start_without_a_teacher(capsys):
    with pytest.raises(CommandError, match="not started"):
        call_command("serve", port=free_port())
    printed = capsys.readouterr().out
    assert "error  teacher: set RATCHET_TEACHER_BASE_URL" in printed
    assert "error  teacher: set RATCHET_TEACHER_MODEL" in printed


@pytest.mark.django_db
@pytest.mark.req("INV-13")
def test_serve_refuses_an_open_address_without_a_key(capsys, settings):
    settings.RATCHET_GATEWAY = READY
    with pytest.raises(CommandError, match="not started"):
        call_command("serve", host="0.0.0.0", port=free_port())
    printed = capsys.readouterr().out
    assert "error  access: HOST=0.0.0.0 would be open to others" in printed
    assert "password" not in printed
    assert not get_user_model().objects.exists()


def test_serve_starts_web_workers_nights_and_beat():
    specs = process_specs(settings.BASE_DIR, "127.0.0.1", 8000, gateways=2, workers=2)
    assert [spec.name for spec in specs] == ["web", "worker1", "worker2", "nights", "beat"]
    assert [spec.name for spec in process_specs(settings.BASE_DIR, "127.0.0.1", 8000)] == [
        "web",
        "worker",
        "nights",
        "beat",
    ]
    queues = [spec.argv[spec.argv.index("-Q") + 1] for spec in specs if "-Q" in spec.argv]
    assert queues == ["checks,gate,maintenance", "checks,gate,maintenance", "nights"]


def test_a_port_outside_the_range_is_an_error():
    for port in (0, -1, 65536, 99999):
        assert preflight.port_finding("127.0.0.1", port).text.startswith(f"{port} is no port")


@pytest.mark.parametrize("option", ["--gateways=0", "--workers=-1"])
def test_a_count_of_processes_below_one_is_refused(option):
    with pytest.raises(CommandError, match="must be 1 or more"):
        call_command("serve", option)


@pytest.mark.django_db
@pytest.mark.parametrize("url", ["redis://h:x/0", "redis://[::1", "sqs://x", "http://x", "abc"])
def test_any_broker_url_that_cannot_be_used_is_an_error_that_names_its_variable(url):
    found = preflight.inspect(READY, Environment({"REDIS_URL": url}), url)
    (finding,) = [f for f in found if f.subject == "broker"]
    assert (finding.level, "(REDIS_URL)" in finding.text) == (Level.ERROR, True)


def parts(gateway=READY, nights=None, clock="common.clock.SystemClock"):
    return [finding.text for finding in preflight.own_parts(gateway, nights or NightSettings(), clock)]


@pytest.fixture
def folders(tmp_path):
    gateway = replace(READY, artefact_dir=str(tmp_path / "a"), spool_dir=str(tmp_path / "s"))
    return gateway, NightSettings(data_dir=str(tmp_path / "d"))


def test_a_class_that_cannot_be_imported_is_an_error_that_names_its_variable(folders):
    gateway, nights = folders
    assert parts(gateway, nights) == []
    assert parts(gateway, nights, "no.such.clock") == [
        "cannot import no.such.clock (RATCHET_CLOCK): ModuleNotFoundError"
    ]
    assert parts(replace(gateway, teacher_backend="x"), nights) == [
        "cannot import x (RATCHET_TEACHER_BACKEND): ImportError"
    ]
    assert parts(replace(gateway, student_backends={"mine": "common.clock.Nope"}), nights) == [
        "cannot import common.clock.Nope (RATCHET_STUDENT_BACKENDS): ImportError"
    ]
    assert parts(gateway, replace(nights, trainers={"mine": ""})) == ["cannot import  (RATCHET_TRAINERS): ImportError"]


def test_a_folder_that_cannot_be_written_to_is_an_error_that_names_its_variable(folders):
    gateway, nights = folders
    assert parts(replace(gateway, spool_dir="/dev/null/spool"), nights) == [
        "cannot write to /dev/null/spool (RATCHET_SPOOL_DIR): Not a directory"
    ]
