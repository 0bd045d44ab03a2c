"""Who may call ``/v1``: a known key, or, while no key was ever made, only this machine itself."""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from gateway.keys import bearer, identify
from gateway.snapshot import KeyEntry, Snapshot
from gateway.wire.errors import APIError, forbidden, invalid_api_key

KEYLESS = KeyEntry("")
FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


def authorise(headers: Mapping[str, str], client_host: str, snapshot: Snapshot) -> KeyEntry:
    """Return the caller's key; raises ``APIError`` 401 or 403.

    Without any key configured, a caller must be a program on this machine: an open port must never be an open teacher.
    """
    if not snapshot.keys:
        _require_local(headers, client_host)
        return KEYLESS
    key = bearer(headers.get("authorization", ""), headers.get("x-api-key", ""))
    entry = identify(key, snapshot.keys)
    if entry is None:
        raise invalid_api_key()
    return entry


def _require_local(headers: Mapping[str, str], client_host: str) -> None:
    """Refuse what only looks local.

    A proxy on this machine speaks for others, and a browser on it for the pages of any site: those name their site in
    ``Origin``, or in ``Host`` when they made its name point here.
    """
    if not _is_loopback(client_host) or any(name in headers for name in FORWARDED):
        raise _needs_key("only this machine may call, and not through a proxy")
    host, origin = headers.get("host"), headers.get("origin")
    if host is not None and not _is_local_name(f"//{host}"):
        raise _needs_key("only this machine may call, by an address such as http://127.0.0.1 or http://localhost")
    if origin is not None and not _is_local_name(origin):
        raise _needs_key("only this machine may call, and no page of another site")


def _needs_key(rule: str) -> APIError:
    return forbidden(
        f"No API key is configured, so {rule}. Set RATCHET_API_KEY or make a key in the admin.",
        code="no_api_key_configured",
    )


def _is_local_name(url: str) -> bool:
    try:
        name = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return name == "localhost" or name.endswith(".localhost") or _is_loopback(name)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
