"""The classifier's artefact: two files named by their SHA-256, data only (never pickle).

``<sha256>.json`` holds vocabularies, labels and training settings and names ``<sha256>.safetensors``, which holds the
arrays. The document's hash therefore vouches for both. Files are content-addressed, so a new training run never touches
what a serving process has loaded, and the same run twice writes the same bytes.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from common.canonical import canonical_json
from gateway.students.linear.features import BLOCKS
from gateway.students.linear.model import BlockModel, FieldModel, Floats, LinearModel, TaskModel

FORMAT = "ratchet-linear/1"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BLOCKS = {block.name: block for block in BLOCKS}


class ArtefactError(Exception):
    """An artefact cannot be used. ``kind``: ``artefact_missing``, ``artefact_altered`` or ``artefact_malformed``."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def write(root: Path, adapter: str, models: Sequence[TaskModel], training: Mapping[str, Any]) -> dict[str, Any]:
    """Write a version's models under ``root/adapter`` and return what serving needs to find and verify them."""
    folder = root / adapter
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Floats] = {}
    for number, model in enumerate(models):
        arrays |= _arrays(number, model)
    weights = save({name: np.ascontiguousarray(array, dtype=np.float32) for name, array in arrays.items()})
    document = {
        "format": FORMAT,
        "weights_sha256": _sha256(weights),
        "tasks": [_task_document(model) for model in models],
        "training": dict(training),
    }
    content = canonical_json(document).encode()
    sha256 = _sha256(content)
    _write_atomically(folder / f"{document['weights_sha256']}.safetensors", weights)
    _write_atomically(folder / f"{sha256}.json", content)
    return {"format": FORMAT, "path": f"{adapter}/{sha256}.json", "sha256": sha256}


def read(root: Path, reference: Mapping[str, Any]) -> LinearModel:
    """Read and verify the artefact that ``write`` returned ``reference`` for. Raises ``ArtefactError``."""
    path, sha256 = reference.get("path"), reference.get("sha256")
    if reference.get("format") != FORMAT or not isinstance(path, str) or not _is_sha256(sha256):
        raise ArtefactError("artefact_malformed")
    file = (root / path).resolve()
    if not file.is_relative_to(root.resolve()):
        raise ArtefactError("artefact_malformed")
    try:
        document = json.loads(_read_verified(file, sha256))
        weights_sha256 = document["weights_sha256"]
        if not _is_sha256(weights_sha256):
            raise ArtefactError("artefact_malformed")
        arrays = load(_read_verified(file.with_name(f"{weights_sha256}.safetensors"), weights_sha256))
        models = [_task_model(number, task, arrays) for number, task in enumerate(document["tasks"])]
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise ArtefactError("artefact_malformed") from error
    return LinearModel({model.task: model for model in models})


def _arrays(number: int, model: TaskModel) -> dict[str, Floats]:
    arrays = {f"{number}.coefficients": model.coefficients, f"{number}.intercepts": model.intercepts}
    return arrays | {f"{number}.idf.{block.block.name}": block.idf for block in model.blocks}


def _task_document(model: TaskModel) -> dict[str, Any]:
    return {
        "task": model.task,
        "spec_hash": model.spec_hash,
        "blocks": [{"name": block.block.name, "terms": list(block.terms)} for block in model.blocks],
        "fields": [{"name": field.name, "labels": list(field.labels), "scale": field.scale} for field in model.fields],
    }


def _task_model(number: int, document: Mapping[str, Any], arrays: Mapping[str, Floats]) -> TaskModel:
    blocks, n_terms = [], 0
    for block in document["blocks"]:
        idf = _shaped(arrays[f"{number}.idf.{block['name']}"], (len(block["terms"]),))
        blocks.append(BlockModel(_BLOCKS[block["name"]], block["terms"], idf, n_terms))
        n_terms += len(block["terms"])
    fields = tuple(
        FieldModel(field["name"], tuple(field["labels"]), float(field["scale"])) for field in document["fields"]
    )
    n_labels = sum(len(field.labels) for field in fields)
    return TaskModel(
        task=document["task"],
        spec_hash=document["spec_hash"],
        blocks=tuple(blocks),
        fields=fields,
        coefficients=_shaped(arrays[f"{number}.coefficients"], (n_terms, n_labels)),
        intercepts=_shaped(arrays[f"{number}.intercepts"], (n_labels,)),
    )


def _shaped(array: Floats, shape: tuple[int, ...]) -> Floats:
    if array.shape != shape or array.dtype != np.float32 or not np.isfinite(array).all():
        raise ArtefactError("artefact_malformed")
    return array


def _read_verified(file: Path, sha256: str) -> bytes:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ArtefactError("artefact_missing") from error
    if _sha256(content) != sha256:
        raise ArtefactError("artefact_altered")
    return content


def _write_atomically(file: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".", suffix=".part", delete=False) as part:
        try:
            part.write(content)
            part.flush()
            os.fsync(part.fileno())
            Path(part.name).replace(file)
        except BaseException:
            Path(part.name).unlink(missing_ok=True)
            raise
    file.chmod(0o644)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_sha256(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None
