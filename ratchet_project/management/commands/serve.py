"""``manage.py serve``: web, workers and beat on this machine, after checking what they need."""

import signal
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from ratchet_project import preflight
from ratchet_project.preflight import Finding, Level
from ratchet_project.processes import process_specs
from ratchet_project.supervisor import CannotStart, Supervisor


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ArgumentTypeError("must be 1 or more")
    return number


class Command(BaseCommand):
    """Checks the configuration, prepares the database and runs every process until it is told to stop."""

    help = "Start web, workers and beat from the environment or .env."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add where to listen and how many processes to run."""
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000)")
        parser.add_argument(
            "--gateways", type=_at_least_one, default=1, help="gateway processes on that port (default 1)"
        )
        parser.add_argument(
            "--workers", type=_at_least_one, default=1, help="worker processes for checks and ticks (default 1)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Refuse with a clear message, or run until SIGTERM or SIGINT."""
        host, port = options["host"], options["port"]
        self._report(preflight.inspect(settings.RATCHET_GATEWAY, settings.ENV, settings.CELERY_BROKER_URL))
        self._report([*preflight.own_parts(settings.RATCHET_GATEWAY, settings.RATCHET_NIGHTS, settings.RATCHET_CLOCK)])
        taken = preflight.port_finding(host, port)
        self._report([taken] if taken else [])
        call_command("migrate", interactive=False, verbosity=0)
        self._report([preflight.access(settings.RATCHET_GATEWAY, host)])
        call_command("setup", stdout=self.stdout)
        self.stdout.write(f"http://{host}:{port}/v1 (OpenAI API) and http://{host}:{port}/admin/")
        supervisor = Supervisor(
            process_specs(settings.BASE_DIR, host, port, options["gateways"], options["workers"]), self._write
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: supervisor.stop())
        try:
            supervisor.run()
        except CannotStart as error:
            raise CommandError(f"{error}; its output is above") from error
        except OSError as error:
            raise CommandError(f"cannot start a process: {error}") from error

    def _report(self, findings: list[Finding]) -> None:
        """Print every finding; raise ``CommandError`` when one of them is an error."""
        for finding in findings:
            self.stdout.write(str(finding))
        if any(finding.level is Level.ERROR for finding in findings):
            raise CommandError("not started: see the lines marked `error` above")

    def _write(self, text: str) -> None:
        self.stdout.write(text, ending="")
        self.stdout.flush()
