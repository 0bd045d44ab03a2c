"""Canonical JSON: the one byte string that a value hashes to."""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """Serialise with sorted keys, no spaces and UTF-8 text; raises ``ValueError`` for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256_hex(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hex."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
