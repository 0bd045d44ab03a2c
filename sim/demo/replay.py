"""The replay: day after day of messages through the real endpoint, each followed by a night that beat starts."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path

from django.db import close_old_connections
from tqdm import tqdm

from ledger.models import Check, Night
from ledger.vocabulary import NIGHT_STEPS
from sim.demo.client import Outcome, post_all, session
from sim.demo.clock import move_to, move_to_real_time
from sim.demo.dataset import DemoMessage

FIRST_MESSAGE_AT = time_of_day(6, 0)
NIGHT_AT = time_of_day(23, 0)
HOURS_A_DAY = 16
POLL_S = 0.05
CHECKS_WAIT_S = 120.0
NIGHT_WAIT_S = 600.0


class ReplayFailed(Exception):
    """The system did not do in time what the demo waits for; the text says what."""


@dataclass(frozen=True, slots=True)
class ReplayedDay:
    """One day of the replay: its UTC date, what became of each message, and how its night ended."""

    number: int
    on: date
    outcomes: Sequence[Outcome]
    night: str


class Replay:
    """Posts days of messages against ``base_url`` while it moves the demo's clock; the clock ends on real time."""

    def __init__(self, base_url: str, clock_path: Path, days: Sequence[Sequence[DemoMessage]], today: date) -> None:
        self._base_url = base_url
        self._clock_path = clock_path
        self._days = days
        self._first_on = today - timedelta(days=len(days))

    def run(self, report: Callable[[ReplayedDay], None]) -> list[ReplayedDay]:
        """Replay every day; ``report`` is called after each one's night. The last day is yesterday."""
        replayed = []
        try:
            for index, messages in enumerate(self._days):
                day = self._run_day(index + 1, self._first_on + timedelta(days=index), messages)
                report(day)
                replayed.append(day)
        finally:
            move_to_real_time(self._clock_path)
        return replayed

    def _run_day(self, number: int, on: date, messages: Sequence[DemoMessage]) -> ReplayedDay:
        outcomes = asyncio.run(self._post(number, on, messages))
        _wait_for_checks(created_before=_at(on, NIGHT_AT))
        move_to(self._clock_path, _at(on, NIGHT_AT))
        return ReplayedDay(number, on, outcomes, self._night(on))

    async def _post(self, number: int, on: date, messages: Sequence[DemoMessage]) -> list[Outcome]:
        """Post the messages hour by hour. In real life a check takes seconds and an hour 3600 of them, so the checks of
        one hour are settled before the hour after the next begins."""
        outcomes: list[Outcome] = []
        title = f"day {number} of {len(self._days)}, {on}"
        previous = opened = _at(on, FIRST_MESSAGE_AT)
        with tqdm(total=len(messages), desc=title, unit=" requests", leave=False, disable=None) as bar:
            async with session(self._base_url) as http:
                for hour, part in enumerate(_hours(messages)):
                    now = opened + timedelta(hours=hour)
                    move_to(self._clock_path, now)
                    await asyncio.to_thread(_wait_for_checks, created_before=previous)
                    outcomes += await post_all(http, part, lambda: bar.update(1))
                    previous = now
        return outcomes

    def _night(self, on: date) -> str:
        """Wait for the night that beat starts by itself, and return its outcome."""
        with tqdm(total=0, bar_format="{desc}", leave=False, disable=None) as line:

            def is_over() -> bool:
                night = Night.objects.filter(on=on, is_scheduled=True).first()
                if night is not None:
                    line.set_description_str(f"night of {on}: {night.state} {night.done}/{night.total} {night.detail}")
                return night is not None and night.state not in NIGHT_STEPS

            wait_for(is_over, NIGHT_WAIT_S, lambda: f"the night of {on} to end")
        return Night.objects.get(on=on, is_scheduled=True).outcome


def _hours(messages: Sequence[DemoMessage]) -> Iterator[Sequence[DemoMessage]]:
    for hour in range(HOURS_A_DAY):
        yield messages[hour * len(messages) // HOURS_A_DAY : (hour + 1) * len(messages) // HOURS_A_DAY]


def _wait_for_checks(created_before: datetime) -> None:
    owed = Check.objects.filter(created_at__lt=created_before)
    wait_for(lambda: not owed.exists(), CHECKS_WAIT_S, lambda: f"{owed.count()} checks to settle")


def _at(on: date, time: time_of_day) -> datetime:
    return datetime.combine(on, time, UTC)


def wait_for(is_reached: Callable[[], bool], timeout_s: float, what: Callable[[], str]) -> None:
    """Poll until ``is_reached``; raises ``ReplayFailed`` naming ``what`` after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while not is_reached():
        if time.monotonic() > deadline:
            raise ReplayFailed(f"waited {timeout_s:g} s for {what()}")
        time.sleep(POLL_S)
        close_old_connections()
