"""Night School's Celery tasks: start what is due, run a night, send on nights that lost their worker."""

import logging

from celery import shared_task
from django.conf import settings
from django.db import transaction

from common.clock import clock_from_path
from nightschool import night
from nightschool.context import night_context

log = logging.getLogger("ratchet.nights")

RUN_LIMIT_S = 3 * settings.RATCHET_NIGHTS.train_timeout_s + 2 * 3600
"""Past training's own limits (waiting for the data folder, syncing and training may each take as long), two hours for
the evaluation; a night killed by it is resumed, and would train from the start."""


@shared_task(name="nightschool.start_due_nights", queue="maintenance", soft_time_limit=60, time_limit=90)
def start_due_nights() -> int:
    """Start the nights whose time has come; return how many."""
    started = night.start_due_nights(clock_from_path(settings.RATCHET_CLOCK))
    for one in started:
        dispatch_night(one.pk)
    return len(started)


@shared_task(name="nightschool.resume_nights", queue="maintenance", soft_time_limit=60, time_limit=90)
def resume_nights() -> int:
    """Send the nights that nobody works on to a worker; return how many."""
    stale = night.resume_stale(clock_from_path(settings.RATCHET_CLOCK))
    for night_id in stale:
        dispatch_night(night_id)
    return len(stale)


@shared_task(name="nightschool.run_night", queue="nights", time_limit=RUN_LIMIT_S)
def run_night(night_id: int) -> str:
    """Run one night to its end; return the state it is in then."""
    return str(night.run_night(night_id, night_context()).state)


def dispatch_night(night_id: int) -> None:
    """Send a night to a worker once the caller's transaction is committed; a lost message is found by the sweep."""
    transaction.on_commit(lambda: _send(night_id))


def _send(night_id: int) -> None:
    try:
        run_night.delay(night_id)
    except Exception as error:  # noqa: BLE001 - any broker error; the night waits for the sweep
        log.warning("broker refused night %s (%s); the sweep will send it", night_id, type(error).__name__)
