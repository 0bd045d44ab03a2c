"""The gateway's Celery tasks: settle checks, sweep for lost ones, write spooled rows, heal endpoints."""

from uuid import UUID

from celery import shared_task

from gateway import background


@shared_task(name="gateway.settle_checks", queue="checks", soft_time_limit=600, time_limit=660)
def settle_checks(request_ids: list[str]) -> int:
    """Settle the named checks; return how many this task settled."""
    return background.settle([UUID(request_id) for request_id in request_ids])


@shared_task(name="gateway.sweep_checks", queue="checks", soft_time_limit=60, time_limit=90)
def sweep_checks() -> int:
    """Find unsettled checks that nobody works on and dispatch them; return how many."""
    ids = background.unsettled()
    for start in range(0, len(ids), 50):
        settle_checks.delay([request_id.hex for request_id in ids[start : start + 50]])
    return len(ids)


@shared_task(name="gateway.retry_spool", queue="maintenance", soft_time_limit=60, time_limit=90)
def retry_spool() -> int:
    """Write rows that a gateway of this machine spooled and left behind; return how many."""
    return background.drain_spool()


@shared_task(name="gateway.reconcile_adapters", queue="maintenance", soft_time_limit=300, time_limit=330)
def reconcile_adapters() -> int:
    """Bring every endpoint to the adapters that serving needs; return how many were loaded."""
    return background.heal_endpoints()
