"""Registering tasks: the one place that writes a task's spec, and so keeps its hash in step."""

from typing import Any

from django.db import IntegrityError, transaction

from common.clock import Clock
from common.errors import Refused
from ledger.events import record_event
from ledger.models import AdminAction, Student, Task
from ledger.taskspec import TaskSpec, parse_spec


def save_task(name: str, document: Any, student: Student, source: str, clock: Clock, *, actor: str = "") -> Task:
    """Create the task ``name`` or give it a new spec, student and source.

    Writes an event, and an audit row when a person (``actor``) did it, in the same transaction; a save that changes
    nothing writes nothing. A task that moves to another student keeps its history with the old one. Raises
    ``ValueError`` listing every mistake of the document with its path, ``Refused`` when another writer was first.
    """
    spec = parse_spec(name, document)
    wanted = {
        "student_id": student.pk,
        "spec": _stored(spec, document),
        "spec_hash": spec.spec_hash,
        "source": source,
    }
    now = clock.now()
    try:
        with transaction.atomic():
            task = Task.objects.select_for_update().filter(name=name).first()
            before = {} if task is None else {column: getattr(task, column) for column in wanted}
            if task is not None and before == wanted:
                return task
            task = task or Task(name=name, created_at=now)
            for column, value in wanted.items():
                setattr(task, column, value)
            task.updated_at = now
            task.full_clean(validate_unique=False, validate_constraints=False)
            task.save()
            verb = "changed" if before else "registered"
            detail = f"task {name} {verb} ({source}), spec {spec.spec_hash[:12]}"
            record_event(f"task_{verb}", detail, clock=clock, student_id=student.pk)
            if actor:
                AdminAction.objects.create(
                    at=now, actor=actor, action="save_task", target=name, before=before, after=wanted
                )
            return task
    except IntegrityError as error:
        raise Refused(f"task {name} was saved by somebody else at the same moment; look at it again") from error


def _stored(spec: TaskSpec, document: Any) -> dict[str, Any]:
    """Return the document with every default made explicit, and its description."""
    description = document.get("description")
    return spec.document | ({"description": description} if description is not None else {})
