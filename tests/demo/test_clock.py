"""The demo's clock follows its file, and every process sees a move."""

from datetime import UTC, datetime, timedelta

import pytest

from common.clock import clock_from_path
from sim.demo.clock import OffsetClock, clock_file, move_to, move_to_real_time

NEAR = timedelta(seconds=5)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "clock"


def near(clock, moment):
    return abs(clock.now() - moment) < NEAR


def test_without_a_file_it_is_the_wall_clock(path):
    assert near(OffsetClock(path), datetime.now(UTC))


def test_it_shows_the_moment_it_was_moved_to_and_goes_on_from_there(path):
    clock = OffsetClock(path)
    for days in (8, 3, 1):
        moment = datetime.now(UTC) - timedelta(days=days)
        move_to(path, moment)
        first = clock.now()
        assert moment <= first < moment + NEAR
        assert clock.now() > first


def test_a_clock_that_is_opened_later_shows_the_same_time(path):
    moment = datetime(2026, 1, 2, 23, tzinfo=UTC)
    clock = OffsetClock(path)
    move_to(path, moment)
    assert near(clock, moment)
    assert near(OffsetClock(path), moment)


def test_it_ends_on_real_time(path):
    move_to(path, datetime(2026, 1, 2, tzinfo=UTC))
    clock = OffsetClock(path)
    clock.now()
    move_to_real_time(path)
    assert near(clock, datetime.now(UTC))


def test_the_settings_name_it_by_its_dotted_path(settings, tmp_path):
    settings.VAR_DIR = tmp_path
    move_to(clock_file(), datetime(2026, 1, 2, tzinfo=UTC))
    assert near(clock_from_path("sim.demo.clock.demo_clock"), datetime(2026, 1, 2, tzinfo=UTC))
