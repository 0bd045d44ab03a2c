"""Flipping a runtime switch by hand; every process honours it within a tenth of a second."""

from django.db import transaction

from common.clock import Clock
from common.errors import Refused
from ledger.events import record_event
from ledger.locks import lock_all_students
from ledger.models import RuntimeFlag, Version
from ledger.switches import DEFAULT, OFF, ON, parse_rate
from ledger.vocabulary import Flag, VersionState
from release.operator.intent import Change, Intent, record_action


def set_flag(name: str, value: str, intent: Intent, *, clock: Clock, force: bool = False) -> Change:
    """Set a runtime switch: ``on`` or ``off``; for ``audit_rate`` a number from 0 to 1, or ``default``.

    An audit rate of 0 while a canary is in flight needs ``force``: the canary could neither advance nor roll back.
    """
    wanted = flag_text(name, value)
    with transaction.atomic():
        lock_all_students()
        row = RuntimeFlag.objects.filter(pk=name).first()
        current = row.value if row else _default(name)
        if current == wanted:
            return Change(False, f"{name} is {wanted} already")
        if name == Flag.AUDIT_RATE and parse_rate(wanted) == 0 and not force:
            _refuse_blind_canary()
        if wanted == DEFAULT:
            RuntimeFlag.objects.filter(pk=name).delete()
        else:
            written = {"value": wanted, "updated_at": clock.now(), "updated_by": intent.actor}
            RuntimeFlag.objects.update_or_create(pk=name, defaults=written)
        record_action("set_flag", name, intent, before={"value": current}, after={"value": wanted}, clock=clock)
        record_event("admin", f"{name}: {current} -> {wanted}: {intent}", clock=clock)
    return Change(True, f"{name}: {current} -> {wanted}")


def flag_text(name: str, value: str) -> str:
    """Return a switch's value as it is stored; raises ``Refused`` for an unknown name or value."""
    if name not in Flag.values:
        raise Refused(f"there is no such switch; there are {', '.join(Flag.values)}")
    if name != Flag.AUDIT_RATE:
        if value not in (ON, OFF):
            raise Refused(f"{name} must be {ON} or {OFF}")
        return value
    if value == DEFAULT:
        return DEFAULT
    rate = parse_rate(value)
    if rate is None:
        raise Refused(f"{name} must be a number from 0 to 1, or {DEFAULT}")
    return f"{rate:.6g}"


def _default(name: str) -> str:
    return DEFAULT if name == Flag.AUDIT_RATE else OFF


def _refuse_blind_canary() -> None:
    canary = Version.objects.filter(state=VersionState.CANARY).select_related("student").first()
    if canary is not None:
        raise Refused(
            f"{canary} is a canary: without audits it could neither advance nor be rolled back (or use force)"
        )
