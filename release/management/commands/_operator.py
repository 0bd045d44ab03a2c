"""What the operators' commands share: their arguments, who runs them, and how a refusal is shown."""

import getpass
from abc import ABC, abstractmethod
from argparse import ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from common.clock import Clock, clock_from_path
from common.errors import RatchetError, Refused
from ledger.models import Version
from ledger.vocabulary import DEFAULT_STUDENT
from release.operator import Change, Intent


def intent(reason: str) -> Intent:
    """Read ``--reason`` (an argument type); the actor is the operating system's user."""
    try:
        return Intent(f"cli:{getpass.getuser()}", reason)
    except Refused as error:
        raise ArgumentTypeError(str(error)) from error


class OperatorCommand(BaseCommand, ABC):
    """Runs one operator service and prints what it did; a refusal ends with exit code 1, a bad argument with 2."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Every manual change needs a reason."""
        parser.add_argument("--reason", required=True, type=intent, help="why, in 3 to 500 characters")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the service and report."""
        try:
            change = self.change(options["reason"], clock_from_path(settings.RATCHET_CLOCK), options)
        except RatchetError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(change.text if change.is_change else f"nothing changed: {change.text}")

    @abstractmethod
    def change(self, intent: Intent, clock: Clock, options: dict[str, Any]) -> Change:
        """Call the service."""


class VersionCommand(OperatorCommand):
    """An operator command about one version, named by its number within its student."""

    def add_arguments(self, parser: CommandParser) -> None:
        """The version and its student."""
        parser.add_argument("version", type=_number, help="its number, e.g. 3 or v3")
        parser.add_argument("--student", default=DEFAULT_STUDENT)
        super().add_arguments(parser)

    def version_id(self, options: dict[str, Any]) -> int:
        """Return the key of the version the operator named."""
        rows = Version.objects.filter(student__name=options["student"], number=options["version"])
        found = rows.values_list("pk", flat=True).first()
        if found is None:
            raise Refused(f"student {options['student']} has no version {options['version']}")
        return found


def _number(text: str) -> int:
    digits = text.removeprefix("v")
    if not digits.isascii() or not digits.isdigit():
        raise ArgumentTypeError("must be a version's number, e.g. 3 or v3")
    return int(digits)
