"""A teacher's answer and whether it may become a label (INV-2, INV-15, INV-16)."""

from dataclasses import dataclass

from gateway.cascade.generation import label_altering
from gateway.cascade.types import Completion, Params, Purpose
from ledger.taskspec import AnswerKey, TaskSpec


@dataclass(frozen=True, slots=True)
class TeacherAnswer:
    """One teacher answer, cleaned. ``problem`` says why it is neither stored, counted nor used as a reference."""

    text: str
    purpose: Purpose
    problem: str | None
    key: AnswerKey | None

    @property
    def is_usable(self) -> bool:
        """Whether it is complete and valid."""
        return self.problem is None


def read_teacher(task: TaskSpec, completion: Completion, params: Params, purpose: Purpose) -> TeacherAnswer:
    """Clean a teacher's answer and judge it. Audits and arbitrations never run under the client's sampling."""
    text = task.clean(completion.text)
    is_serving = purpose not in (Purpose.AUDIT, Purpose.ARBITRATION)
    problem = (label_altering(params.values) if is_serving else None) or _incomplete(completion) or task.problem(text)
    return TeacherAnswer(text, purpose, problem, None if problem else task.key(text))


def _incomplete(completion: Completion) -> str | None:
    return None if completion.is_complete else f"finish_reason {completion.finish_reason}"
