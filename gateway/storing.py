"""A teacher's answer on its way to becoming an example: judged, redacted, judged again, hashed, split."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from common.canonical import sha256_hex
from gateway.cascade.answers import TeacherAnswer
from gateway.cascade.generation import conditions
from gateway.cascade.types import CascadeRequest
from gateway.settings import GatewaySettings
from ledger.rows import ExampleRow
from ledger.vocabulary import Split
from privacy.redaction import redact, redact_json, redact_messages


def prompt_hash(task: str, messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the hash of a prompt: its task and messages, whatever the conditions."""
    return sha256_hex({"task": task, "messages": list(messages)})


def split_of(prompt: str, golden_fraction: float) -> Split:
    """Return a prompt's split, fixed by its hash alone (INV-3)."""
    return Split.GOLDEN if int(prompt[:8], 16) / 0xFFFFFFFF < golden_fraction else Split.TRAIN


def example_of(
    request: CascadeRequest,
    answer: TeacherAnswer | None,
    settings: GatewaySettings,
    *,
    client: str,
    end_user: str,
    at: datetime,
) -> ExampleRow | None:
    """Return the example a teacher answer becomes, or ``None`` when the storage rules keep it out (INV-16).

    Everything stored is redacted; a placeholder can break a structured answer, which is then not stored.
    """
    if answer is None or not answer.is_usable or settings.teacher_licence is None:
        return None
    messages, completion, params = list(request.messages), answer.text, conditions(request.params)
    redactions = 0
    if settings.redacts:
        messages, in_messages = redact_messages(messages)
        completion, in_completion = redact(completion)
        params, in_params = redact_json(params)
        redactions = in_messages + in_completion + in_params
        if request.task.problem(completion):
            return None
    prompt = prompt_hash(request.task.name, messages)
    identity = {"task": request.task.name, "messages": messages}
    return ExampleRow(
        hash=prompt if params is None else sha256_hex({**identity, "params": params}),
        prompt_hash=prompt,
        task=request.task.name,
        messages=[dict(message) for message in messages],
        completion=completion,
        params=params,
        teacher_model=settings.teacher.model,
        licence=settings.teacher_licence.name,
        licence_url=settings.teacher_licence.url,
        split=split_of(prompt, settings.golden_fraction),
        redactions=redactions,
        origin=answer.purpose,
        client=client,
        end_user=end_user,
        at=at,
    )
