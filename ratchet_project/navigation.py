"""The admin's sidebar: the pages of the loop first, then what operators look up, then accounts and schedules."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

Entry = tuple[str, str, str]
"""Title, icon, and ``app.model`` of the list."""

GROUPS: list[tuple[str, list[Entry]]] = [
    (
        "The loop",
        [
            ("Students", "school", "ledger.student"),
            ("Versions", "deployed_code_history", "ledger.version"),
            ("Tasks", "task_alt", "ledger.task"),
            ("Nights", "bedtime", "ledger.night"),
        ],
    ),
    (
        "The ledger",
        [
            ("Requests", "receipt_long", "ledger.request"),
            ("Examples", "library_books", "ledger.example"),
            ("Events", "timeline", "ledger.event"),
            ("Manual changes", "history_edu", "ledger.adminaction"),
        ],
    ),
    (
        "Access and schedules",
        [
            ("API keys", "key", "ledger.apikey"),
            ("Users", "person", "auth.user"),
            ("Groups", "group", "auth.group"),
            ("Schedules", "schedule", "django_celery_beat.periodictask"),
        ],
    ),
]


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the sidebar of what this user may view."""
    home = {"title": "Dashboard", "icon": "dashboard", "link": reverse("admin:index"), "permission": _may_enter}
    groups = [{"title": "", "separator": False, "items": [home]}]
    for title, entries in GROUPS:
        items = [_item(*entry) for entry in entries if _may_view(request, entry[2])]
        if items:
            groups.append({"title": title, "separator": True, "items": items})
    return groups


def _item(title: str, icon: str, model: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse(f"admin:{model.replace('.', '_')}_changelist")}


def _may_view(request: HttpRequest, model: str) -> bool:
    app, name = model.split(".")
    return any(request.user.has_perm(f"{app}.{verb}_{name}") for verb in ("view", "change"))


def _may_enter(request: HttpRequest) -> bool:
    return request.user.is_active
