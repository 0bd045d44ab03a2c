"""One confirmation page for every consequential admin action: what is affected, what is refused, a typed reason.

An admin lists its ``ConfirmedAction``s; the mixin gives each a URL, a button on the detail page while it is legal, the
confirmation page, and the permission check on GET and again on POST. An action without a permission fails closed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from common.errors import RatchetError

REASON_MIN, REASON_MAX = 3, 500
ACTOR_MAX = 76
FIELD_CLASS = "ratchet-input"


class ReasonForm(forms.Form):
    """The typed reason that every consequential action needs; an action with more to ask subclasses it."""

    reason = forms.CharField(
        min_length=REASON_MIN,
        max_length=REASON_MAX,
        strip=True,
        widget=forms.TextInput(attrs={"autofocus": True, "autocomplete": "off", "class": FIELD_CLASS}),
        help_text=f"{REASON_MIN} to {REASON_MAX} characters, kept in the audit log. Do not quote requests or answers.",
    )


@dataclass(frozen=True, slots=True)
class Done:
    """What an action did, and the page to show next (default: the target's)."""

    message: str
    next_url: str = ""


def _never(_target: Any) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class ConfirmedAction:
    """One consequential action on a target.

    ``effect(target)`` says what will change, one line per effect. ``refusal(target)`` says why it is not possible now,
    or ``None``; its button is then hidden. ``run(target, actor, **fields)`` calls the one service and gets the form's
    cleaned fields (``reason`` at least); a ``RatchetError`` it raises is shown as the refusal.
    """

    name: str
    label: str
    permission: str
    effect: Callable[[Any], Sequence[str]]
    run: Callable[..., Done]
    refusal: Callable[[Any], str | None] = _never
    icon: str = "bolt"
    is_dangerous: bool = False
    form_class: type[ReasonForm] = ReasonForm


def actor_of(request: HttpRequest) -> str:
    """Return the name that the audit log keeps of the person who acts."""
    return request.user.get_username()[:ACTOR_MAX]


class ConfirmedActionsMixin(admin.ModelAdmin):
    """Adds the confirmation pages of ``confirmed_actions``, and their buttons as ``available_actions``."""

    confirmed_actions: Sequence[ConfirmedAction] = ()

    def get_urls(self) -> list[URLPattern]:
        """Put one URL per action before the stock ones."""
        own = [
            path(
                f"<path:object_id>/{action.name}/",
                self.admin_site.admin_view(partial(self._action_view, action)),
                name=self._url_name(action),
            )
            for action in self.confirmed_actions
        ]
        return [*own, *super().get_urls()]

    def available_actions(self, request: HttpRequest, target: Any) -> list[dict[str, Any]]:
        """Return the buttons of what this user may do to ``target`` now."""
        return [
            {"action": action, "url": reverse(f"{self.admin_site.name}:{self._url_name(action)}", args=[target.pk])}
            for action in self.confirmed_actions
            if _may(request, action) and action.refusal(target) is None
        ]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Hand the buttons to the detail page."""
        target = kwargs.get("obj")
        if target is not None:
            context["available_actions"] = self.available_actions(request, target)
        return super().render_change_form(request, context, *args, **kwargs)

    def confirm(self, request: HttpRequest, action: ConfirmedAction, target: Any, back_url: str) -> HttpResponse:
        """Show the confirmation page of ``action``, or run it on POST; a refused POST answers 409."""
        if not _may(request, action):
            raise PermissionDenied
        is_post = request.method == "POST"
        refusal = action.refusal(target)
        form = action.form_class(request.POST if is_post else None)
        if is_post and refusal is None and form.is_valid():
            try:
                done = action.run(target, actor_of(request), **form.cleaned_data)
            except RatchetError as error:
                refusal = str(error)
            else:
                self.message_user(request, done.message, messages.SUCCESS)
                return HttpResponseRedirect(done.next_url or back_url)
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": f"{action.label}: {target}",
            "form": form,
            "opts": self.opts,
            "action": action,
            "target": target,
            "effect": action.effect(target),
            "refusal": refusal,
            "back_url": back_url,
        }
        status = 409 if is_post and refusal else 200
        return TemplateResponse(request, "admin/confirm_action.html", context, status=status)

    def _action_view(self, action: ConfirmedAction, request: HttpRequest, object_id: str) -> HttpResponse:
        if not _may(request, action):
            raise PermissionDenied
        target = self.get_object(request, object_id)
        if target is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined]
        return self.confirm(request, action, target, self.back_url(target))

    def back_url(self, target: Any) -> str:
        """Return the page to go back to: the target's own."""
        return reverse(f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_change", args=[target.pk])

    def _url_name(self, action: ConfirmedAction) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{action.name}"


def _may(request: HttpRequest, action: ConfirmedAction) -> bool:
    return bool(action.permission) and request.user.has_perm(action.permission)
