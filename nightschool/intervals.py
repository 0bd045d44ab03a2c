"""The compute intervals of training jobs: when machines really ran for a version."""

from datetime import datetime

from ledger.models import ComputeInterval, Version

_KIND, _SOURCE = "training_job", "night"


def start_training(version: Version, *, at: datetime) -> None:
    """Open an interval."""
    ComputeInterval.objects.create(kind=_KIND, version=version, started_at=at, source=_SOURCE)


def end_training(version: Version, *, at: datetime) -> None:
    """Close the version's open interval, if it has one; it never ends before it started."""
    for interval in ComputeInterval.objects.filter(version=version, kind=_KIND, ended_at=None):
        interval.ended_at = max(at, interval.started_at)
        interval.save(update_fields=["ended_at"])
