"""``manage.py flag``."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from common.clock import Clock
from common.errors import Refused
from ledger.switches import DEFAULT, OFF, ON, read_switches
from ledger.vocabulary import Flag
from release.management.commands._operator import OperatorCommand, intent
from release.operator import Change, Intent, set_flag
from release.operator.switches import flag_text


class Command(OperatorCommand):
    """Show the runtime switches, or set one."""

    help = "Show the runtime switches, or set one."

    def add_arguments(self, parser: CommandParser) -> None:
        """Nothing shows them; a name, a value and a reason set one."""
        parser.add_argument("name", nargs="?", choices=Flag.values)
        parser.add_argument("value", nargs="?", help="on|off for a switch; 0 to 1 or 'default' for audit_rate")
        parser.add_argument("--reason", type=intent, help="why, in 3 to 500 characters")
        parser.add_argument("--force", action="store_true", help="allow an audit rate of 0 while a canary is in flight")

    def handle(self, *args: Any, **options: Any) -> None:
        """Show, or check that nothing is missing and set."""
        if options["name"] is None:
            for name, value in asdict(read_switches()).items():
                self.stdout.write(f"{name} {_shown(value)}")
            return
        if options["value"] is None or options["reason"] is None:
            raise CommandError("to set a switch, give its value and --reason", returncode=2)
        try:
            flag_text(options["name"], options["value"])
        except Refused as error:
            raise CommandError(str(error), returncode=2) from error
        super().handle(*args, **options)

    def change(self, intent: Intent, clock: Clock, options: dict[str, Any]) -> Change:
        """Call the service."""
        return set_flag(options["name"], options["value"], intent, clock=clock, force=options["force"])


def _shown(value: bool | float | None) -> str:
    if isinstance(value, bool):
        return ON if value else OFF
    return DEFAULT if value is None else f"{value:g}"
