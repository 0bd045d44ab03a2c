"""A request as it enters the cascade: who sent it, for which task, and what may become of its text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from gateway.cascade.types import CascadeRequest, Params, Route
from gateway.settings import GatewaySettings
from gateway.snapshot import Snapshot
from ledger.taskspec import TaskSpec
from ledger.vocabulary import DEFAULT_TASK
from privacy.end_users import EVERY_CLIENT, end_user_hash
from privacy.opt_out import store_opt_out


class UnknownTask(Exception):
    """The task is not registered and unregistered tasks are rejected."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A validated request before the cascade."""

    id: UUID
    at: datetime
    messages: Sequence[Mapping[str, Any]]
    params: Params = Params()
    task: str = DEFAULT_TASK
    client: str = ""
    key_may_store: bool = True
    store: bool | None = None
    uses_tools: bool = False
    is_multimodal: bool = False
    end_users: tuple[str, ...] = field(default=(), repr=False)
    """The raw identifiers the client named, first the one to attribute to; hashed before anything is kept."""
    client_request_id: str = ""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request the cascade may run, with what the ledger may keep of it."""

    request: CascadeRequest
    opt_out: str
    end_users: tuple[tuple[str, str], ...] = ()
    """(scope, hash in that scope) of every identifier the request named, under which it may be opted out."""

    @property
    def end_user(self) -> str:
        """The hash that the request is attributed to, or an empty string."""
        return self.end_users[0][1] if self.end_users else ""


def admit(incoming: Incoming, snapshot: Snapshot, settings: GatewaySettings) -> Admitted:
    """Find the task and the student; raises ``UnknownTask`` when unregistered tasks are rejected."""
    known = snapshot.tasks.get(incoming.task)
    teacher_only = None
    if known is None:
        if settings.unknown_tasks == "reject":
            raise UnknownTask(incoming.task)
        known = (TaskSpec(incoming.task), snapshot.default_student_id)
        teacher_only = Route.UNKNOWN_TASK if settings.unknown_tasks == "teacher" else None
    task, student_id = known
    if task.is_pinned:
        teacher_only = Route.PINNED
    elif incoming.uses_tools:
        teacher_only = Route.TOOLS
    elif incoming.is_multimodal:
        teacher_only = Route.MULTIMODAL
    end_users = tuple(
        (scope, end_user_hash(settings.data_key, scope, value))
        for value in incoming.end_users
        for scope in (incoming.client, EVERY_CLIENT)
    )
    opt_out = store_opt_out(
        stores_examples=settings.stores_examples,
        task_may_store=task.may_store,
        key_may_store=incoming.key_may_store,
        request_store=incoming.store,
        end_users=end_users,
        no_train=snapshot.no_train,
    )
    request = CascadeRequest(task, snapshot.students[student_id], incoming.messages, incoming.params, teacher_only)
    return Admitted(request, opt_out, end_users)
