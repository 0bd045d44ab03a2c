"""``manage.py rollback``."""

from typing import Any

from common.clock import Clock
from release.management.commands._operator import VersionCommand
from release.operator import Change, Intent, rollback


class Command(VersionCommand):
    """Roll a canary back."""

    help = "Roll a canary back."

    def change(self, intent: Intent, clock: Clock, options: dict[str, Any]) -> Change:
        """Call the service."""
        return rollback(self.version_id(options), intent, clock=clock)
