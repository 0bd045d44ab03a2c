"""API keys: made once, shown once, kept as a SHA-256 (INV-13)."""

import hashlib
import secrets
from collections.abc import Mapping

from django.db import IntegrityError, transaction

from common.clock import Clock
from common.errors import Refused
from gateway.snapshot import KeyEntry
from ledger.models import AdminAction, ApiKey

PREFIX = "rk-"


def key_digest(key: str) -> str:
    """Return what is kept of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def bearer(authorization: str, x_api_key: str) -> str:
    """Return the key a request carries in ``Authorization: Bearer`` or ``X-API-Key``; empty when it carries none."""
    scheme, _, token = authorization.partition(" ")
    return (token.strip() if scheme.lower() == "bearer" else "") or x_api_key.strip()


def identify(key: str, keys: Mapping[str, KeyEntry | None]) -> KeyEntry | None:
    """Return whose key this is, unless it is revoked. The look-up is by digest, so its timing says nothing of a key."""
    return keys.get(key_digest(key)) if key else None


def create_key(name: str, *, actor: str, clock: Clock, may_store: bool = True) -> str:
    """Create a key called ``name`` and return it; it cannot be read again. Raises ``Refused`` for a taken name."""
    key = PREFIX + secrets.token_urlsafe(32)
    now = clock.now()
    try:
        with transaction.atomic():
            ApiKey.objects.create(
                name=name, key_sha256=key_digest(key), may_store=may_store, created_at=now, created_by=actor
            )
            AdminAction.objects.create(
                at=now, actor=actor, action="create_key", target=name, after={"may_store": may_store}
            )
    except IntegrityError as error:  # the constraint also decides between two who choose a name at once
        raise Refused(f"a key named {name!r} exists, or did until it was revoked; choose another name") from error
    return key


def revoke_key(key: ApiKey, *, actor: str, reason: str, clock: Clock) -> None:
    """Revoke a key for good; every gateway process refuses it within 100 ms. Raises ``Refused`` when it already is."""
    with transaction.atomic():
        if not ApiKey.objects.filter(pk=key.pk, is_revoked=False).update(is_revoked=True):
            raise Refused(f"{key.name} is already revoked")
        AdminAction.objects.create(
            at=clock.now(),
            actor=actor,
            action="revoke_key",
            target=key.name,
            reason=reason,
            before={"is_revoked": False},
            after={"is_revoked": True},
        )
