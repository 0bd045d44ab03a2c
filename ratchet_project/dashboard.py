"""The admin's first page: per student what serves, what is on its way, what it saves; then switches and the log."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Count, Min, Prefetch
from django.http import HttpRequest

from common.clock import clock_from_path
from ledger.charts import day_charts
from ledger.dayrow import total
from ledger.daytable import day_table
from ledger.models import Check, Event, Night, RuntimeFlag, Student, Version
from ledger.vocabulary import IN_FLIGHT, NIGHT_STEPS, VersionState
from nightschool.admin import progress_of
from release.admin.services import policy
from release.evidence import evidence_of
from release.track import release_track

N_EVENTS = 12
CURRENT = [VersionState.LIVE, VersionState.CANDIDATE, *IN_FLIGHT]


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add what this user may see to the context of the admin's index."""
    user = request.user
    context["title"] = "Dashboard"
    if user.has_perm("ledger.view_student"):
        context["students"] = [_student(student) for student in _students()]
        context["checks"] = Check.objects.aggregate(n=Count("pk"), oldest_at=Min("created_at"))
        context["switches"] = admin.site.get_model_admin(RuntimeFlag).switches(request)  # type: ignore[attr-defined]
    if user.has_perm("ledger.view_event"):
        context["events"] = Event.objects.select_related("version__student")[:N_EVENTS]
    return context


def notice(_request: HttpRequest) -> dict[str, Any]:
    """Add the notice that every page shows, e.g. that this is a demo or a simulation (INV-20)."""
    return {"ratchet_notice": settings.RATCHET_NOTICE}


def _students() -> Any:
    versions = Version.objects.filter(state__in=CURRENT).defer("bom").select_related("student").order_by("number")
    nights = Night.objects.filter(state__in=NIGHT_STEPS).select_related("student")
    return Student.objects.prefetch_related(
        Prefetch("versions", versions, to_attr="current"), Prefetch("nights", nights, to_attr="running")
    )


def _student(student: Any) -> dict[str, Any]:
    days = day_table(student)
    by_state = {version.state: version for version in student.current}
    live = by_state.get(VersionState.LIVE)
    moving = next((by_state[state] for state in (*IN_FLIGHT, VersionState.CANDIDATE) if state in by_state), None)
    night = student.running[0] if student.running else None
    return {
        "student": student,
        "live": live,
        "live_evidence": evidence_of(live, policy()) if live else None,
        "moving": moving,
        "track": release_track(moving.state, moving.traffic_pct) if moving else [],
        "says": evidence_of(moving, policy()).says if moving else "",
        "latest": days[-1] if days else None,
        "is_today": bool(days) and days[-1].on == clock_from_path(settings.RATCHET_CLOCK).now().date(),
        "total": total(days),
        "n_days": len(days),
        "charts": day_charts(days),
        "night": night,
        "progress": progress_of(night) if night else None,
    }
