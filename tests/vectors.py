"""Published test vectors of public projects, read from the folder that ``RATCHET_VECTORS_DIR`` names (CI sets it)."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

FOLDER = os.environ.get("RATCHET_VECTORS_DIR", "")

needs_vectors = pytest.mark.skipif(not FOLDER, reason="RATCHET_VECTORS_DIR names no folder of published vectors")


def read_vectors(*path: str) -> Any:
    """Return a JSON file of the folder; a missing file fails the test."""
    return json.loads(Path(FOLDER, *path).read_text(encoding="utf-8"))
