"""The release's Celery task."""

from celery import shared_task
from django.conf import settings

from common.clock import clock_from_path
from release import gate


@shared_task(name="release.tick", queue="gate", soft_time_limit=60, time_limit=90)
def tick() -> list[str]:
    """Look at every student's evidence once; return the texts of the events."""
    return gate.tick_all(clock=clock_from_path(settings.RATCHET_CLOCK), policy=settings.RATCHET_RELEASE)
