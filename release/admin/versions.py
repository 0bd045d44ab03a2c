"""The versions: where each stands, the evidence the gate reads, and the moves an operator may make."""

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery, Sum
from django.http import HttpRequest, HttpResponse
from unfold.decorators import display

from common.confirmation import ConfirmedActionsMixin
from ledger.admin import ReadOnlyAdmin
from ledger.charts import day_charts, percent
from ledger.dayrow import total
from ledger.daytable import day_table
from ledger.models import Event, StageTally, Version
from release.admin.moves import VERSION_ACTIONS
from release.admin.services import policy
from release.evidence import evidence_of, golden_rows, stage_rows
from release.proportions import number
from release.track import release_track

MAX_EVENTS = 200
STATE_LABELS = {"live": "success", "canary": "warning", "shadow": "info", "candidate": "info", "rejected": "danger",
                "rolled back": "danger"}  # fmt: skip


@admin.register(Version)
class VersionAdmin(ConfirmedActionsMixin, ReadOnlyAdmin):
    """Versions. No form edits them: a version moves only through the confirmed actions (INV-29)."""

    confirmed_actions = VERSION_ACTIONS
    change_form_template = "ratchet/version.html"
    fields = ("state",)
    list_display = ["version", "state_label", "traffic", "golden", "audited", "since"]
    list_filter = ["student", "state"]
    list_select_related = ["student"]
    list_per_page = 50
    ordering = ["-created_at"]
    sortable_by = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Version]:
        """Add the audits of the current stage, and leave the heavy documents out."""
        tallies = StageTally.objects.filter(version=OuterRef("pk"), stage=OuterRef("stage")).order_by()

        def summed(column: str) -> Subquery:
            return Subquery(tallies.values("version").annotate(sum=Sum(column)).values("sum"))

        rows = super().get_queryset(request).defer("bom")
        return rows.annotate(stage_audits=summed("n_audits"), stage_agree=summed("n_agree"))

    @display(description="version")
    def version(self, row: Version) -> str:
        """Student and number."""
        return str(row)

    @display(description="state", label=STATE_LABELS)
    def state_label(self, row: Version) -> str:
        """The state."""
        return row.state.replace("_", " ")

    @display(description="traffic")
    def traffic(self, row: Version) -> str:
        """Share of traffic."""
        return f"{row.traffic_pct}%"

    @display(description="golden precision / coverage")
    def golden(self, row: Version) -> str | None:
        """What the golden set says."""
        precision, coverage = number(row.evaluation, "precision"), number(row.evaluation, "coverage")
        return None if precision is None or coverage is None else f"{percent(precision)} / {percent(coverage)}"

    @display(description="audited, this stage")
    def audited(self, row: Any) -> str | None:
        """Agreement of the audits of the current stage, with its counts."""
        if not row.stage_audits:
            return None
        return f"{percent(row.stage_agree / row.stage_audits)} ({row.stage_agree} of {row.stage_audits})"

    @display(description="since")
    def since(self, row: Version) -> str:
        """When the current stage began."""
        return f"{row.stage_since_at:%Y-%m-%d %H:%M}"

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the page shows of the version."""
        obj = kwargs.get("obj")
        if obj is not None:
            context |= version_page(obj)
        return super().render_change_form(request, context, *args, **kwargs)


def version_page(version: Version) -> dict[str, Any]:
    """Return the context of a version's page."""
    evidence = evidence_of(version, policy())
    days = day_table(version.student)
    return {
        "version": version,
        "evidence": evidence,
        "track": release_track(version.state, version.traffic_pct),
        "stages": stage_rows(version),
        "golden_tasks": golden_rows(version),
        "events": Event.objects.filter(version=version).order_by("-id")[:MAX_EVENTS],
        "nights": version.nights.order_by("-started_at"),
        "days": days,
        "days_newest_first": days[::-1],
        "days_total": total(days),
        "charts": day_charts(days),
    }
