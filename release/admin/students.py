"""The students: what is live and in flight, and their sampling, release policy and night schedule."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from common.confirmation import actor_of
from ledger.charts import day_charts
from ledger.dayrow import total
from ledger.daytable import day_table
from ledger.models import Student, Version
from ledger.vocabulary import IN_FLIGHT, VersionState
from release.admin.forms import PrettyJSONField
from release.admin.services import clock, policy
from release.students import save_student


class StudentForm(forms.ModelForm):
    """A student's settings; the release policy overrides are checked as the gate reads them."""

    endpoints = PrettyJSONField(
        required=False,
        help_text="A JSON list of the base URLs of its OpenAI-compatible replicas.",
        widget=UnfoldAdminTextareaWidget({"rows": 3}),
    )
    policy = PrettyJSONField(
        required=False,
        label="Release policy overrides",
        help_text='A JSON object, e.g. {"min_audits": 15}; empty for the gateway\'s own policy.',
        widget=UnfoldAdminTextareaWidget({"rows": 4}),
    )

    class Meta:
        model = Student
        exclude = ["created_at"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = {"backend": settings.RATCHET_GATEWAY.student_backends, "trainer": settings.RATCHET_NIGHTS.trainers}
        for name, paths in known.items():
            if name in self.fields:
                label = self.fields[name].help_text
                self.fields[name] = forms.ChoiceField(
                    choices=[(key, key) for key in sorted(paths)], help_text=label, widget=UnfoldAdminSelectWidget
                )

    def clean_policy(self) -> dict[str, Any]:
        """Validate the overrides."""
        overrides = self.cleaned_data["policy"] or {}
        if not isinstance(overrides, dict):
            raise forms.ValidationError("must be a JSON object")
        try:
            policy().with_overrides(overrides)
        except (ValueError, TypeError) as error:
            raise forms.ValidationError(str(error)) from error
        return overrides

    def clean_endpoints(self) -> list[str]:
        """Validate the list of base URLs."""
        endpoints = self.cleaned_data["endpoints"] or []
        if not isinstance(endpoints, list) or not all(
            isinstance(url, str) and url.startswith(("http://", "https://")) for url in endpoints
        ):
            raise forms.ValidationError("must be a JSON list of http(s) base URLs")
        return endpoints


@admin.register(Student)
class StudentAdmin(ModelAdmin):
    """Students and their settings. What a student is made of is fixed once it exists."""

    form = StudentForm
    change_form_template = "ratchet/student.html"
    list_display = ["name", "base_model", "live", "in_flight", "sampling", "night"]
    sortable_by = ()
    list_filter_sheet = False
    fieldsets = [
        (None, {"fields": ["name", "base_model", "backend", "trainer", "endpoints"]}),
        ("Sampling", {"fields": ["samples", "temperature"]}),
        ("Releases", {"fields": ["policy"]}),
        ("Nights", {"fields": ["is_night_enabled", "night_at"]}),
    ]

    def has_delete_permission(self, request: HttpRequest, obj: Student | None = None) -> bool:
        """A student's history stays."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Student | None = None) -> list[str]:
        """What its versions depend on is fixed once it exists."""
        return ["name", "base_model", "backend", "trainer"] if obj else []

    def get_queryset(self, request: HttpRequest) -> QuerySet[Student]:
        """Load the versions that serve or are on their way, for all students at once."""
        current = Version.objects.filter(state__in=[VersionState.LIVE, *IN_FLIGHT]).defer("bom", "evaluation")
        return super().get_queryset(request).prefetch_related(Prefetch("versions", current, to_attr="current"))

    @display(description="live")
    def live(self, row: Any) -> str | None:
        """The live version."""
        return next((f"v{version.number}" for version in row.current if version.state == VersionState.LIVE), None)

    @display(description="in flight")
    def in_flight(self, row: Any) -> str | None:
        """The version on its way."""
        return next(
            (f"v{v.number} {v.state} {v.traffic_pct or ''}".strip() for v in row.current if v.state in IN_FLIGHT), None
        )

    @display(description="sampling")
    def sampling(self, row: Student) -> str:
        """How its answers are sampled."""
        return f"{row.samples} at temperature {row.temperature:g}"

    @display(description="night")
    def night(self, row: Student) -> str:
        """When its nights start."""
        return f"after {row.night_at:%H:%M} UTC" if row.is_night_enabled else "off"

    def save_model(self, request: HttpRequest, obj: Student, form: Any, change: bool) -> None:
        """Save through the service, which audits the change."""
        save_student(obj, actor=actor_of(request), clock=clock(), policy=policy())

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add the student's versions and days."""
        obj = kwargs.get("obj")
        if obj is not None:
            days = day_table(obj)
            context |= {
                "student": obj,
                "days": days,
                "days_newest_first": days[::-1],
                "days_total": total(days),
                "charts": day_charts(days),
            }
        return super().render_change_form(request, context, *args, **kwargs)
