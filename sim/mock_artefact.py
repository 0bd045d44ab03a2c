"""What a mock student learned, as a JSON file: distinct training texts per template, and the hashes of the texts."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = "mock-student/1"


class ArtefactError(Exception):
    """The artefact is missing, changed or of another format; the text names the adapter's file only."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The training set as the skill model sees it."""

    n_by_template: Mapping[str, int]
    texts: frozenset[str]
    """``text_hash`` of each training text."""


def text_hash(text: str) -> str:
    """Return the first 64 bits of a text's SHA-256, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_artefact(folder: Path, adapter: str, learned: Learned) -> dict[str, Any]:
    """Write ``<folder>/<adapter>/mock.json``, over what is there, and return the reference that serving verifies."""
    path = folder / adapter / "mock.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"format": FORMAT, "templates": dict(learned.n_by_template), "texts": sorted(learned.texts)}
    data = json.dumps(document, sort_keys=True).encode()
    path.write_bytes(data)
    return {"format": FORMAT, "file": f"{adapter}/mock.json", "sha256": hashlib.sha256(data).hexdigest()}


def read_artefact(folder: Path, reference: Mapping[str, Any]) -> Learned:
    """Read what ``reference`` points to; raises ``ArtefactError`` unless it is the very file that was written."""
    if reference.get("format") != FORMAT:
        raise ArtefactError(f"not a {FORMAT} artefact")
    try:
        data = (folder / str(reference["file"])).read_bytes()
    except OSError as error:
        raise ArtefactError(f"cannot read {reference['file']} ({error.strerror})") from error
    if hashlib.sha256(data).hexdigest() != reference["sha256"]:
        raise ArtefactError(f"{reference['file']} is not the file that was trained")
    document = json.loads(data)
    return Learned(document["templates"], frozenset(document["texts"]))
