"""The demo runs in an environment of its own and takes over nothing but a configured teacher."""

import os

import pytest

from ratchet_project.environment import Environment, gateway_settings
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


@pytest.mark.parametrize(("database", "broker"), [("", "redis://h/0"), ("postgres://h/x", ""), ("", "")])
def test_services_must_be_named(database, broker):
    with pytest.raises(LaunchFailed, match="DATABASE_URL and REDIS_URL"):
        launch.fresh_services(database, broker)
