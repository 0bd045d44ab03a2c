"""``manage.py retire``."""

from typing import Any

from common.clock import Clock
from release.management.commands._operator import VersionCommand
from release.operator import Change, Intent, retire


class Command(VersionCommand):
    """Retire a live version, a canary or a shadow."""

    help = "Retire a live version, a canary or a shadow."

    def change(self, intent: Intent, clock: Clock, options: dict[str, Any]) -> Change:
        """Call the service."""
        return retire(self.version_id(options), intent, clock=clock)
