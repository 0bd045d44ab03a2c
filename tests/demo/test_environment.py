"""The demo runs in an environment of its own and takes over nothing but a configured teacher."""

import os
import socket

import pytest

from ratchet_project.environment import Environment, gateway_settings, night_settings, release_policy
from sim.demo import launch
from sim.demo.environment import NOTICE_LABELS, NOTICE_REAL, Services, demo_environment
from sim.demo.launch import MARKER, LaunchFailed, fresh_folder

OWN = {
    "PATH": "/bin",
    "DATABASE_URL": "postgres://prod/ratchet",
    "REDIS_URL": "redis://prod",
    "RATCHET_API_KEY": "k" * 20,
}
REAL = {"RATCHET_TEACHER_BASE_URL": "https://t.example/v1", "RATCHET_TEACHER_MODEL": "qwen/qwen3-32b"}


def test_the_operators_database_broker_keys_and_env_file_stay_out_of_it(tmp_path):
    made = demo_environment(OWN, tmp_path, 8100, Services())
    assert {"DATABASE_URL", "REDIS_URL", "RATCHET_API_KEY"} & set(made) == set()
    assert made["RATCHET_ENV_FILE"] == os.devnull
    assert made["RATCHET_VAR_DIR"] == str(tmp_path)
    assert made["PATH"] == "/bin"


@pytest.mark.req("FR-5.2")
def test_thresholds_aim_well_above_what_the_gate_asks_for(tmp_path):
    env = Environment(demo_environment(OWN, tmp_path, 8100, Services()))
    assert night_settings(env, tmp_path).target_precision == 0.985
    assert (release_policy(env).min_precision, release_policy(env).tolerance) == (0.95, 0.05)


@pytest.mark.req("INV-1", "INV-9")
def test_without_a_teacher_the_labels_teach_and_everything_says_so(tmp_path):
    made = demo_environment(OWN, tmp_path, 8100, Services())
    settings = gateway_settings(Environment(made), tmp_path)
    assert settings.teacher.base_url == "http://127.0.0.1:8100/v1"
    assert settings.teacher.model == "ratchet-demo/dataset-labels"
    assert settings.teacher_licence.name == "CC-BY-4.0"
    assert (settings.teacher.price.input_nusd, settings.teacher.price.output_nusd) == (10**9, 3 * 10**9)
    assert made["RATCHET_NOTICE"] == NOTICE_LABELS
    assert "no language model" in NOTICE_LABELS


def test_a_configured_teacher_is_used_instead(tmp_path):
    made = demo_environment(OWN | REAL, tmp_path, 8100, Services())
    assert {name: value for name, value in made.items() if name.startswith("RATCHET_TEACHER")} == REAL
    assert made["RATCHET_NOTICE"] == NOTICE_REAL


def test_half_a_teacher_is_none(tmp_path):
    made = demo_environment(OWN | {"RATCHET_TEACHER_MODEL": "qwen/qwen3-32b"}, tmp_path, 8100, Services())
    assert made["RATCHET_TEACHER_MODEL"] == "ratchet-demo/dataset-labels"


def test_services_are_passed_on(tmp_path):
    made = demo_environment(OWN, tmp_path, 8100, Services("postgres://h/ratchet_demo", "redis://h/0"))
    assert (made["DATABASE_URL"], made["REDIS_URL"]) == ("postgres://h/ratchet_demo", "redis://h/0")


def test_a_folder_is_emptied_only_when_it_is_a_demos(tmp_path):
    folder = tmp_path / "demo"
    fresh_folder(folder)
    (folder / "old").touch()
    fresh_folder(folder)
    assert [path.name for path in folder.iterdir()] == [MARKER]
    foreign = tmp_path / "home"
    foreign.mkdir()
    (foreign / "thesis").touch()
    with pytest.raises(LaunchFailed, match="not a demo's"):
        fresh_folder(foreign)
    assert (foreign / "thesis").exists()


class FakeRedis:
    """The few commands that the demo gives to Redis."""

    def __init__(self, keys):
        self.keys = set(keys)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def dbsize(self):
        return len(self.keys)

    def exists(self, key):
        return key in self.keys

    def flushdb(self):
        self.keys.clear()

    def set(self, key, _value):
        self.keys.add(key)


class FakePostgres:
    """Takes every statement."""

    def __init__(self):
        self.statements = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def execute(self, statement):
        self.statements.append(statement.as_string())


@pytest.fixture
def postgres(monkeypatch):
    server = FakePostgres()
    monkeypatch.setattr(launch.psycopg, "connect", lambda *_, **__: server)
    return server


@pytest.mark.parametrize("keys", [[], [MARKER, "checks"]])
def test_services_get_an_empty_database_and_an_empty_redis_database_of_their_own(monkeypatch, postgres, keys):
    server = FakeRedis(keys)
    monkeypatch.setattr(launch.redis.Redis, "from_url", lambda *_, **__: server)
    services = launch.fresh_services("postgres://u:p@h:5432/prod", "redis://h/9")
    assert services == Services("postgres://u:p@h:5432/ratchet_demo", "redis://h/9")
    assert server.keys == {MARKER}
    assert postgres.statements == [
        'DROP DATABASE IF EXISTS "ratchet_demo" WITH (FORCE)',
        'CREATE DATABASE "ratchet_demo"',
    ]


def test_a_redis_database_with_other_keys_is_left_alone(monkeypatch, postgres):
    server = FakeRedis(["checks"])
    monkeypatch.setattr(launch.redis.Redis, "from_url", lambda *_, **__: server)
    with pytest.raises(LaunchFailed, match="holds other keys"):
        launch.fresh_services("postgres://h/prod", "redis://h/0")
    assert server.keys == {"checks"}


def test_a_port_that_is_taken_stops_the_demo_before_it_empties_anything():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(LaunchFailed, match="PORT="):
            launch.require_free_port(taken.getsockname()[1])


@pytest.mark.parametrize(("database", "broker"), [("", "redis://h/0"), ("postgres://h/x", ""), ("", "")])
def test_services_must_be_named(database, broker):
    with pytest.raises(LaunchFailed, match="DATABASE_URL and REDIS_URL"):
        launch.fresh_services(database, broker)
