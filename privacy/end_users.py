"""End users as keyed hashes, scoped to the client that sent them (INV-23). Pure."""

import hashlib
import hmac

EVERY_CLIENT = "*"
HASH_DIGITS = 16


def end_user_hash(key: str, client: str, value: str) -> str:
    """Return the 16-hex HMAC-SHA256 of ``value`` in ``client``'s scope; the raw value goes no further than this."""
    message = client.encode() + b"\0" + value.encode()
    return hmac.new(key.encode(), message, hashlib.sha256).hexdigest()[:HASH_DIGITS]
