"""The gateway's work in Celery workers: one settling context per process, built on first use."""

import logging
import random
import secrets
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from time import monotonic
from uuid import UUID

from django.conf import settings as django_settings
from django.db.utils import InterfaceError, OperationalError

from common.clock import Clock, clock_from_path
from gateway.adapters import reconcile_adapters
from gateway.models import Models
from gateway.payload import fernet
from gateway.settings import GatewaySettings
from gateway.settling import SettlingContext, settle_check, sweep_checks
from ledger.writer.spool import Spool
from ledger.writer.thread import write_once

log = logging.getLogger("ratchet.checks")

SETTLE_LIMIT_S = 600.0
"""How long one task may settle checks; the soft time limit of ``gateway.settle_checks``."""


@cache
def process_clock() -> Clock:
    """Return the clock that the settings name."""
    return clock_from_path(django_settings.RATCHET_CLOCK)


@cache
def process_context() -> SettlingContext:
    """Return this process's settling context."""
    settings: GatewaySettings = django_settings.RATCHET_GATEWAY
    models = Models(settings, random.Random(secrets.randbits(64)))
    return SettlingContext(settings, models, process_clock(), fernet(settings.data_key))


def settle(request_ids: Sequence[UUID], time_limit_s: float = SETTLE_LIMIT_S) -> int:
    """Settle checks one by one; return how many this process settled.

    None is started that might not end within the limit; those and the crashed ones are left to the sweep.
    """
    context = process_context()
    last_start = monotonic() + time_limit_s - context.longest_check_s
    n_settled = 0
    for position, request_id in enumerate(request_ids):
        if position and monotonic() > last_start:
            break
        n_settled += _settle_one(request_id, context)
    return n_settled


def _settle_one(request_id: UUID, context: SettlingContext) -> bool:
    try:
        return settle_check(request_id, context)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:  # noqa: BLE001 - one check that cannot be settled holds up no other
        log.error("check of %s could not be settled: %s", request_id, type(error).__name__)
        return False


def unsettled() -> list[UUID]:
    """Return the checks that wait for a worker."""
    return sweep_checks(process_context())


def drain_spool() -> int:
    """Write the rows in this machine's spool; their checks are found by the sweep."""
    settings: GatewaySettings = django_settings.RATCHET_GATEWAY
    spool = Spool(Path(settings.spool_dir), fernet(settings.data_key))
    return spool.drain(lambda entry: write_once(entry, "default", lambda _: None))


def heal_endpoints() -> int:
    """Reconcile the adapters of every student; return how many were loaded."""
    return sum(len(done.loaded) for done in reconcile_adapters(django_settings.RATCHET_GATEWAY, process_clock()))
