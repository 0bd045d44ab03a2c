"""``manage.py promote``."""

from typing import Any

from django.core.management.base import CommandParser

from common.clock import Clock
from release.management.commands._operator import VersionCommand
from release.operator import Change, Intent, promote


class Command(VersionCommand):
    """Promote a version to a canary step or to live."""

    help = "Promote a version to a canary step or to live."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to, and how."""
        super().add_arguments(parser)
        parser.add_argument("--to", required=True, choices=["canary", "live"])
        parser.add_argument("--traffic-pct", type=int, help="the canary's share, 1 to 99 (default: the next step)")
        parser.add_argument(
            "--force", action="store_true", help="allow a rejected, rolled-back or retired version or a candidate"
        )

    def change(self, intent: Intent, clock: Clock, options: dict[str, Any]) -> Change:
        """Call the service."""
        share, force = options["traffic_pct"], options["force"]
        return promote(self.version_id(options), options["to"], intent, clock=clock, traffic_pct=share, force=force)
