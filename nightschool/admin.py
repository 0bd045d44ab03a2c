"""The nights: progress while they run, their outcome, and starting one now."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from unfold.decorators import display

from common.clock import clock_from_path
from common.confirmation import ConfirmedAction, ConfirmedActionsMixin, Done
from ledger.admin import ReadOnlyAdmin
from ledger.models import Night, Student
from ledger.vocabulary import NIGHT_STEPS
from nightschool.by_hand import run_now, why_not_now
from nightschool.progress import night_progress
from nightschool.tasks import dispatch_night
from release.operator import Intent

STATE_LABELS = {"done": "success", "failed": "danger"} | {step.value: "info" for step in NIGHT_STEPS}


def _effect(student: Student) -> list[str]:
    return [
        f"A night starts for {student} at once: it selects the stored rows, trains a candidate, evaluates it on the "
        "golden rows and hands it to the release gate.",
        "It uses training time, and calls to the student's endpoint for the evaluation. Requests are served as before.",
        "A candidate that passes the gate goes to shadow, or on a cold start to 10% of the traffic.",
    ]


def _run(student: Student, actor: str, reason: str) -> Done:
    night = run_now(student, Intent(actor, reason), clock=clock_from_path(settings.RATCHET_CLOCK))
    dispatch_night(night.pk)
    return Done(f"The night of {student} has started.", reverse("admin:ledger_night_change", args=[night.pk]))


RUN_NOW = ConfirmedAction(
    name="start",
    label="Run a night now",
    permission="ledger.run_night",
    effect=_effect,
    refusal=why_not_now,
    run=_run,
    icon="bedtime",
)


@admin.register(Night)
class NightAdmin(ConfirmedActionsMixin, ReadOnlyAdmin):
    """Nights, read-only; the detail page of a running one follows it."""

    change_form_template = "ratchet/night.html"
    fields = ("state",)
    change_list_template = "ratchet/nights.html"
    list_display = ["started", "student", "on", "state_label", "far", "outcome", "version", "took"]
    list_filter = ["student", "state"]
    list_select_related = ["student", "version__student"]
    sortable_by = ()

    def get_urls(self) -> list[URLPattern]:
        """Add the progress endpoint and the page that starts a night."""
        own = [
            path("start/<int:student_id>/", self.admin_site.admin_view(self.start), name="ledger_night_start"),
            path("<int:night_id>/progress/", self.admin_site.admin_view(self.progress), name="ledger_night_progress"),
        ]
        return [*own, *super().get_urls()]

    def start(self, request: HttpRequest, student_id: int) -> HttpResponse:
        """Confirm and start a night of one student."""
        student = get_object_or_404(Student, pk=student_id)
        return self.confirm(request, RUN_NOW, student, reverse("admin:ledger_night_changelist"))

    def progress(self, request: HttpRequest, night_id: int) -> JsonResponse:
        """Return how far a night is; its page asks every second while it runs."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return JsonResponse(night_progress(get_object_or_404(Night, pk=night_id)))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Offer a start for each student."""
        students = Student.objects.all() if request.user.has_perm(RUN_NOW.permission) else Student.objects.none()
        return super().changelist_view(request, {**(extra_context or {}), "startable_students": students})

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add the night and how far it is."""
        obj = kwargs.get("obj")
        if obj is not None:
            context |= {"night": obj, "progress": progress_of(obj), "took": self.took(obj)}
        return super().render_change_form(request, context, *args, **kwargs)

    @display(description="started")
    def started(self, row: Night) -> str:
        """When it started."""
        return f"{row.started_at:%Y-%m-%d %H:%M}"

    @display(description="state", label=STATE_LABELS)
    def state_label(self, row: Night) -> str:
        """The state."""
        return row.state

    @display(description="progress")
    def far(self, row: Night) -> str | None:
        """How far the current step is."""
        return f"{row.done} of {row.total}" if row.is_running and row.total else None

    @display(description="took")
    def took(self, row: Night) -> str | None:
        """How long it took."""
        if row.finished_at is None:
            return None
        return str(timedelta(seconds=round((row.finished_at - row.started_at).total_seconds())))


def progress_of(night: Night) -> dict[str, Any]:
    """Return a night's progress with the URL that keeps it up to date."""
    return night_progress(night) | {"url": reverse("admin:ledger_night_progress", args=[night.pk])}
