"""The tasks: how answers are compared, which threshold the live version serves them at, and pins to the teacher."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextareaWidget

from common.confirmation import ConfirmedActionsMixin, actor_of
from gateway.cascade.types import SERVE_NOTHING
from gateway.snapshot import task_spec, version_route
from ledger.models import Task, Version
from ledger.tasks import save_task
from ledger.taskspec import parse_spec
from ledger.vocabulary import TaskSource, VersionState
from release.admin.forms import PrettyJSONField
from release.admin.moves import TASK_ACTIONS
from release.admin.services import clock


class TaskForm(forms.ModelForm):
    """A task's name, student and spec document; every mistake of the document is shown with its path."""

    spec = PrettyJSONField(
        required=False,
        label="Spec",
        help_text='Which fields are compared and how, e.g. {"fields": {"category": {"type": "label"}}}.',
        widget=UnfoldAdminTextareaWidget({"rows": 14, "class": "r-code", "spellcheck": "false"}),
    )

    class Meta:
        model = Task
        fields = ["name", "student", "spec"]

    def clean(self) -> dict[str, Any]:
        """Read the document as the gateway will."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if "spec" in data:
            data["spec"] = {} if data["spec"] is None else data["spec"]
            try:
                parse_spec(data.get("name") or self.instance.name or "task", data["spec"])
            except ValueError as error:
                self.add_error("spec", str(error).splitlines())
        return data


@admin.register(Task)
class TaskAdmin(ConfirmedActionsMixin, ModelAdmin):
    """Tasks. Saving keeps the spec's hash in step and marks the task as set through the API."""

    confirmed_actions = TASK_ACTIONS
    form = TaskForm
    change_form_template = "ratchet/task.html"
    list_display = ["name", "student", "summary", "pinned", "live_threshold", "source"]
    list_filter = ["student", "source", "is_runtime_pinned"]
    list_filter_sheet = False
    list_select_related = ["student"]
    search_fields = ["name"]
    sortable_by = ()

    def get_fields(self, request: HttpRequest, obj: Task | None = None) -> Any:
        """The document and what follows from it."""
        return ["name", "student", "spec", *(["source", "spec_hash", "updated_at"] if obj else [])]

    def has_delete_permission(self, request: HttpRequest, obj: Task | None = None) -> bool:
        """A task's requests refer to it by name."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Task | None = None) -> list[str]:
        """Requests know a task by its name, so that is fixed."""
        return ["name", "source", "spec_hash", "updated_at"] if obj else []

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        """Load the live versions of all students at once."""
        live = Version.objects.filter(state=VersionState.LIVE).defer("bom")
        return super().get_queryset(request).prefetch_related(Prefetch("student__versions", live, to_attr="live"))

    @display(description="compares")
    def summary(self, row: Task) -> str:
        """The fields and their comparators."""
        fields = row.spec.get("fields", {})
        return ", ".join(f"{name}: {field.get('type')}" for name, field in fields.items()) or "the whole answer"

    @display(description="pinned", label={"by its spec": "warning", "by an operator": "danger"})
    def pinned(self, row: Task) -> str | None:
        """Whether the teacher alone answers it, and why."""
        if row.is_runtime_pinned:
            return "by an operator"
        return "by its spec" if row.spec.get("pinned") else None

    @display(description="live threshold")
    def live_threshold(self, row: Any) -> str:
        """The confidence the live version needs for it today."""
        if self.pinned(row):
            return "teacher only"
        if not row.student.live:
            return "no live version"
        route = version_route(row.student.live[0], settings.RATCHET_GATEWAY.confidence_threshold)
        threshold = route.threshold_for(task_spec(row))
        return "serves nothing" if threshold >= SERVE_NOTHING else f"{threshold:.4f}"

    def save_model(self, request: HttpRequest, obj: Task, form: Any, change: bool) -> None:
        """Save through the service, which keeps the hash in step and writes the event."""
        saved = save_task(
            obj.name, form.cleaned_data["spec"], obj.student, TaskSource.API, clock(), actor=actor_of(request)
        )
        obj.pk = saved.pk

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add the task itself."""
        obj = kwargs.get("obj")
        if obj is not None:
            context["task"] = obj
            context["live_threshold"] = self.live_threshold(obj)
        return super().render_change_form(request, context, *args, **kwargs)
