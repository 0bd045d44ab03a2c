"""The one ``Gateway`` of a server process."""

import gc
import logging
import os
import random
import secrets
import socket
import traceback
from datetime import datetime
from uuid import UUID

from django.conf import settings as django_settings

from common.ids import request_label
from gateway.background import process_clock
from gateway.dispatch import CheckDispatcher
from gateway.failures import FailureLog
from gateway.serving import Gateway
from gateway.settings import GatewaySettings
from gateway.tasks import settle_checks
from gateway.wire.errors import APIError

log = logging.getLogger("ratchet.http")

RECORDED_REFUSALS = frozenset({401, 403, 413, 429})

_gateway: Gateway | None = None


def gateway() -> Gateway:
    """Return the running gateway; raises ``RuntimeError`` before ``startup``."""
    if _gateway is None:
        raise RuntimeError("the gateway is not running: serve the project with an ASGI server that runs the lifespan")
    return _gateway


def startup() -> Gateway:
    """Build and start the gateway on the running event loop."""
    global _gateway  # noqa: PLW0603 - one per process, by design
    settings: GatewaySettings = django_settings.RATCHET_GATEWAY
    _gateway = Gateway(
        settings,
        process_clock(),
        random.Random(secrets.randbits(128)),
        dispatcher=CheckDispatcher(_publish),
        failures=FailureLog(),
        holder=f"{socket.gethostname()[:40]}:{os.getpid()}",
    )
    _gateway.start()
    # What is loaded now lives as long as the process. Left to the collector, every full collection walks all of it and
    # stops the event loop for tens of milliseconds.
    gc.collect()
    gc.freeze()
    return _gateway


def record_refusal(error: APIError, arrival_id: UUID, at: datetime) -> None:
    """Leave a failure row for a refusal an operator should know of; a malformed request (400, 404, 405) is not one."""
    if error.status >= 500 or error.status in RECORDED_REFUSALS:
        code = error.code or error.type
        gateway().failures.refused(f"http_{error.status}", code, at=at, request_id=arrival_id, status=error.status)


def record_crash(error: Exception, arrival_id: UUID, at: datetime) -> None:
    """Log a fault of ours and leave a failure row.

    Its class and place are kept, never its message, which may hold what the client wrote (INV-12).
    """
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s failed: %s\n%s", request_label(arrival_id), type(error).__name__, frames)
    gateway().failures.optional("gateway_error", type(error).__name__, at=at, request_id=arrival_id)


def _publish(request_ids: list[str]) -> None:
    settle_checks.delay(request_ids)


async def shutdown() -> None:
    """Stop the gateway, committing what is queued."""
    global _gateway  # noqa: PLW0603 - one per process, by design
    if _gateway is not None:
        await _gateway.stop()
        _gateway = None
