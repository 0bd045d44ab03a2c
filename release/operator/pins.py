"""Pinning a task to the teacher by hand, and releasing it."""

from django.db import transaction

from common.clock import Clock
from common.errors import Refused
from ledger.events import record_event
from ledger.models import Task
from release.operator.intent import Change, Intent, record_action


def pin_task(name: str, intent: Intent, *, clock: Clock) -> Change:
    """Pin a task to the teacher: no student sees it and nothing of it is stored, from the next request on (INV-10)."""
    with transaction.atomic():
        task = _locked_task(name)
        if task.is_runtime_pinned or task.spec.get("pinned"):
            return Change(False, f"{name} is pinned already")
        return _set_pin(task, True, "pin_task", intent, clock)


def unpin_task(name: str, intent: Intent, *, clock: Clock) -> Change:
    """Remove a task's runtime pin. A pin in the task's own spec is not an operator's to remove."""
    with transaction.atomic():
        task = _locked_task(name)
        if task.spec.get("pinned"):
            raise Refused(f"{name} is pinned by its spec: change the spec instead")
        if not task.is_runtime_pinned:
            return Change(False, f"{name} is not pinned")
        return _set_pin(task, False, "unpin_task", intent, clock)


def _locked_task(name: str) -> Task:
    task = Task.objects.select_for_update().filter(name=name).first()
    if task is None:
        raise Refused("there is no task of that name")
    return task


def _set_pin(task: Task, is_pinned: bool, action: str, intent: Intent, clock: Clock) -> Change:
    before = {"is_runtime_pinned": task.is_runtime_pinned, "pin_reason": task.pin_reason}
    task.is_runtime_pinned = is_pinned
    task.pin_reason = intent.reason if is_pinned else ""
    task.updated_at = clock.now()
    task.save(update_fields=["is_runtime_pinned", "pin_reason", "updated_at"])
    after = {"is_runtime_pinned": task.is_runtime_pinned, "pin_reason": task.pin_reason}
    verb = "pinned to the teacher" if is_pinned else "unpinned"
    record_action(action, task.name, intent, before=before, after=after, clock=clock)
    record_event("admin", f"task {task.name} {verb}: {intent}", clock=clock, student_id=task.student_id)
    return Change(True, f"task {task.name} {verb}")
