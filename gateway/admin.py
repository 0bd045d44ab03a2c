"""API keys: made here and shown once; only their hash is kept, and no page shows that either (INV-13)."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.validators import validate_slug
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextInputWidget, UnfoldBooleanSwitchWidget

from common.clock import Clock, clock_from_path
from common.confirmation import ConfirmedAction, ConfirmedActionsMixin, Done, actor_of
from common.errors import RatchetError
from gateway.keys import create_key, revoke_key
from ledger.admin import ReadOnlyAdmin
from ledger.models import ApiKey


def _clock() -> Clock:
    return clock_from_path(settings.RATCHET_CLOCK)


class KeyForm(forms.Form):
    """A new key's name and rights."""

    name = forms.CharField(
        max_length=64, validators=[validate_slug], help_text="The client's name in the ledger: letters, digits, -, _",
        widget=UnfoldAdminTextInputWidget({"autocomplete": "off"}),
    )  # fmt: skip
    may_store = forms.BooleanField(
        required=False, initial=True, help_text="Whether teacher answers to its requests may be stored as examples.",
        widget=UnfoldBooleanSwitchWidget,
    )  # fmt: skip


def _revoke(key: ApiKey, actor: str, reason: str) -> Done:
    revoke_key(key, actor=actor, reason=reason, clock=_clock())
    return Done(f"The key {key.name} is revoked.")


REVOKE = ConfirmedAction(
    name="revoke",
    label="Revoke",
    permission="ledger.change_apikey",
    effect=lambda key: [
        f"Every request that carries the key {key.name} is refused with 401, on every process, within 100 ms.",
        "A revoked key cannot be restored; make a new one.",
    ],
    refusal=lambda key: "it is already revoked" if key.is_revoked else None,
    run=_revoke,
    icon="key_off",
    is_dangerous=True,
)


@admin.register(ApiKey)
class ApiKeyAdmin(ConfirmedActionsMixin, ReadOnlyAdmin):
    """Keys: created, revoked, never edited."""

    confirmed_actions = [REVOKE]
    change_form_template = "ratchet/detail.html"
    list_display = ["name", "status", "may_store", "created_at", "created_by"]
    list_filter = ["is_revoked"]
    fields = ("name", "role", "may_store", "is_revoked", "created_at", "created_by")
    readonly_fields = fields
    sortable_by = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Keys are added by who may."""
        return request.user.has_perm("ledger.add_apikey")

    @display(description="status", label={"active": "success", "revoked": "danger"})
    def status(self, row: ApiKey) -> str:
        """Whether it works."""
        return "revoked" if row.is_revoked else "active"

    @method_decorator(never_cache)
    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Ask for a name; on POST make the key and show it, once, in the answer itself."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = KeyForm(request.POST if request.method == "POST" else None)
        key = None
        if request.method == "POST" and form.is_valid():
            try:
                key = create_key(**form.cleaned_data, actor=actor_of(request), clock=_clock())
            except RatchetError as error:
                self.message_user(request, str(error), messages.ERROR)
        context = {
            **self.admin_site.each_context(request),
            "title": "New API key",
            "opts": self.opts,
            "form": form,
            "key": key,
            "add": True,
        }
        return TemplateResponse(request, "ratchet/new_key.html", context)
