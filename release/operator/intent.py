"""Who makes a manual change and why, checked at the door; and the audit row that every manual change leaves."""

import re
from dataclasses import dataclass
from typing import Any

from common.clock import Clock
from common.errors import Refused
from ledger.models import AdminAction
from privacy.redaction import redact

REASON_MIN, REASON_MAX = 3, 500
ACTOR_MAX = 80
_ACTOR = re.compile(r"((api|cli):)?[\w.@+-]+")


@dataclass(frozen=True, slots=True)
class Intent:
    """Who (an admin user's name, ``api:`` and a key's name, ``cli:`` and the OS user) and why, redacted when made.

    Raises ``Refused`` for a reason that is not one line of 3 to 500 characters and for a malformed actor, which it does
    not repeat: it might be a key.
    """

    actor: str
    reason: str

    def __post_init__(self) -> None:
        if len(self.actor) > ACTOR_MAX or not _ACTOR.fullmatch(self.actor):
            raise Refused("the actor must be a user name, or api: or cli: and a name")
        reason = self.reason.strip()
        if not REASON_MIN <= len(reason) <= REASON_MAX or not reason.isprintable():
            raise Refused(f"a reason is needed: one line of {REASON_MIN} to {REASON_MAX} characters")
        object.__setattr__(self, "reason", redact(reason)[0][:REASON_MAX])

    def __str__(self) -> str:
        return f"{self.reason} ({self.actor})"


@dataclass(frozen=True, slots=True)
class Change:
    """What a manual change did. Nothing is written when ``is_change`` is false: it already was so."""

    is_change: bool
    text: str


def record_action(
    action: str, target: str, intent: Intent, *, before: dict[str, Any], after: dict[str, Any], clock: Clock
) -> None:
    """Append the audit row of a manual change, in the caller's transaction."""
    AdminAction.objects.create(
        at=clock.now(),
        actor=intent.actor,
        action=action,
        target=target,
        reason=intent.reason,
        before=before,
        after=after,
    )
