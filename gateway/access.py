"""Who may call ``/v1``: a known key, or, while no key exists at all, only this machine itself."""

from collections.abc import Mapping
from ipaddress import ip_address

from gateway.keys import bearer, identify
from gateway.snapshot import KeyEntry, Snapshot
from gateway.wire.errors import forbidden, invalid_api_key

KEYLESS = KeyEntry("")


def authorise(headers: Mapping[str, str], client_host: str, snapshot: Snapshot) -> KeyEntry:
    """Return the caller's key; raises ``APIError`` 401 or 403.

    Without any key configured, a caller must be on the loopback interface: an open port must never be an open teacher.
    """
    if not snapshot.keys:
        if _is_loopback(client_host):
            return KEYLESS
        raise forbidden(
            "No API key is configured, so only this machine may call. Set RATCHET_API_KEYS.",
            code="no_api_key_configured",
        )
    key = bearer(headers.get("authorization", ""), headers.get("x-api-key", ""))
    entry = identify(key, snapshot.keys)
    if entry is None:
        raise invalid_api_key()
    return entry


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
