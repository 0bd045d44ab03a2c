"""Moving a version by hand: the move, its audit row and its ``admin`` event in one transaction."""

from collections.abc import Callable

from django.db import transaction

from common.clock import Clock
from common.errors import Refused
from ledger.locks import lock_student
from ledger.models import Version
from ledger.switches import read_switches
from ledger.vocabulary import IN_FLIGHT, VersionState
from release.moves import Place, move
from release.operator.intent import Change, Intent, record_action
from release.operator.plans import plan_promotion, plan_retire, plan_rollback

Plan = Callable[[Version], Place]


def rollback(version_id: int, intent: Intent, *, clock: Clock) -> Change:
    """Roll a canary back; its traffic returns to the live version, or to the teacher."""
    return _change_place("rollback", version_id, plan_rollback, intent, clock)


def retire(version_id: int, intent: Intent, *, clock: Clock) -> Change:
    """Take a live version, a canary or a shadow out of service."""
    return _change_place("retire", version_id, plan_retire, intent, clock)


def promote(
    version_id: int, to: str, intent: Intent, *, clock: Clock, traffic_pct: int | None = None, force: bool = False
) -> Change:
    """Promote to ``canary`` (the next step, or ``traffic_pct``) or to ``live``, which retires the live version."""

    def plan(version: Version) -> Place:
        return plan_promotion(version, to, traffic_pct=traffic_pct, force=force, switches=read_switches())

    return _change_place("promote", version_id, plan, intent, clock)


def _change_place(action: str, version_id: int, plan: Plan, intent: Intent, clock: Clock) -> Change:
    with transaction.atomic():
        version = _locked_version(version_id)
        to = plan(version)
        place = Place(version.state, version.traffic_pct)
        if to == place:
            return Change(False, f"{version} is at {place} already")
        _refuse_second_in_flight(version, to)
        live = _displaced(version, to)
        before = _places(version, live)
        detail = f"{action} by hand, {place} -> {to}: {intent}"
        moved = move(version, to, kind="admin", detail=detail, clock=clock, live=live)
        if not moved.is_done:
            raise Refused(moved.detail)
        record_action(action, str(version), intent, before=before, after=_places(version, live), clock=clock)
    return Change(True, f"{version}: {place} -> {to}")


def _locked_version(version_id: int) -> Version:
    found = Version.objects.filter(pk=version_id).values_list("student_id", flat=True).first()
    if found is None:
        raise Refused("there is no such version")
    lock_student(found)
    return Version.objects.select_related("student").get(pk=version_id)


def _refuse_second_in_flight(version: Version, to: Place) -> None:
    if to.state not in IN_FLIGHT:
        return
    others = Version.objects.filter(student_id=version.student_id, state__in=IN_FLIGHT).exclude(pk=version.pk)
    other = others.first()
    if other is not None:
        raise Refused(f"v{other.number} is in {other.state}: wait for it, retire it or roll it back first")


def _displaced(version: Version, to: Place) -> Version | None:
    if to.state != VersionState.LIVE:
        return None
    return Version.objects.filter(student_id=version.student_id, state=VersionState.LIVE).first()


def _places(*versions: Version | None) -> dict[str, dict[str, object]]:
    ids = [version.pk for version in versions if version is not None]
    rows = Version.objects.filter(pk__in=ids).order_by("number")
    return {f"v{row.number}": {"state": row.state, "traffic_pct": row.traffic_pct, "stage": row.stage} for row in rows}
