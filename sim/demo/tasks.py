"""The demo's two tasks: their specs, their instructions and the requests an application would send for them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim.demo.dataset import DemoMessage

CATEGORIES = {
    "ABBR": "an abbreviation",
    "DESC": "a description, definition, reason or manner",
    "ENTY": "a thing: an animal, product, work, colour, word, ...",
    "HUM": "a person or a group of people",
    "LOC": "a place",
    "NUM": "a number: a count, date, price, distance, ...",
}


TARGET_PRECISION = 0.975
MIN_PRECISION = 0.94
"""Golden rows are mostly ones that an earlier student was unsure of: what is served is right more often than they say.
The floor keeps a distance from the target that the few rows of one task do not cross by chance."""


@dataclass(frozen=True, slots=True)
class DemoTask:
    """A task of the demo: one label field, and the system message its requests carry."""

    name: str
    field: str
    labels: tuple[str, ...]
    instructions: str

    @property
    def spec(self) -> dict[str, Any]:
        """The task spec document."""
        return {
            "fields": {self.field: {"type": "label", "values": list(self.labels)}},
            "policy": {"target_precision": TARGET_PRECISION, "min_precision": MIN_PRECISION},
        }


def _routing() -> DemoTask:
    classes = "; ".join(f"{label}: {meaning}" for label, meaning in CATEGORIES.items())
    return DemoTask(
        name="question-routing",
        field="category",
        labels=tuple(CATEGORIES),
        instructions=(
            "Say what kind of answer the user's question asks for. "
            f'Reply with JSON only, {{"category": "..."}}, with one of {classes}.'
        ),
    )


def _sms() -> DemoTask:
    return DemoTask(
        name="sms-spam",
        field="label",
        labels=("ham", "spam"),
        instructions=(
            "Say whether the user's text message is unsolicited advertising or fraud (spam) or not (ham). "
            'Reply with JSON only, {"label": "spam"} or {"label": "ham"}.'
        ),
    )


TASKS: Mapping[str, DemoTask] = {task.name: task for task in (_routing(), _sms())}


def request_body(task: DemoTask, text: str) -> dict[str, Any]:
    """Return the chat request that an application sends for ``text``."""
    return {
        "model": "ratchet",
        "messages": [{"role": "system", "content": task.instructions}, {"role": "user", "content": text}],
        "temperature": 0,
        "max_tokens": 2000,
    }


def is_right(message: DemoMessage, answer: Mapping[str, Any] | None) -> bool:
    """Whether a parsed answer carries the data set's own label."""
    return answer is not None and answer.get(TASKS[message.task].field) == message.label
