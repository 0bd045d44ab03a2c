"""``manage.py demo``: days of real messages through the real endpoint, then the system stays up."""

import io
import json
import os
import random
import signal
import sys
import time
from argparse import ArgumentParser, BooleanOptionalAction
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from common.clock import clock_from_path
from ledger.daytable import day_table
from sim.demo import dataset, goodbye, launch, summary, system, table
from sim.demo.client import RequestFailed
from sim.demo.clock import clock_file, move_to
from sim.demo.environment import INSIDE, NOTICE_LABELS, Services
from sim.demo.replay import Replay, ReplayedDay, ReplayFailed

DAYS = 8
REQUESTS = 1300
SEED = 7
FAILURES = (
    dataset.DatasetError,
    launch.LaunchFailed,
    ReplayFailed,
    RequestFailed,
    system.SystemFailed,
)


class Command(BaseCommand):
    """Starts the system in a folder of its own and replays the data sets against it."""

    help = "Replay days of public messages (TREC questions, SMS spam) through the real endpoint, then stay up."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the size of the replay and where it runs."""
        parser.add_argument("--serve", action=BooleanOptionalAction, default=True, help="stay up after the replay")
        parser.add_argument("--days", type=int, default=DAYS, help=f"days to replay (default {DAYS})")
        parser.add_argument("--requests", type=int, default=REQUESTS, help=f"requests a day (default {REQUESTS})")
        parser.add_argument("--seed", type=int, default=SEED, help=f"order of the messages (default {SEED})")
        parser.add_argument("--port", type=int, default=8000, help="port of the system (default 8000)")
        parser.add_argument("--dir", type=Path, default=settings.BASE_DIR / "var" / "demo", help="folder of its state")
        parser.add_argument("--services", action="store_true", help="PostgreSQL and Redis, 2 gateways, 2 workers")
        parser.add_argument("--teacher-latency-ms", type=float, default=0.0, help="latency of the label teacher")

    def handle(self, *args: Any, **options: Any) -> None:
        """Start again inside the demo's environment, or run the demo when already there."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        try:
            if os.environ.get(INSIDE):
                self._run(options)
            else:
                self._launch(options)
        except FAILURES as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self._say("stopped")

    def _launch(self, options: dict[str, Any]) -> None:
        dataset.load()
        launch.require_free_port(options["port"])
        services = Services()
        if options["services"]:
            services = launch.fresh_services(os.environ.get("DATABASE_URL", ""), os.environ.get("REDIS_URL", ""))
        folder = options["dir"].resolve()
        launch.fresh_folder(folder)
        launch.start_again(folder, services)

    def _run(self, options: dict[str, Any]) -> None:
        days = dataset.schedule(dataset.load(), options["days"], options["requests"], random.Random(options["seed"]))
        self._say(settings.RATCHET_NOTICE)
        self._say(f"{options['days']} days of {options['requests']} requests; state and logs: {settings.VAR_DIR}")
        today = datetime.now(UTC).date()
        move_to(clock_file(), datetime.combine(today - timedelta(days=len(days)), datetime.min.time(), UTC))
        call_command("setup", stdout=io.StringIO())
        system.prepare(clock_from_path(settings.RATCHET_CLOCK))
        url = f"http://127.0.0.1:{options['port']}"
        with system.running(self._commands(options), Path(settings.VAR_DIR), settings.BASE_DIR) as processes:
            system.wait_until_up(f"{url}/v1/models", processes)
            broken = self._replay(Replay(f"{url}/v1/", clock_file(), days, today))
            if options["serve"]:
                self._stay_up(url, processes)
        if broken and not options["serve"]:
            raise CommandError("not as promised")

    def _commands(self, options: dict[str, Any]) -> dict[str, list[str]]:
        n = 2 if options["services"] else 1
        commands = {"serve": system.serve_command(options["port"], gateways=n, workers=n)}
        if settings.RATCHET_NOTICE == NOTICE_LABELS:
            port = int(os.environ[launch.TEACHER_PORT])
            commands = {"teacher": system.teacher_command(port, options["teacher_latency_ms"])} | commands
        return commands

    def _replay(self, replay: Replay) -> list[str]:
        """Replay, print the table as it grows, write the summary; return what was promised and not met."""
        started = time.monotonic()
        self._say(table.HEADER)
        days = replay.run(self._report)
        result = summary.summarise(days, settings.RATCHET_NOTICE, time.monotonic() - started)
        path = Path(settings.VAR_DIR) / "summary.json"
        path.write_text(json.dumps(result, indent=2) + "\n")
        self._say(table.LEGEND)
        self._say(table.totals(result))
        broken = summary.broken_promises(result)
        for line in broken or ["every number the demo promises was met; the recount from the rows matches exactly"]:
            self._say(("NOT MET: " if broken else "") + line)
        self._say(f"summary: {path}")
        return broken

    def _report(self, day: ReplayedDay) -> None:
        row = next(row for row in day_table(days=None) if row.on == day.on)
        self._say(table.day_line(day.number, row, day.outcomes, table.moves_of(day.on)))

    def _stay_up(self, url: str, processes: list[system.Process]) -> None:
        texts = goodbye.example_questions(f"{url}/v1/")
        user, password = "admin", os.environ["DJANGO_SUPERUSER_PASSWORD"]
        self._say(f"\n{settings.RATCHET_NOTICE}\n")
        self._say(f"admin     {url}/admin/   user {user}, password {password}")
        self._say(f"OpenAI    {url}/v1   ({texts[0]!r} goes to the student, {texts[1]!r} to the teacher)\n")
        self._say(goodbye.snippet(f"{url}/v1", texts))
        self._say("It stays up; Ctrl-C stops it.")
        while True:
            for process in processes:
                process.check()
            time.sleep(1)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
