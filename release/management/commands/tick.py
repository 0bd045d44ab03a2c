"""``manage.py tick``."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from common.clock import clock_from_path
from release import gate


class Command(BaseCommand):
    """Look at the evidence of every student once, and move what it decides."""

    help = "Look at the evidence of every student once, and move what it decides (Celery beat does so by itself)."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print what happened."""
        happened = gate.tick_all(clock=clock_from_path(settings.RATCHET_CLOCK), policy=settings.RATCHET_RELEASE)
        for text in happened or ["nothing to do"]:
            self.stdout.write(text)
