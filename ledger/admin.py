"""Read-only pages of what happened: requests (metadata only), examples (redacted text), events, audited actions."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from common.ids import REQUEST_PREFIX, request_label
from common.money import format_usd
from ledger.daytable import day_table, recent_values
from ledger.models import AdminAction, Event, Example, Request

AUDIT_LABELS = {"agree": "success", "disagree": "danger", "pending": "info", "unusable": "warning", "failed": "warning",
                "lost": "warning"}  # fmt: skip
SHADOW_LABELS = AUDIT_LABELS | {"unarbitrated": "warning"}
SERVED_LABELS = {"student": "success", "teacher": "info"}


class ReadOnlyAdmin(ModelAdmin):
    """Pages that show and never change."""

    list_filter_sheet = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds rows by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody edits rows by hand."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody deletes rows by hand."""
        return False


class RecentValueFilter(admin.SimpleListFilter):
    """Filters by a column's recent values, which the small rollup table knows; the long table is never scanned."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer the values seen lately."""
        return [(value, value) for value in recent_values(str(self.parameter_name))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows with the chosen value; Django's changelist answers one that makes no sense."""
        name, value = str(self.parameter_name), self.value()
        if not value:
            return queryset
        try:
            chosen = queryset.model._meta.get_field(name).formfield().clean(value)
        except ValidationError as error:
            raise IncorrectLookupParameters(str(error)) from error
        return queryset.filter(**{name: chosen})


class TaskFilter(RecentValueFilter):
    """Filters by task."""

    title, parameter_name = "task", "task"


class RouteFilter(RecentValueFilter):
    """Filters by route."""

    title, parameter_name = "route", "route"


class DateFilter(RecentValueFilter):
    """Filters by UTC date."""

    title, parameter_name = "UTC date", "on"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer the last dates with traffic, newest first."""
        return [(row.on.isoformat(), row.on.isoformat()) for row in reversed(day_table())]


@admin.register(Request)
class RequestAdmin(ReadOnlyAdmin):
    """The requests, newest first. No text is stored with them, so none can be shown (INV-12)."""

    paginator = InfinitePaginator
    show_full_result_count = False
    list_per_page = 50
    list_fullwidth = True
    sortable_by = ()
    list_display = ["at", "task", "route_label", "served", "tried", "scored", "audited", "shadowed", "cost", "wall"]
    list_filter = [DateFilter, TaskFilter, RouteFilter, "served_by"]
    list_select_related = ["student", "version__student", "shadow_version__student"]
    search_fields = ["id"]
    search_help_text = "Request id, as in the response (req_…)"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Request], search_term: str
    ) -> tuple[QuerySet[Request], bool]:
        """Find one request by its id; anything else finds nothing rather than scanning the table."""
        if not search_term.strip():
            return queryset, False
        try:
            return queryset.filter(pk=UUID(search_term.strip().removeprefix(REQUEST_PREFIX))), False
        except ValueError:
            return queryset.none(), False

    @display(description="route", label=True)
    def route_label(self, row: Request) -> str:
        """The route."""
        return row.route

    @display(description="served by", label=SERVED_LABELS)
    def served(self, row: Request) -> str:
        """Who answered."""
        return row.served_by

    @display(description="version")
    def tried(self, row: Request) -> str | None:
        """The version that was tried, with its stage at routing time."""
        return f"v{row.version.number}, stage {row.stage}" if row.version else None

    @display(description="confidence")
    def scored(self, row: Request) -> str | None:
        """Confidence beside what was needed."""
        if row.confidence is None or row.threshold is None:
            return None
        return f"{row.confidence:.3f} {'≥' if row.confidence >= row.threshold else '<'} {row.threshold:.3f}"

    @display(description="audit", label=AUDIT_LABELS)
    def audited(self, row: Request) -> str | None:
        """The audit's state."""
        return None if row.audit == "none" else row.audit

    @display(description="shadow", label=SHADOW_LABELS)
    def shadowed(self, row: Request) -> str | None:
        """The shadow's state."""
        return None if row.shadow == "none" else row.shadow

    @display(description="cost / teacher")
    def cost(self, row: Request) -> str:
        """Cost beside what the teacher alone would have cost."""
        return f"{format_usd(row.cost_nusd, 6)} / {format_usd(row.baseline_nusd, 6)}"

    @display(description="latency")
    def wall(self, row: Request) -> str:
        """Latency on the gateway's clock."""
        return f"{row.wall_ms:,.1f} ms"

    @display(description="request id")
    def label(self, row: Request) -> str:
        """The id as clients see it."""
        return request_label(row.pk)

    def get_fields(self, request: HttpRequest, obj: Request | None = None) -> list[str]:
        """Show every column under the id that clients see."""
        return ["label", *(field.name for field in Request._meta.fields if field.name != "id")]

    def get_readonly_fields(self, request: HttpRequest, obj: Request | None = None) -> list[str]:
        """Everything is read-only."""
        return self.get_fields(request, obj)


@admin.register(Example)
class ExampleAdmin(ReadOnlyAdmin):
    """Training examples; the detail page is the one place that shows (redacted) text."""

    paginator = InfinitePaginator
    show_full_result_count = False
    list_per_page = 50
    sortable_by = ()
    list_display = ["last_seen_at", "task", "short_hash", "teacher_model", "licence", "origin", "split", "seen", "kept"]
    list_filter = [TaskFilter, "split", "is_verified", "is_golden_only", "is_contested"]
    search_fields = ["hash"]
    search_help_text = "Full hash of the example"
    change_form_template = "ratchet/example.html"
    fields = ("hash",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Example], search_term: str
    ) -> tuple[QuerySet[Example], bool]:
        """Find one example by its hash."""
        term = search_term.strip()
        return (queryset.filter(hash=term) if term else queryset), False

    @display(description="example")
    def short_hash(self, row: Example) -> str:
        """The start of its hash."""
        return row.hash[:12]

    @display(description="text", label={"kept": "success", "purged": "warning"})
    def kept(self, row: Example) -> str:
        """Whether its text is still there."""
        return "purged" if row.purged_at else "kept"


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """The release log."""

    paginator = InfinitePaginator
    show_full_result_count = False
    sortable_by = ()
    list_display = ["at", "kind_label", "student", "version", "detail"]
    list_filter = ["student"]
    list_select_related = ["student", "version__student"]

    @display(description="kind", label=True)
    def kind_label(self, event: Event) -> str:
        """The kind."""
        return event.kind


@admin.register(AdminAction)
class AdminActionAdmin(ReadOnlyAdmin):
    """Who changed what, and why."""

    paginator = InfinitePaginator
    show_full_result_count = False
    sortable_by = ()
    list_display = ["at", "actor", "action", "target", "reason"]
    list_filter = ["action"]
