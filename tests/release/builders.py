"""Building versions and their evidence directly in the ledger."""

from typing import Any

from common.clock import Clock
from ledger.models import StageTally, Student, Version

GOOD = {"precision": 1.0, "coverage": 0.8, "threshold": 0.7, "test_n": 50, "golden_n": 100}
TRAFFIC = {"live": 100, "canary": 10}


def build_version(student: Student, clock: Clock, state: str, number: int = 1, **fields: Any) -> Version:
    """Create a version in any state, as if it had been moved there."""
    values = {
        "traffic_pct": TRAFFIC.get(state, 0),
        "stage": 0 if state == "candidate" else 3,
        "evaluation": GOOD,
        **fields,
    }
    return Version.objects.create(
        student=student,
        number=number,
        adapter=f"student-v{number}",
        base_model="base",
        state=state,
        stage_since_at=clock.now(),
        created_at=clock.now(),
        **values,
    )


def audits(version: Version, n_agree: int, n_audits: int, task: str = "default") -> None:
    """Set the audits of a task in a version's current stage."""
    sums = {"n_served": n_audits, "n_audits": n_audits, "n_agree": n_agree}
    StageTally.objects.update_or_create(version=version, stage=version.stage, task=task, defaults=sums)


def shadowed(version: Version, n: int, serves: int, agree: int, task: str = "default", **live: int) -> None:
    """Set the shadow runs of a task in a version's current stage."""
    sums = {"n_shadow": n, "n_would_serve": serves, "n_shadow_agree": agree, **live}
    StageTally.objects.update_or_create(version=version, stage=version.stage, task=task, defaults=sums)


def place(version: Version) -> tuple[str, int, int]:
    """Where the ledger says a version stands: state, share and stage."""
    row = Version.objects.get(pk=version.pk)
    return row.state, row.traffic_pct, row.stage
