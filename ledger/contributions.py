"""What one request adds to the sums: the single definition behind the writer, the settling of checks and the recount.

A settled check applies ``contributions(after) - contributions(before)``, so checking off the path and checking inline
leave identical sums.
"""

from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar

_K = TypeVar("_K")


class RequestLike(Protocol):
    """The columns the sums are made of (a ``RequestRow`` or a ``Request``)."""

    at: datetime
    student_id: int
    task: str
    client: str
    route: str
    served_by: str
    version_id: int | None
    stage: int | None
    escalated: bool
    audit: str
    shadow: str
    shadow_version_id: int | None
    shadow_stage: int | None
    cost_nusd: int
    student_cost_nusd: int
    teacher_cost_nusd: int
    baseline_nusd: int
    student_in_tokens: int
    student_out_tokens: int
    teacher_in_tokens: int
    teacher_out_tokens: int
    wall_ms: float
    stored: bool


class RollupKey(NamedTuple):
    """The key of an hourly rollup."""

    hour_at: datetime
    student_id: int
    task: str
    client: str
    route: str


class TallyKey(NamedTuple):
    """The key of a stage tally."""

    version_id: int
    stage: int
    task: str


ROLLUP_SUMS = (
    "n_requests", "n_student_served", "n_escalated", "n_audited", "n_audit_agree", "n_stored", "cost_nusd",
    "student_cost_nusd", "teacher_cost_nusd", "baseline_nusd", "student_in_tokens", "student_out_tokens",
    "teacher_in_tokens", "teacher_out_tokens", "wall_us",
)  # fmt: skip
TALLY_SUMS = (
    "n_served", "n_audits", "n_agree", "n_shadow", "n_would_serve", "n_shadow_agree", "n_unarbitrated",
    "n_live_answered", "n_live_served",
)  # fmt: skip

_AUDIT_VERDICTS = ("agree", "disagree")
_WOULD_SERVE = ("agree", "disagree", "unarbitrated")
_SHADOW_VERDICTS = (*_WOULD_SERVE, "escalate")
# A request the live student never answered says nothing about its coverage.
_LIVE_DID_NOT_ANSWER = ("student_error", "student_breaker")
# Confident but short of n agreeing samples: the live student was confident, so it counts as served (FR-1.14).
_LIVE_SERVED_ROUTES = ("student", "n_choices")


def rollup_key(row: RequestLike) -> RollupKey:
    """Return the hourly rollup that ``row`` is part of."""
    hour = row.at.replace(minute=0, second=0, microsecond=0)
    return RollupKey(hour, row.student_id, row.task, row.client, row.route)


def rollup_sums(row: RequestLike) -> tuple[int, ...]:
    """Return what ``row`` adds to its rollup, in the order of ``ROLLUP_SUMS``."""
    return (
        1,
        int(row.served_by == "student"),
        int(row.escalated),
        int(row.audit in _AUDIT_VERDICTS),
        int(row.audit == "agree"),
        int(row.stored),
        row.cost_nusd,
        row.student_cost_nusd,
        row.teacher_cost_nusd,
        row.baseline_nusd,
        row.student_in_tokens,
        row.student_out_tokens,
        row.teacher_in_tokens,
        row.teacher_out_tokens,
        round(row.wall_ms * 1000),
    )


def tally_sums(row: RequestLike) -> list[tuple[TallyKey, tuple[int, ...]]]:
    """Return what ``row`` adds to the evidence of the version it tried and of the version that shadowed it."""
    sums: list[tuple[TallyKey, tuple[int, ...]]] = []
    if row.version_id is not None and row.stage is not None and row.served_by == "student" and not row.escalated:
        audited = row.audit in _AUDIT_VERDICTS
        own = (1, int(audited), int(row.audit == "agree"), 0, 0, 0, 0, 0, 0)
        sums.append((TallyKey(row.version_id, row.stage, row.task), own))
    if row.shadow_version_id is not None and row.shadow_stage is not None and row.shadow in _SHADOW_VERDICTS:
        answered = row.version_id is not None and row.route not in _LIVE_DID_NOT_ANSWER
        shadow = (
            0,
            0,
            0,
            1,
            int(row.shadow in _WOULD_SERVE),
            int(row.shadow == "agree"),
            int(row.shadow == "unarbitrated"),
            int(answered),
            int(answered and row.route in _LIVE_SERVED_ROUTES),
        )
        sums.append((TallyKey(row.shadow_version_id, row.shadow_stage, row.task), shadow))
    return sums


class Contributions:
    """Summed contributions of many requests, keyed and ready to upsert in a fixed order."""

    def __init__(self) -> None:
        self.rollups: dict[RollupKey, list[int]] = {}
        self.tallies: dict[TallyKey, list[int]] = {}

    def add(self, row: RequestLike, sign: int = 1) -> None:
        """Add (or with ``sign=-1`` take away) one request."""
        _accumulate(self.rollups, rollup_key(row), rollup_sums(row), sign)
        for key, sums in tally_sums(row):
            _accumulate(self.tallies, key, sums, sign)


def _accumulate(into: dict[_K, list[int]], key: _K, sums: tuple[int, ...], sign: int) -> None:
    totals = into.get(key)
    if totals is None:
        into[key] = [sign * value for value in sums]
    else:
        for index, value in enumerate(sums):
            totals[index] += sign * value
