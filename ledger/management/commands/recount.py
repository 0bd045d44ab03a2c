"""``manage.py recount``."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ledger.recount import recount


class Command(BaseCommand):
    """Recompute the rollups and tallies from the requests and compare."""

    help = "Recompute the rollups and tallies from the requests and compare; exit 1 and the differences if any."

    def add_arguments(self, parser: CommandParser) -> None:
        """Whether to repair."""
        parser.add_argument("--repair", action="store_true", help="rewrite both tables in one transaction")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the differences."""
        differences = recount(repair=options["repair"])
        for difference in differences:
            self.stdout.write(str(difference))
        if not differences:
            self.stdout.write("every sum equals its rows")
        elif options["repair"]:
            self.stdout.write(f"repaired {len(differences)} sums")
        else:
            raise CommandError(f"{len(differences)} sums differ from their rows")
