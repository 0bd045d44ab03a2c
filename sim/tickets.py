"""The tickets workload: support requests drawn from templates, and the mock world's knowledge of their meaning."""

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from string import Formatter
from typing import Any

from ledger.taskspec import TaskSpec, parse_spec
from sim.ticket_templates import (
    CATEGORIES,
    CITIES,
    LAUNCH_TEMPLATES,
    NAMES,
    ORDERS,
    PRIORITIES,
    PRODUCTS,
    TEMPLATES,
    Template,
)

TASK_NAME = "ticket-triage"
LAUNCH_SHARE = 0.20
"""The share of traffic about the new product from the drift day on."""

SYSTEM_PROMPT = (
    "You triage the inbox of an online shop. Read the customer's message and answer with one JSON object that has the "
    f"keys category (one of {', '.join(CATEGORIES)}), priority (one of {', '.join(PRIORITIES)}) and reply (one polite "
    "sentence to the customer). Write nothing else."
)
_SYSTEM_MESSAGE = {"role": "system", "content": SYSTEM_PROMPT}

_REPLIES = {
    "billing": "Thank you, our billing team will check this.",
    "technical": "Sorry about that, a technician will help you.",
    "account": "Thank you, we will look at your account now.",
    "shipping": "Thank you, we are asking the carrier about it.",
    "refund": "Thank you, we will see to your refund.",
    "security": "Please change your password, we are on it.",
}
LABELS = tuple((category, priority) for category in CATEGORIES for priority in PRIORITIES)
ANSWERS = {
    (category, priority): json.dumps(
        {"category": category, "priority": priority, "reply": _REPLIES[category]}, separators=(",", ":")
    )
    for category, priority in LABELS
}
"""The text of an answer with the given labels."""

SPEC_DOCUMENT: dict[str, Any] = {
    "fields": {
        "category": {"type": "label", "values": list(CATEGORIES)},
        "priority": {"type": "label", "values": list(PRIORITIES)},
    },
    "description": "Simulated support tickets (mock models).",
}

_SLOTS: Mapping[str, Sequence[Any]] = {"name": NAMES, "product": PRODUCTS, "city": CITIES, "order": ORDERS}
_SLOT_PATTERNS = {name: "|".join(map(re.escape, _SLOTS[name])) for name in ("name", "product", "city")} | {
    "order": "[1-9][0-9]{4}"
}


@dataclass(frozen=True, slots=True)
class Ticket:
    """One simulated request: what the customer wrote, and the template that makes it true."""

    text: str
    template: Template

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The OpenAI messages an application would send."""
        return [_SYSTEM_MESSAGE, {"role": "user", "content": self.text}]


def task_spec() -> TaskSpec:
    """Return the spec of ``ticket-triage``: category and priority are compared, the reply is not."""
    return parse_spec(TASK_NAME, SPEC_DOCUMENT)


def draw_tickets(rng: random.Random, n: int, *, has_launched: bool) -> Iterator[Ticket]:
    """Yield ``n`` tickets, all templates equally likely; after the launch ``LAUNCH_SHARE`` is about the new product."""
    for _ in range(n):
        is_new = has_launched and rng.random() < LAUNCH_SHARE
        yield write_ticket(rng, rng.choice(LAUNCH_TEMPLATES if is_new else TEMPLATES))


def write_ticket(rng: random.Random, template: Template) -> Ticket:
    """Fill a template's slots; a slot that occurs twice gets one value."""
    values = {slot: rng.choice(_SLOTS[slot]) for slot in _slots(template.wording)}
    return Ticket(template.wording.format_map(values), template)


@lru_cache(maxsize=65_536)
def recognise(text: str) -> Template | None:
    """Return the template a ticket's text was made from, or ``None`` for any other text."""
    match = _PATTERN.fullmatch(text)
    return _BY_KEY[match.lastgroup] if match and match.lastgroup else None


def ticket_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the customer's message: the content of the last message."""
    content = messages[-1].get("content") if messages else None
    return content if isinstance(content, str) else ""


def labels_of(template: Template) -> tuple[str, str]:
    """Return the true category and priority."""
    return template.category, template.priority


@cache
def _slots(wording: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for _, name, _, _ in Formatter().parse(wording) if name))


def _pattern_of(template: Template) -> str:
    parts = []
    for literal, slot, _, _ in Formatter().parse(template.wording):
        parts.append(re.escape(literal) + (f"(?:{_SLOT_PATTERNS[slot]})" if slot else ""))
    return f"(?P<{template.key}>{''.join(parts)})"


_BY_KEY = {template.key: template for template in (*TEMPLATES, *LAUNCH_TEMPLATES)}
_PATTERN = re.compile("|".join(map(_pattern_of, _BY_KEY.values())))
