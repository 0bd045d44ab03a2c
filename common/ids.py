"""Identifiers: time-ordered UUIDs (RFC 9562, version 7), so that new rows land at the end of their indexes."""

import os
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

REQUEST_PREFIX = "req_"
COMPLETION_PREFIX = "chatcmpl-"


def uuid7(at: datetime, entropy: Callable[[int], bytes] = os.urandom) -> UUID:
    """Return a UUIDv7 for the moment ``at``; ``entropy(n)`` gives ``n`` random bytes."""
    value = int(at.timestamp() * 1000) << 80 | int.from_bytes(entropy(10), "big")
    value = value & ~(0xF << 76) | 7 << 76
    value = value & ~(0x3 << 62) | 2 << 62
    return UUID(int=value)


def request_label(request_id: UUID) -> str:
    """Return the id as clients see it: ``req_`` and 32 hex digits."""
    return REQUEST_PREFIX + request_id.hex
