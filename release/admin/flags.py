"""The operators' runtime switches: current state and confirmed changes, shown on the dashboard."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from common.confirmation import FIELD_CLASS, ConfirmedAction, ConfirmedActionsMixin, Done, ReasonForm
from ledger.admin import ReadOnlyAdmin
from ledger.models import RuntimeFlag
from ledger.switches import DEFAULT, OFF, ON
from ledger.vocabulary import Flag
from release.admin.services import clock
from release.operator import Intent, set_flag

OPERATE_FLAG = "ledger.operate_flag"
MEANING = {
    Flag.STUDENT_DISABLED: (
        "Student off",
        "The teacher answers every request, as on a cold start; its answers are stored.",
        "Students answer again, where their thresholds allow.",
    ),
    Flag.RELEASES_FROZEN: (
        "Releases frozen",
        "No version starts taking traffic or gets more of it. Rollbacks, rejections and alerts go on.",
        "The gate moves versions forward on evidence again.",
    ),
    Flag.TRAINING_PAUSED: (
        "Training paused",
        "Every night is skipped before it does anything.",
        "Nights run again, by their schedule.",
    ),
    Flag.AUDIT_RATE: (
        "Audit rate",
        "Replaces the configured audit rate from the next request on. At 0 no version may become a canary.",
        "The configured audit rate applies again.",
    ),
}


class RateForm(ReasonForm):
    """The audit rate, beside the reason."""

    field_order = ["rate", "reason"]
    rate = forms.FloatField(
        min_value=0.0,
        max_value=1.0,
        label="Audit rate",
        widget=forms.NumberInput(attrs={"step": "0.01", "class": FIELD_CLASS}),
        help_text="Share of the student's answers that are checked against the teacher, 0 to 1.",
    )


def _set(flag: RuntimeFlag, value: str, actor: str, reason: str) -> Done:
    return Done(set_flag(flag.name, value, Intent(actor, reason), clock=clock()).text)


def _switch(value: str, label: str, is_dangerous: bool) -> ConfirmedAction:
    def refusal(flag: RuntimeFlag) -> str | None:
        if flag.name == Flag.AUDIT_RATE:
            return "the audit rate is a number"
        return f"it is {value} already" if flag.value == value else None

    return ConfirmedAction(
        value,
        label,
        OPERATE_FLAG,
        lambda flag: [MEANING[Flag(flag.name)][1 if value == ON else 2], "Every process honours it within 100 ms."],
        lambda flag, actor, reason: _set(flag, value, actor, reason),
        refusal,
        "toggle_on" if value == ON else "toggle_off",
        is_dangerous,
    )


def _is_no_rate(flag: RuntimeFlag) -> str | None:
    return None if flag.name == Flag.AUDIT_RATE else "only the audit rate takes a number"


def _is_default_rate(flag: RuntimeFlag) -> str | None:
    return _is_no_rate(flag) or ("it is the configured rate already" if flag.value == DEFAULT else None)


SET_RATE = ConfirmedAction(
    "set",
    "Set the rate",
    OPERATE_FLAG,
    lambda _flag: [MEANING[Flag.AUDIT_RATE][1]],
    lambda flag, actor, reason, rate: _set(flag, str(rate), actor, reason),
    _is_no_rate,
    "tune",
    form_class=RateForm,
)
RESET_RATE = ConfirmedAction(
    "reset",
    "Use the configured rate",
    OPERATE_FLAG,
    lambda _flag: [MEANING[Flag.AUDIT_RATE][2]],
    lambda flag, actor, reason: _set(flag, DEFAULT, actor, reason),
    _is_default_rate,
    "restart_alt",
)


@admin.register(RuntimeFlag)
class RuntimeFlagAdmin(ConfirmedActionsMixin, ReadOnlyAdmin):
    """The switches; one without a row stands at its default."""

    confirmed_actions = [_switch(ON, "Turn on", True), _switch(OFF, "Turn off", False), SET_RATE, RESET_RATE]
    list_display = ["name", "value", "updated_at", "updated_by"]

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> RuntimeFlag | None:
        """Return the switch, stored or not."""
        return next((flag for flag in current_flags() if flag.name == object_id), None)

    def back_url(self, target: Any) -> str:
        """Switches live on the dashboard."""
        return reverse(f"{self.admin_site.name}:index")

    def switches(self, request: HttpRequest) -> list[dict[str, Any]]:
        """Return every switch with its state, meaning and buttons, for the dashboard."""
        return [
            {
                "flag": flag,
                "label": MEANING[Flag(flag.name)][0],
                "meaning": MEANING[Flag(flag.name)][1],
                "state": _state(flag),
                "is_default": flag.value in (OFF, DEFAULT),
                "available_actions": self.available_actions(request, flag),
            }
            for flag in current_flags()
        ]


def current_flags() -> list[RuntimeFlag]:
    """Return every switch with its value; one without a row is unsaved and at its default."""
    stored = RuntimeFlag.objects.in_bulk()
    return [
        stored.get(name) or RuntimeFlag(name=name, value=DEFAULT if name == Flag.AUDIT_RATE else OFF)
        for name in Flag.values
    ]


def _state(flag: RuntimeFlag) -> str:
    if flag.name == Flag.AUDIT_RATE and flag.value == DEFAULT:
        return f"{settings.RATCHET_GATEWAY.audit_rate:g} (configured)"
    return flag.value
