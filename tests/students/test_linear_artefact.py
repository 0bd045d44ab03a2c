"""The artefact on disk: data only, verified, content-addressed."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gateway.settings import GatewaySettings
from gateway.students.linear import artefact
from gateway.students.linear.artefact import ArtefactError, read, write
from nightschool.trainers.base import Trained
from tests.students.conftest import toy_model


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def kind_of(root: Path, reference: dict[str, Any]) -> str:
    with pytest.raises(ArtefactError) as caught:
        read(root, reference)
    return caught.value.kind


@pytest.mark.req("INV-6")
def test_what_is_read_is_what_was_trained(tmp_path: Path) -> None:
    model = toy_model({"red": 0.25, "blue": 0.75}).tasks["triage"]
    reference = write(tmp_path, "v1", [model], {"rows": {"triage": 4}})
    loaded = read(tmp_path, reference).tasks["triage"]
    assert (loaded.task, loaded.fields, loaded.blocks) == (model.task, model.fields, model.blocks)
    assert np.array_equal(loaded.intercepts, model.intercepts)
    assert loaded.coefficients.shape == (0, 2)


@pytest.mark.req("INV-14")
def test_its_files_are_named_by_their_content_and_vouched_for_by_one_hash(
    settings: GatewaySettings, trained: Trained
) -> None:
    root = Path(settings.artefact_dir)
    content = (root / trained.artefact["path"]).read_bytes()
    document = json.loads(content)
    assert trained.artefact == {
        "format": "ratchet-linear/1",
        "path": f"student-v1/{hashlib.sha256(content).hexdigest()}.json",
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    weights = root / "student-v1" / f"{document['weights_sha256']}.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == document["weights_sha256"]
    assert files(root) == sorted([trained.artefact["path"], str(weights.relative_to(root))])


@pytest.mark.req("INV-14")
def test_another_run_of_the_same_adapter_touches_nothing_that_is_loaded(tmp_path: Path) -> None:
    first = write(tmp_path, "v1", [toy_model({"red": 0.25, "blue": 0.75}).tasks["triage"]], {})
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    second = write(tmp_path, "v1", [toy_model({"red": 0.5, "blue": 0.5}).tasks["triage"]], {})
    assert second["sha256"] != first["sha256"]
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert write(tmp_path, "v1", [toy_model({"red": 0.25, "blue": 0.75}).tasks["triage"]], {}) == first
    assert len(files(tmp_path)) == 4


@pytest.mark.req("INV-14")
def test_an_interrupted_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(artefact.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write(tmp_path, "v1", [toy_model({"red": 1.0}).tasks["triage"]], {})
    assert files(tmp_path) == []


@pytest.mark.req("INV-7", "INV-14")
@pytest.mark.parametrize("suffix", ["json", "safetensors"])
def test_a_missing_or_altered_file_is_refused(settings: GatewaySettings, trained: Trained, suffix: str) -> None:
    root = Path(settings.artefact_dir)
    (file,) = root.rglob(f"*.{suffix}")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert kind_of(root, trained.artefact) == "artefact_altered"
    file.unlink()
    assert kind_of(root, trained.artefact) == "artefact_missing"
    file.write_bytes(content)
    assert set(read(root, trained.artefact).tasks) == {"triage"}


@pytest.mark.req("INV-7")
@pytest.mark.parametrize(
    "change",
    [
        {"format": "ratchet-linear/2"},
        {"format": None},
        {"sha256": "abc"},
        {"sha256": None},
        {"path": None},
        {"path": "../../secret.json"},
        {"path": "/etc/passwd"},
    ],
)
def test_a_reference_that_is_not_one_is_refused(
    settings: GatewaySettings, trained: Trained, change: dict[str, Any]
) -> None:
    assert kind_of(Path(settings.artefact_dir), trained.artefact | change) == "artefact_malformed"
    assert kind_of(Path(settings.artefact_dir), {}) == "artefact_malformed"


def rewritten(root: Path, document: Any) -> dict[str, Any]:
    content = json.dumps(document).encode()
    sha256 = hashlib.sha256(content).hexdigest()
    (root / f"{sha256}.json").write_bytes(content)
    return {"format": artefact.FORMAT, "path": f"{sha256}.json", "sha256": sha256}


@pytest.mark.req("INV-7")
@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"weights_sha256": "../x", "tasks": []},
        {"weights_sha256": 3, "tasks": []},
    ],
)
def test_a_document_of_another_shape_is_malformed(tmp_path: Path, document: Any) -> None:
    assert kind_of(tmp_path, rewritten(tmp_path, document)) == "artefact_malformed"


@pytest.mark.req("INV-7")
@pytest.mark.parametrize(
    "change",
    [
        {"fields": [{"name": "topic", "labels": ["red"], "scale": 1.0}]},
        {"fields": [{"name": "topic", "labels": ["red", "blue"]}]},
        {"fields": None},
        {"blocks": [{"name": "words", "terms": ["a"]}]},
        {"blocks": [{"name": "unknown", "terms": []}]},
        {"task": None, "spec_hash": None, "fields": []},
    ],
)
def test_arrays_that_do_not_fit_the_document_are_malformed(tmp_path: Path, change: dict[str, Any]) -> None:
    reference = write(tmp_path, ".", [toy_model({"red": 0.25, "blue": 0.75}).tasks["triage"]], {})
    document = json.loads((tmp_path / reference["path"]).read_bytes())
    document["tasks"][0] |= change
    assert kind_of(tmp_path, rewritten(tmp_path, document)) == "artefact_malformed"


@pytest.mark.req("INV-7")
def test_weights_that_are_not_numbers_are_malformed(tmp_path: Path) -> None:
    model = toy_model({"red": 0.25, "blue": 0.75}).tasks["triage"]
    model.intercepts[0] = np.nan
    assert kind_of(tmp_path, write(tmp_path, "v1", [model], {})) == "artefact_malformed"
