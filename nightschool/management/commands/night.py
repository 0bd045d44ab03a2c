"""``manage.py night``: run one night now, with its progress on the terminal."""

from argparse import ArgumentParser
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ledger.models import Night, Student
from ledger.vocabulary import DEFAULT_STUDENT, NIGHT_STEPS, NightState
from nightschool.context import night_context
from nightschool.night import run_night, start_night

EXIT_FAILED, EXIT_USAGE, EXIT_BUSY = 1, 2, 3


class Command(BaseCommand):
    """Exit codes: 0 done or skipped, 1 the night failed, 2 no such student, 3 another worker holds it."""

    help = "Run one night of a student now, or resume the one that lost its worker."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--student", default=DEFAULT_STUDENT, help="name of the student")
        parser.add_argument("--date", type=date.fromisoformat, help="UTC date the night is for (default: today)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Start or resume the night and run it to its end."""
        student = Student.objects.filter(name=options["student"]).first()
        if student is None:
            raise CommandError(f"no student {options['student']!r}", returncode=EXIT_USAGE)
        context = night_context()
        on = options["date"] or context.clock.now().date()
        night = start_night(student.pk, on=on, clock=context.clock, is_scheduled=False) or _running(student)
        if night is not None:
            night = run_night(night.pk, context, self._show)
        if night is None or night.is_running:
            raise CommandError(f"another worker runs the night of {student.name}", returncode=EXIT_BUSY)
        for entry in night.log:
            self.stdout.write(f"{entry['at']}  {entry['line']}")
        if night.state == NightState.FAILED:
            raise CommandError(f"night {night.pk} failed {night.outcome}", returncode=EXIT_FAILED)
        self.stdout.write(f"night {night.pk} {night.state}: {night.outcome}")

    def _show(self, done: int, total: int, detail: str) -> None:
        self.stderr.write(f"\r{detail}: {done}/{total}   ", ending="\n" if done >= total else "")


def _running(student: Student) -> Night | None:
    return Night.objects.filter(student=student, state__in=NIGHT_STEPS).first()
