"""Which manual moves are allowed, and where they lead; pages ask before they offer one, services before they act.

Every function returns the place the version would go to, and raises ``Refused`` with a text for the operator.
"""

from common.errors import Refused
from ledger.models import Version
from ledger.switches import Switches
from ledger.vocabulary import IN_FLIGHT, VersionState
from release.moves import Place
from release.policy import CANARY_STEPS
from release.proportions import number

PROMOTABLE = (VersionState.CANARY, VersionState.LIVE)
_NEEDS_FORCE = (VersionState.CANDIDATE, VersionState.REJECTED, VersionState.RETIRED, VersionState.ROLLED_BACK)


def plan_rollback(version: Version) -> Place:
    """A canary is rolled back; anything else has a better move, which the refusal names."""
    if version.state == VersionState.CANARY:
        return Place(VersionState.ROLLED_BACK)
    if version.state in (VersionState.LIVE, VersionState.SHADOW):
        raise Refused(f"v{version.number} is {version.state}, and only a canary is rolled back: retire it instead")
    raise Refused(f"v{version.number} is {_words(version.state)}: there is nothing to roll back")


def plan_retire(version: Version) -> Place:
    """A live version, a canary or a shadow is retired."""
    if version.state in (VersionState.LIVE, *IN_FLIGHT):
        return Place(VersionState.RETIRED)
    raise Refused(f"v{version.number} is {_words(version.state)}: it serves nothing that could be retired")


def plan_promotion(
    version: Version, to: str, *, traffic_pct: int | None = None, force: bool = False, switches: Switches
) -> Place:
    """To a canary step (the next one, unless a share of 1 to 99 is given), or from canary to live.

    ``force`` also brings back a version the gate rejected, rolled back, retired or has not seen, and starts a canary
    while audits are off. A version without a golden evaluation is never promoted.
    """
    if to not in PROMOTABLE:
        raise Refused(f"a version is promoted to {' or '.join(PROMOTABLE)}")
    if version.state == VersionState.LIVE:
        raise Refused(f"v{version.number} is live already")
    if number(version.evaluation, "precision") is None:
        raise Refused(f"v{version.number} has no golden evaluation, and is never promoted without one")
    if to == VersionState.LIVE:
        return _to_live(version, traffic_pct)
    return _to_canary(version, traffic_pct, force, switches)


def _to_live(version: Version, traffic_pct: int | None) -> Place:
    if version.state != VersionState.CANARY:
        raise Refused(f"v{version.number} is {_words(version.state)}: only a canary becomes live")
    if traffic_pct is not None:
        raise Refused("a live version takes all traffic: leave the share out")
    return Place(VersionState.LIVE, 100)


def _to_canary(version: Version, traffic_pct: int | None, force: bool, switches: Switches) -> Place:
    if version.state in _NEEDS_FORCE and not force:
        raise Refused(f"v{version.number} is {_words(version.state)}: only force makes it a canary")
    if version.state != VersionState.CANARY and switches.audit_rate == 0 and not force:
        raise Refused("audits are off (audit_rate 0), so nothing would hold a canary to account: only force starts one")
    share = _next_step(version) if traffic_pct is None else traffic_pct
    if not 1 <= share <= 99:
        raise Refused("a canary's share is 1 to 99")
    return Place(VersionState.CANARY, share)


def _next_step(version: Version) -> int:
    steps = [step for step in CANARY_STEPS if step > version.traffic_pct]
    if not steps:
        raise Refused(f"v{version.number} is at its last canary step, {version.traffic_pct}%: promote it to live")
    return steps[0]


def _words(state: str) -> str:
    return str(state).replace("_", " ")
