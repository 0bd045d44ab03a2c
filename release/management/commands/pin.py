"""``manage.py pin``."""

from typing import Any

from django.core.management.base import CommandParser

from common.clock import Clock
from release.management.commands._operator import OperatorCommand
from release.operator import Change, Intent, pin_task


class Command(OperatorCommand):
    """Pin a task to the teacher."""

    help = "Pin a task to the teacher."

    def add_arguments(self, parser: CommandParser) -> None:
        """The task."""
        parser.add_argument("task")
        super().add_arguments(parser)

    def change(self, intent: Intent, clock: Clock, options: dict[str, Any]) -> Change:
        """Call the service."""
        return pin_task(options["task"], intent, clock=clock)
