"""The one function that moves a version (INV-5, INV-29)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction

from common.claims import compare_and_set
from common.clock import Clock
from common.errors import Refused
from ledger.events import record_event
from ledger.locks import lock_student
from ledger.models import Version
from ledger.vocabulary import IN_FLIGHT, VersionState
from release.rules import LEGAL_MOVES


class Place(NamedTuple):
    """Where a version is to go."""

    state: str
    traffic_pct: int = 0

    def __str__(self) -> str:
        words = str(self.state).replace("_", " ")
        return f"{words} {self.traffic_pct}%" if self.state == VersionState.CANARY else words


@dataclass(frozen=True, slots=True)
class Moved:
    """Whether this caller made the move; ``detail`` is the event's text, or what had happened before."""

    is_done: bool
    detail: str


class _LostRace(Exception):
    pass


def move(
    seen: Version,
    to: Place,
    *,
    kind: str,
    detail: str,
    clock: Clock,
    live: Version | None = None,
    evaluation: Mapping[str, Any] | None = None,
) -> Moved:
    """Move a version from where the caller saw it (its state, traffic and stage) to ``to``, with its event.

    One transaction under the student's row lock: compare, set, start the next stage, append the event. A move to live
    retires the live version in it, which must be the one the caller saw as ``live``. A lost race changes and writes
    nothing and says so. ``evaluation`` replaces the version's in the same update. Raises ``Refused`` for a move that no
    rule makes, and for one that the database's own constraints refuse.
    """
    if to.state not in LEGAL_MOVES[seen.state]:
        raise Refused(f"v{seen.number} is {seen.state}: it cannot become {to.state}")
    text = f"v{seen.number}: {detail}"
    try:
        with transaction.atomic():
            lock_student(seen.student_id)
            if to.state == VersionState.LIVE:
                _make_room(seen, live, kind, clock)
            changes = {} if evaluation is None else {"evaluation": dict(evaluation)}
            _set(seen, to, kind, text, clock, **changes)
    except _LostRace as lost:
        return Moved(False, str(lost))
    except IntegrityError as error:
        raise Refused(_refusal(seen, to)) from error
    return Moved(True, text)


def _make_room(seen: Version, live: Version | None, kind: str, clock: Clock) -> None:
    """Retire the live version the caller saw. Retired before the other goes live: there is never more than one."""
    current = Version.objects.filter(student_id=seen.student_id, state=VersionState.LIVE).first()
    if (current and current.pk) != (live and live.pk):
        raise _LostRace(f"v{seen.number}: {f'v{current.number}' if current else 'no version'} is live by now")
    if live is not None:
        retired_kind = "live_retired" if kind == VersionState.LIVE else kind
        text = f"v{live.number}: retired, v{seen.number} takes over"
        _set(live, Place(VersionState.RETIRED), retired_kind, text, clock)


def _set(seen: Version, to: Place, kind: str, text: str, clock: Clock, **changes: Any) -> None:
    where_seen = Version.objects.filter(pk=seen.pk, state=seen.state, traffic_pct=seen.traffic_pct, stage=seen.stage)
    is_ours = compare_and_set(
        where_seen,
        state=to.state,
        traffic_pct=to.traffic_pct,
        stage=seen.stage + 1,
        stage_since_at=clock.now(),
        **changes,
    )
    if not is_ours:
        now = Version.objects.get(pk=seen.pk)
        raise _LostRace(f"v{seen.number}: moved meanwhile, now {Place(now.state, now.traffic_pct)}")
    record_event(kind, text, clock=clock, student_id=seen.student_id, version_id=seen.pk)


def _refusal(seen: Version, to: Place) -> str:
    others = Version.objects.filter(student_id=seen.student_id, state__in=IN_FLIGHT).exclude(pk=seen.pk)
    is_crowded = to.state in IN_FLIGHT and others.exists()
    reason = "another version is in flight" if is_crowded else "the database refuses it"
    return f"v{seen.number} cannot become {to}: {reason}"
