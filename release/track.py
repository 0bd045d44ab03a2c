"""Where a version stands on its way golden → shadow → canary → live. Pure."""

from dataclasses import dataclass

from release.policy import CANARY_STEPS

STOPS = ("golden", "shadow", *(f"canary {step}%" for step in CANARY_STEPS), "live")


@dataclass(frozen=True, slots=True)
class Stop:
    """One stop: ``done``, ``now`` or ``todo``; ``note`` says how far the evidence is."""

    label: str
    status: str
    note: str = ""


def release_track(state: str, traffic_pct: int, note: str = "") -> list[Stop]:
    """Return the stops of a version that is on its way or live; an empty list for one whose release has ended.

    A canary at a share that is no step stands at the last step it has reached.
    """
    if state not in ("candidate", "shadow", "canary", "live"):
        return []
    at = {"candidate": 0, "shadow": 1, "live": len(STOPS) - 1}.get(state)
    if at is None:
        at = 1 + max(1, sum(traffic_pct >= step for step in CANARY_STEPS))
    return [
        Stop(label, "done" if index < at else "now" if index == at else "todo", note if index == at else "")
        for index, label in enumerate(STOPS)
    ]
