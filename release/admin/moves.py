"""The confirmed actions on versions and tasks: what each will do, whether it is legal now, and the service it calls."""

from collections.abc import Callable
from typing import Any

from common.confirmation import ConfirmedAction, Done
from common.errors import Refused
from ledger.models import Task, Version
from ledger.switches import read_switches
from ledger.vocabulary import IN_FLIGHT, VersionState
from release.admin.services import clock
from release.evidence import ENDED
from release.moves import Place
from release.operator import (
    Intent,
    pin_task,
    plan_promotion,
    plan_retire,
    plan_rollback,
    promote,
    retire,
    rollback,
    unpin_task,
)

OPERATE_VERSION, PIN_TASK = "ledger.operate_version", "ledger.pin_task"
Plan = Callable[[Version], Place]


def _plan_step(version: Version) -> Place:
    if version.state in ENDED:
        raise Refused(f"v{version.number}'s release has ended: only bringing it back makes it a canary again")
    return plan_promotion(version, VersionState.CANARY, switches=read_switches())


def _plan_live(version: Version) -> Place:
    return plan_promotion(version, VersionState.LIVE, switches=read_switches())


def _plan_return(version: Version) -> Place:
    if version.state not in ENDED:
        raise Refused(f"v{version.number} is {version.state}: its release has not ended")
    other = version.student.versions.filter(state__in=IN_FLIGHT).first()
    if other is not None:
        raise Refused(f"v{other.number} is in flight ({other.state}): retire it or roll it back first")
    return plan_promotion(version, VersionState.CANARY, force=True, switches=read_switches())


def _refusal_of(plan: Plan) -> Callable[[Version], str | None]:
    def refusal(version: Version) -> str | None:
        try:
            plan(version)
        except Refused as refused:
            return str(refused)
        return None

    return refusal


def _rest(version: Version) -> str:
    live = version.student.versions.filter(state=VersionState.LIVE).exclude(pk=version.pk).first()
    return f"v{live.number}, which is live" if live else "the teacher: no other version is live"


def _now(version: Version) -> str:
    return f"{version} is {Place(version.state, version.traffic_pct)} now, stage {version.stage}."


def _rollback_effect(version: Version) -> list[str]:
    return [_now(version), f"It becomes rolled back; its {version.traffic_pct}% of traffic goes to {_rest(version)}."]


def _retire_effect(version: Version) -> list[str]:
    traffic = {
        VersionState.LIVE: "All requests go to the teacher until another version is promoted.",
        VersionState.CANARY: f"Its {version.traffic_pct}% of traffic goes to {_rest(version)}.",
    }.get(VersionState(version.state), "It takes no traffic, so nobody notices; its shadow runs stop.")
    return [_now(version), "It becomes retired.", traffic]


def _step_effect(version: Version) -> list[str]:
    return [_now(version), *_canary_effect(version, _plan_step, "before its evidence is complete")]


def _return_effect(version: Version) -> list[str]:
    return [_now(version), *_canary_effect(version, _plan_return, "although its release had ended")]


def _canary_effect(version: Version, plan: Plan, how: str) -> list[str]:
    try:
        share = plan(version).traffic_pct
    except Refused:
        return []
    return [
        f"It answers {share}% of the requests as a canary, {how}; the rest goes to {_rest(version)}.",
        "A new stage begins: its audits are counted from zero, and the gate rolls it back on strong evidence.",
    ]


def _live_effect(version: Version) -> list[str]:
    live = version.student.versions.filter(state=VersionState.LIVE).first()
    retired = f"v{live.number} is retired in the same transaction." if live else "No version is live now."
    return [_now(version), f"It becomes live and takes all traffic. {retired}"]


def _rollback(version: Version, actor: str, reason: str) -> Done:
    return Done(rollback(version.pk, Intent(actor, reason), clock=clock()).text)


def _retire(version: Version, actor: str, reason: str) -> Done:
    return Done(retire(version.pk, Intent(actor, reason), clock=clock()).text)


def _step(version: Version, actor: str, reason: str) -> Done:
    return Done(promote(version.pk, VersionState.CANARY, Intent(actor, reason), clock=clock()).text)


def _return(version: Version, actor: str, reason: str) -> Done:
    return Done(promote(version.pk, VersionState.CANARY, Intent(actor, reason), clock=clock(), force=True).text)


def _live(version: Version, actor: str, reason: str) -> Done:
    return Done(promote(version.pk, VersionState.LIVE, Intent(actor, reason), clock=clock()).text)


def _action(name: str, label: str, plan: Plan, icon: str, **options: Any) -> ConfirmedAction:
    return ConfirmedAction(name, label, OPERATE_VERSION, refusal=_refusal_of(plan), icon=icon, **options)


VERSION_ACTIONS = [
    _action(
        "rollback", "Roll back", plan_rollback, "undo", effect=_rollback_effect, run=_rollback, is_dangerous=True
    ),
    _action("retire", "Retire", plan_retire, "archive", effect=_retire_effect, run=_retire, is_dangerous=True),
    _action("promote", "Promote one canary step", _plan_step, "stairs", effect=_step_effect, run=_step),
    _action("promote-live", "Promote to live", _plan_live, "rocket_launch", effect=_live_effect, run=_live),
    _action(
        "bring-back", "Bring back as a canary", _plan_return, "restore",
        effect=_return_effect, run=_return, is_dangerous=True,
    ),
]  # fmt: skip


def _pin(task: Task, actor: str, reason: str) -> Done:
    return Done(pin_task(task.name, Intent(actor, reason), clock=clock()).text)


def _unpin(task: Task, actor: str, reason: str) -> Done:
    return Done(unpin_task(task.name, Intent(actor, reason), clock=clock()).text)


def _pin_refusal(task: Task) -> str | None:
    return "it is pinned already" if task.is_runtime_pinned or task.spec.get("pinned") else None


def _unpin_refusal(task: Task) -> str | None:
    if task.spec.get("pinned"):
        return "it is pinned by its spec: change the spec instead"
    return None if task.is_runtime_pinned else "it is not pinned"


def _pin_effect(task: Task) -> list[str]:
    return [
        f"The teacher alone answers every request of {task}, from the next request on (within 100 ms).",
        "Nothing of it is stored as an example, and nights leave its rows out.",
    ]


def _unpin_effect(task: Task) -> list[str]:
    return [f"The student may answer requests of {task} again, where its threshold allows; answers are stored."]


TASK_ACTIONS = [
    ConfirmedAction(
        "pin", "Pin to the teacher", PIN_TASK, _pin_effect, _pin, refusal=_pin_refusal, icon="keep", is_dangerous=True
    ),
    ConfirmedAction("unpin", "Unpin", PIN_TASK, _unpin_effect, _unpin, refusal=_unpin_refusal, icon="keep_off"),
]
