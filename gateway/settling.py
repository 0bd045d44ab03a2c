"""Settling drawn checks off the path: teacher call, comparison, storage, verdict and costs, exactly once (INV-28).

A check is claimed by compare-and-set and settled by deleting its row; whoever deletes it writes the verdict, in the
same transaction. Anything that dies in between leaves the row, and the sweep finds it.
"""

import logging
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken
from django.db import connections, transaction
from django.db.models import F, Q, QuerySet

from common.clock import Clock
from gateway.cascade.check import Verdict, check
from gateway.cascade.types import CascadePolicy
from gateway.drivers import drive_sync
from gateway.models import Models
from gateway.payload import CheckPayload
from gateway.permission import opt_out_at_settling
from gateway.recording import VERDICT_COLUMNS, apply_verdict
from gateway.settings import GatewaySettings
from gateway.snapshot import cascade_policy, student_route, version_route
from gateway.storing import example_of
from ledger.contributions import Contributions
from ledger.models import Check, Request, Student
from ledger.rows import ExampleRow
from ledger.switches import Switches
from ledger.writer.batch import add_contributions
from ledger.writer.examples import add_examples, erased_hashes
from ledger.writer.statements import Inserts

log = logging.getLogger("ratchet.checks")

HELD_TEXT_LOST_AFTER = timedelta(minutes=10)
BACKOFF_S = 5
LEASE_MARGIN_S = 15.0
LOST = Verdict(audit="lost", shadow="lost")


@dataclass(frozen=True, slots=True)
class SettlingContext:
    """What settling needs, built once per process."""

    settings: GatewaySettings
    models: Models
    clock: Clock
    cipher: Fernet
    using: str = "default"

    @property
    def longest_check_s(self) -> float:
        """The seconds that the calls of one check can take: an audit, a shadow's samples, an arbitration."""
        return 2 * self.settings.teacher.deadline_s + self.settings.student.deadline_s + LEASE_MARGIN_S

    @property
    def lease(self) -> timedelta:
        """How long a claim holds: no second worker may pay for calls that the first is still waiting for."""
        return timedelta(seconds=max(self.settings.check_lease_s, self.longest_check_s))


def settle_check(request_id: UUID, context: SettlingContext, held: CheckPayload | None = None) -> bool:
    """Settle one check; return whether this call settled it.

    ``held`` is the text of a request whose storage is opted out, which only the serving process has. A check whose
    teacher call fails is left for a later sweep until ``check_max_attempts``; then a failed audit is no audit. One
    whose every attempt crashed or died is settled as lost.
    """
    owed = _claim(request_id, context)
    if owed is None:
        return False
    if owed.payload is not None and owed.attempts >= context.settings.check_max_attempts:
        log.error("no attempt to settle the check of %s came to an end; it is settled as lost", owed.pk)
        return _finish(owed, LOST, None, context)
    payload = held or _opened(owed, context.cipher)
    if payload is None:
        return _finish(owed, LOST, None, context) if not owed.holder else False
    may_retry = held is None and owed.attempts + 1 < context.settings.check_max_attempts
    verdict = _run(owed, payload, context, may_retry)
    if verdict.audit == "failed" and may_retry:
        _release(owed, context)
        return False
    return _finish(owed, verdict, payload, context)


def sweep_checks(context: SettlingContext, limit: int = 500) -> list[UUID]:
    """Return unsettled checks that nobody works on, oldest first, for dispatch; settle hopeless ones as lost.

    A check whose text was held by a process that has not settled it within ten minutes is lost with that process.
    """
    free = _free(context)
    lost = free.filter(payload=None, created_at__lt=context.clock.now() - HELD_TEXT_LOST_AFTER)
    for owed in lost[:limit]:
        _finish(owed, LOST, None, context)
    return list(free.filter(payload__isnull=False).order_by("created_at").values_list("pk", flat=True)[:limit])


def _free(context: SettlingContext) -> QuerySet[Check]:
    """Return the checks that nobody works on."""
    is_free = Q(claimed_until_at=None) | Q(claimed_until_at__lt=context.clock.now())
    return Check.objects.using(context.using).filter(is_free)


def _claim(request_id: UUID, context: SettlingContext) -> Check | None:
    free = _free(context).filter(pk=request_id)
    owed = free.select_related("request__student", "shadow_version").first()
    if owed is None:
        return None
    until = context.clock.now() + context.lease
    won = free.filter(attempts=owed.attempts).update(attempts=F("attempts") + 1, claimed_until_at=until)
    return owed if won == 1 else None


def _release(owed: Check, context: SettlingContext) -> None:
    """Give a check back, to be tried again after a growing wait."""
    wait = timedelta(seconds=BACKOFF_S * 2**owed.attempts)
    Check.objects.using(context.using).filter(pk=owed.pk).update(claimed_until_at=context.clock.now() + wait)


def _opened(owed: Check, cipher: Fernet) -> CheckPayload | None:
    if owed.payload is None:
        return None
    try:
        return CheckPayload.open(bytes(owed.payload), cipher)
    except InvalidToken:
        log.error("the data key changed: check of %s cannot be read and is settled as lost", owed.pk)
        owed.holder = ""
        return None


def _run(owed: Check, payload: CheckPayload, context: SettlingContext, may_retry: bool) -> Verdict:
    student: Student = owed.request.student
    threshold = context.settings.confidence_threshold
    shadow = version_route(owed.shadow_version, threshold) if owed.shadow_version else None
    policy: CascadePolicy = cascade_policy(context.settings, Switches())
    owed_input = payload.check_input(student_route(student, (), threshold), owed.wants_audit, shadow)
    return drive_sync(check(owed_input, policy, may_retry=may_retry), context.models.ask_sync)


def _finish(owed: Check, verdict: Verdict, payload: CheckPayload | None, context: SettlingContext) -> bool:
    with transaction.atomic(using=context.using), connections[context.using].cursor() as cursor:
        if not Check.objects.using(context.using).filter(pk=owed.pk).delete()[0]:
            return False
        row = Request.objects.using(context.using).select_for_update().get(pk=owed.pk)
        sums = Contributions()
        sums.add(row, -1)
        apply_verdict(row, verdict)
        inserts = Inserts(cursor.db.vendor)
        for example in _examples(row, verdict, payload, context):
            if not erased_hashes(cursor, [example.hash]):
                add_examples(inserts, [example])
                row.stored = True
        row.save(using=context.using, update_fields=VERDICT_COLUMNS)
        sums.add(row)
        add_contributions(inserts, sums)
        inserts.run(cursor)
    return True


def _examples(
    row: Request, verdict: Verdict, payload: CheckPayload | None, context: SettlingContext
) -> list[ExampleRow]:
    """Return what may be stored, none or one; an opt-out that came after the request goes into its row."""
    if payload is None or row.store_opt_out:
        return []
    settings = context.settings
    student = student_route(row.student, (), settings.confidence_threshold)
    request = payload.check_input(student, False, None).request
    found = example_of(request, verdict.teacher, settings, client=row.client, end_user=row.end_user, at=row.at)
    if found is None:
        return []
    row.store_opt_out = opt_out_at_settling(row, payload.end_users, settings, context.using)
    return [] if row.store_opt_out else [found]
