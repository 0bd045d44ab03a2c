"""The demo's clock: the wall clock, moved back by as much as a small file says.

Every process of the demo's system uses it (``RATCHET_CLOCK=sim.demo.clock.demo_clock``) and only the replay writes the
file. At the end the file says zero, so the system that stays up runs on real time.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings

FILE_NAME = "clock_offset_s"


class OffsetClock:
    """Wall clock plus the offset in seconds that ``path`` holds; without the file, the wall clock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._offset = timedelta(0)

    def now(self) -> datetime:
        """Return the moved time in UTC; costs one ``stat`` unless the file has changed."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return datetime.now(UTC)
        seen = (status.st_mtime_ns, status.st_ino)
        if seen != self._seen:
            self._offset = timedelta(seconds=float(self._path.read_text()))
            self._seen = seen
        return datetime.now(UTC) + self._offset


def demo_clock() -> OffsetClock:
    """Build the clock of this process."""
    return OffsetClock(clock_file())


def clock_file() -> Path:
    """Return the path of the offset's file."""
    return Path(settings.VAR_DIR) / FILE_NAME


def move_to(path: Path, moment: datetime) -> None:
    """Make the clock show ``moment`` now. Replaces the file in one step, so that no reader sees half of it."""
    _write(path, (moment - datetime.now(UTC)).total_seconds())


def move_to_real_time(path: Path) -> None:
    """Make the clock show the real time."""
    _write(path, 0.0)


def _write(path: Path, offset_s: float) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(f"{offset_s:.6f}")
    fresh.replace(path)
