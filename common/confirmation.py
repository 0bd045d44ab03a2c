"""One confirmation page for every consequential admin action: what is affected, what is refused, a typed reason."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from common.errors import RatchetError

REASON_MIN, REASON_MAX = 3, 500


class ReasonForm(forms.Form):
    """The typed reason that every consequential action needs."""

    reason = forms.CharField(
        min_length=REASON_MIN,
        max_length=REASON_MAX,
        strip=True,
        widget=forms.TextInput(attrs={"autofocus": True, "autocomplete": "off", "class": "ratchet-reason"}),
        help_text=f"{REASON_MIN} to {REASON_MAX} characters; kept in the audit log.",
    )


class ConfirmedActionMixin(admin.ModelAdmin):
    """Adds ``confirm``: the page that shows an action's effect and runs it once the operator gave a reason."""

    def confirm(
        self,
        request: HttpRequest,
        target: Model,
        *,
        title: str,
        permission: str,
        effect: str,
        run: Callable[[str], str],
        refusal: str | None = None,
    ) -> HttpResponse:
        """Show the confirmation page, or run the action on POST.

        ``permission`` is checked on GET and again on POST; an empty one fails closed. ``run(reason)`` does the work and
        returns the message to show; a ``RatchetError`` it raises is shown as the refusal.
        """
        if not permission or not request.user.has_perm(permission):  # type: ignore[union-attr]
            raise PermissionDenied
        form = ReasonForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and refusal is None and form.is_valid():
            try:
                self.message_user(request, run(form.cleaned_data["reason"]), messages.SUCCESS)
            except RatchetError as error:
                self.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(self._change_url(target))
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": title,
            "form": form,
            "opts": self.model._meta,
            "target": target,
            "effect": effect,
            "refusal": refusal,
            "back_url": self._change_url(target),
        }
        return TemplateResponse(request, "admin/confirm_action.html", context)

    def _change_url(self, target: Model) -> str:
        from django.urls import reverse

        meta = self.model._meta
        return reverse(f"{self.admin_site.name}:{meta.app_label}_{meta.model_name}_change", args=[target.pk])
