"""``manage.py simulate``: the whole loop offline, with mock models, in a ledger of its own."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from common.errors import Refused
from common.money import format_usd
from ledger.daytable import day_table
from sim.private_ledger import private_ledger
from sim.results import HEADER, NOTICE, day_line, event_log, results
from sim.scenario import WORKLOADS, Scenario
from sim.simulator import simulate

USAGE_ERROR = 2


class Command(BaseCommand):
    """Simulate days of traffic, nights of training, releases and rollbacks."""

    help = "Run the whole loop offline with mock models (a simulation): traffic, nights, releases and rollbacks."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The options of a scenario, then where the results go."""
        defaults = Scenario()
        for option, meaning in (
            ("days", "days to simulate"),
            ("requests", "requests per day"),
            ("min-shadow", "would-serve answers before a shadow is decided"),
            ("min-audits", "audits before a canary moves"),
            ("min-new", "new training rows that a night needs"),
            ("drift-day", "day a new product launches (0 = never)"),
            (
                "bad-deploy-version",
                "fault injection: this version is pushed corrupted to production (0 = none)",
            ),
        ):
            default = getattr(defaults, option.replace("-", "_"))
            parser.add_argument(f"--{option}", type=int, default=default, help=f"{meaning} (default {default})")
        for option, meaning in (
            ("threshold", "confidence threshold of a version without one of its own"),
            ("audit-rate", "share of the student's answers that are audited"),
        ):
            default = getattr(defaults, option.replace("-", "_"))
            parser.add_argument(f"--{option}", type=float, default=default, help=f"{meaning} (default {default})")
        parser.add_argument("--workload", choices=WORKLOADS, default=defaults.workload, help="what the requests are")
        parser.add_argument("--seed", type=int, action="append", help="may be given several times (default 7)")
        parser.add_argument("--out", type=Path, help="results file (default: sim/results.json in the var folder)")
        parser.add_argument("--db", type=Path, help="keep the run's ledger in this SQLite file, which must not exist")

    def handle(self, **options: Any) -> None:
        """Run each seed in a fresh ledger and write the results."""
        try:
            scenario = Scenario(**{name: options[name] for name in Scenario.__dataclass_fields__})
        except ValueError as error:
            raise CommandError(str(error), returncode=USAGE_ERROR) from error
        seeds = options["seed"] or [7]
        if options["db"] is not None and len(seeds) > 1:
            raise CommandError("--db: keeps one ledger, so it takes one --seed", returncode=USAGE_ERROR)
        out: Path = options["out"] or settings.VAR_DIR / "sim" / "results.json"
        _make_folder(out)
        self.stdout.write(NOTICE)
        runs = [self._run(scenario, seed, options["db"]) for seed in seeds]
        out.write_text(json.dumps(runs, indent=2) + "\n")
        self.stdout.write(f"results in {out}")

    def _run(self, scenario: Scenario, seed: int, db: Path | None) -> dict[str, Any]:
        self.stdout.write(f"\nseed {seed}, {scenario.days} days of {scenario.requests} requests\n{HEADER}")
        try:
            with private_ledger(db) as folder:
                for day in simulate(scenario, seed, str(folder)):
                    self.stdout.write(day_line(day, day_table(days=1)[-1]))
                    for event in event_log():
                        if event.day == day:
                            self.stdout.write(f"       {event.kind:<12} {event.detail}")
                run = results(scenario, seed)
        except Refused as error:
            raise CommandError(f"--db: {error}", returncode=USAGE_ERROR) from error
        self.stdout.write(_summary(run))
        return run


def _make_folder(out: Path) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.is_dir():
            raise IsADirectoryError("is a folder")
    except OSError as error:
        raise CommandError(f"--out: cannot write {out} ({error.strerror or error})", returncode=USAGE_ERROR) from error


def _summary(run: dict[str, Any]) -> str:
    lines = [
        f"total: {run['requests']} requests, {format_usd(run['cost_nusd'], 2)} vs "
        f"{format_usd(run['all_teacher_nusd'], 2)} all-teacher -> saved {run['total_savings']:.0%} (simulation)"
    ]
    if run["bad_version_outcome"]:
        lines.append(f"corrupted v{run['inputs']['bad_deploy_version']}: {run['bad_version_outcome']}")
    return "\n".join(lines)
