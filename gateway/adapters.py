"""Healing endpoints: every replica of a student has the adapters that serving needs.

An endpoint that restarts forgets the adapters loaded at run time; the next reconciliation loads them again, and until
then the teacher answers.
"""

from datetime import timedelta

from common.clock import Clock
from gateway.settings import GatewaySettings
from gateway.snapshot import ROUTED_STATES
from gateway.upstream.adapters import Reconciled, reconcile
from ledger.events import record_event
from ledger.models import Event, Student, Version
from ledger.vocabulary import VersionState

ADAPTER_FORMAT = "lora"
QUIET = timedelta(hours=1)
"""An endpoint that keeps refusing an adapter is one line of the release log an hour, not one a sweep."""
UNUSED_STATES = [VersionState.RETIRED, VersionState.ROLLED_BACK, VersionState.REJECTED]


def reconcile_adapters(settings: GatewaySettings, clock: Clock) -> list[Reconciled]:
    """Load what is missing and unload what is retired at every endpoint of every student; return what was done."""
    return [done for student in Student.objects.all() for done in _reconcile_student(student, settings, clock)]


def _reconcile_student(student: Student, settings: GatewaySettings, clock: Clock) -> list[Reconciled]:
    endpoints = [url for url in student.endpoints or [settings.student.base_url] if url]
    adapters = Version.objects.filter(student=student, artefact__format=ADAPTER_FORMAT)
    routed = {version.adapter: version for version in adapters.filter(state__in=ROUTED_STATES)}
    if not endpoints or not routed:
        return []
    retired = set(adapters.filter(state__in=UNUSED_STATES).values_list("adapter", flat=True))
    paths = {name: f"{version.artefact['root']}/{name}" for name, version in routed.items()}
    results = reconcile(endpoints, paths, retired, settings.student.api_key)
    for number, done in enumerate(results, 1):
        for name in done.loaded:
            _record("adapter_reloaded", f"{name} at endpoint {number}", routed[name], clock)
        for name in done.failed.keys() & routed.keys():
            detail = f"{name} at endpoint {number}: {done.failed[name]}"
            _record("adapter_reload_failed", detail, routed[name], clock, at_most_every=QUIET)
    return results


def _record(kind: str, detail: str, version: Version, clock: Clock, at_most_every: timedelta = timedelta(0)) -> None:
    recent = Event.objects.filter(kind=kind, version=version, at__gt=clock.now() - at_most_every)
    if at_most_every and recent.exists():
        return
    record_event(kind, detail, clock=clock, student_id=version.student_id, version_id=version.pk)
