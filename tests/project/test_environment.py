"""What the process's variables and ``.env`` become, and what a bad one says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from common.errors import ConfigurationError
from ratchet_project.database import database_settings
from ratchet_project.envfile import read_env_file
from ratchet_project.environment import Environment, gateway_settings, load, local_secret, log_level

BASE = Path(__file__).resolve().parents[2]
SECRET = "sk-a-secret-of-the-operator"


def gateway(**variables: str):
    return gateway_settings(Environment(variables), Path("/nonexistent"))


@pytest.fixture(autouse=True)
def _same_variables_afterwards(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr("environ.Env.ENVIRON", os.environ)


@pytest.mark.req("INV-13")
@pytest.mark.parametrize("line", [f"RATCHET_API_KEY = {SECRET}", f"RATCHET_API_KEY: {SECRET}", SECRET])
def test_a_line_of_the_env_file_that_sets_nothing_is_named_by_its_number_and_never_printed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, line: str
):
    file = tmp_path / ".env"
    file.write_text(f"# keys\n\n{line}\n")
    with pytest.raises(ConfigurationError, match=r"\.env, line 3: must be NAME=value") as caught:
        read_env_file(file)
    assert SECRET not in str(caught.value) + caplog.text


def test_the_env_file_sets_what_the_process_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    os.environ["RATCHET_A"] = "of the process"
    file = tmp_path / "mine"
    file.write_text("RATCHET_A=of the file\n  # an indented comment\n  export RATCHET_B='b c'\nRATCHET_C=a#b=c\n")
    monkeypatch.setitem(os.environ, "RATCHET_ENV_FILE", str(file))
    env = load(tmp_path)
    assert [env.text(f"RATCHET_{name}") for name in "ABC"] == ["of the process", "b c", "a#b=c"]


def test_an_env_file_that_is_named_and_missing_or_not_text_stops_the_start(tmp_path: Path):
    os.environ["RATCHET_ENV_FILE"] = str(tmp_path / "typo")
    with pytest.raises(ConfigurationError, match="RATCHET_ENV_FILE: there is no such file"):
        load(tmp_path)
    (tmp_path / "typo").write_bytes(b"A=\xff\n")
    with pytest.raises(ConfigurationError, match="cannot read the file"):
        load(tmp_path)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_secret_file_that_cannot_be_read_names_its_variable(tmp_path: Path, content: bytes | None):
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError, match="RATCHET_API_KEY_FILE: cannot read the file"):
        Environment({"RATCHET_API_KEY_FILE": str(file)}).text("RATCHET_API_KEY")


@pytest.mark.parametrize("name", ["RATCHET_TEACHER_BASE_URL", "RATCHET_STUDENT_BASE"])
@pytest.mark.parametrize(
    "value", ["teacher.example/v1", "localhost:8000/v1", "ftp://x/v1", "http://", "http://[::1", "http://h:x/"]
)
def test_an_endpoint_that_is_no_http_url_names_its_variable(name: str, value: str):
    with pytest.raises(ConfigurationError, match=rf"^{name}: must be an http\(s\) URL"):
        gateway(**{name: value})


@pytest.mark.req("INV-13")
def test_a_short_key_names_the_variable_that_holds_it():
    with pytest.raises(ConfigurationError, match=r"^RATCHET_API_KEY: must have 16 characters or more$"):
        gateway(RATCHET_API_KEY="short")
    with pytest.raises(ConfigurationError, match=r"^RATCHET_API_KEYS: entry 1 must be name:key"):
        gateway(RATCHET_API_KEYS="app:short")


def test_an_unknown_log_level_names_its_variable():
    assert log_level(Environment({"RATCHET_LOG_LEVEL": "debug"})) == "DEBUG"
    with pytest.raises(ConfigurationError, match="RATCHET_LOG_LEVEL: must be one of DEBUG, INFO"):
        log_level(Environment({"RATCHET_LOG_LEVEL": "loud"}))


@pytest.mark.req("INV-13")
@pytest.mark.parametrize(
    "url",
    ["abc", "http://[::1", "/var/x.sqlite3", "mysql://u:p@h/db", "postgres://u:p@h", f"postgres://u:{SECRET}/x@h:y/db"],
)
def test_a_database_url_that_names_none_says_what_it_must_be_without_quoting_it(url: str, recwarn):
    with pytest.raises(ConfigurationError, match=r"^DATABASE_URL: must be postgres://") as caught:
        database_settings(Environment({"DATABASE_URL": url}), Path("/nonexistent"))
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert not recwarn.list


@pytest.mark.req("INV-13")
def test_what_the_database_url_asks_of_the_connection_is_kept():
    url = "postgres://user:p%40ss@db.example:5433/name?sslmode=verify-full&sslrootcert=/etc/ca.pem"
    database = database_settings(Environment({"DATABASE_URL": url}), Path("/nonexistent"))
    assert database["OPTIONS"] == {
        "sslmode": "verify-full",
        "sslrootcert": "/etc/ca.pem",
        "pool": {"min_size": 1, "max_size": 16, "timeout": 10},
    }
    assert (database["USER"], database["PASSWORD"], database["HOST"], database["PORT"]) == (
        "user",
        "p@ss",
        "db.example",
        5433,
    )


@pytest.mark.parametrize("folder", ["with spaces", "a#b", "a?b", "100%25", "c++"])
def test_the_default_database_is_in_the_folder_whatever_its_name(tmp_path: Path, folder: str):
    database = database_settings(Environment({}), tmp_path / folder)
    assert database["NAME"] == str(tmp_path / folder / "ratchet.sqlite3")


def test_words_lose_the_spaces_around_them():
    env = Environment({"DJANGO_CSRF_TRUSTED_ORIGINS": "https://a.example, https://b.example ,"})
    assert env.words("DJANGO_CSRF_TRUSTED_ORIGINS") == ["https://a.example", "https://b.example"]


@pytest.mark.req("INV-13")
def test_the_machines_secret_is_made_once_whole_and_for_its_owner_only(tmp_path: Path):
    path = tmp_path / "secret_key"
    secret = local_secret(path)
    assert len(secret) == 64
    assert local_secret(path) == secret
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_secret_that_cannot_be_made_or_is_empty_says_which_variable_replaces_it(tmp_path: Path):
    (tmp_path / "empty").touch()
    for path in (tmp_path / "empty", tmp_path / "no such folder" / "key"):
        with pytest.raises(ConfigurationError, match=r"^DJANGO_SECRET_KEY is not set"):
            local_secret(path)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("RATCHET_VAR_DIR", "/dev/null/var"), ("DATABASE_URL", "abc"), ("RATCHET_LOG_LEVEL", "loud")],
)
def test_a_command_ends_with_one_line_that_names_the_variable(tmp_path: Path, variable: str, value: str):
    environment = {"PATH": os.environ["PATH"], "RATCHET_ENV_FILE": os.devnull, "RATCHET_VAR_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=BASE,
        env=environment | {variable: value},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 1
    assert run.stderr.startswith(f"configuration error: {variable}: ")
    assert len(run.stderr.splitlines()) == 1
