"""A served request as OpenAI's ``chat.completion`` or its stream of chunks, with the ``ratchet`` block. Pure.

``usage`` is the served answer's, as if its model had answered alone; what the request really cost, every call of it,
is ``ratchet.cost_nusd``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

import orjson

from common.canonical import sha256_hex
from common.ids import COMPLETION_PREFIX, request_label
from gateway.cascade.serve import Served
from gateway.cascade.types import Completion, Role
from gateway.wire.chat_request import ChatRequest

FINISH_REASONS = frozenset({"stop", "length", "content_filter"})
SERVICE_TIER = "default"
PIECE_CHARS = 48
DONE = b"data: [DONE]\n\n"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a response is written from. ``created`` is in Unix seconds; ``task`` is the name it was served under.

    ``audited`` is ``"pending"`` for a drawn audit that is still owed, else the verdict's word or ``False``.
    """

    served: Served
    request: ChatRequest
    request_id: UUID
    created: int
    task: str
    is_stored: bool = False
    audited: str | bool = False


def chat_completion(reply: Reply) -> Json:
    """Return the body of a response that is not streamed."""
    return {
        **_head(reply, "chat.completion"),
        "choices": [_choice(reply, index, choice) for index, choice in enumerate(reply.served.choices)],
        "usage": usage(reply.served),
        "ratchet": ratchet_block(reply),
    }


def sse_chunks(reply: Reply) -> Iterator[bytes]:
    """Yield a decided answer as Server-Sent Events of ``chat.completion.chunk`` objects, ending in ``[DONE]``.

    Choice by choice: its role, its content in pieces, one finish chunk with the ``ratchet`` block. With
    ``include_usage`` every chunk has ``usage: null`` and one more without choices carries the totals and the block.
    """
    head = _head(reply, "chat.completion.chunk")
    wants_usage = reply.request.include_usage
    if wants_usage:
        head["usage"] = None
    block = ratchet_block(reply)
    for index, choice in enumerate(reply.served.choices):
        for delta in _deltas(reply, choice):
            logprobs = _logprobs(reply.request) if delta.get("content") else None
            yield _event({**head, "choices": [_chunk_choice(index, delta, None, logprobs)]})
        finish = _chunk_choice(index, {}, finish_reason(choice, reply.request), None)
        yield _event({**head, "choices": [finish], "ratchet": block})
    if wants_usage:
        yield _event({**head, "choices": [], "usage": usage(reply.served), "ratchet": block})
    yield DONE


def usage(served: Served) -> Json:
    """Return the served answer's tokens: the prompt once, every choice's output."""
    choices = served.choices
    prompt_tokens = choices[0].in_tokens if choices else 0
    completion_tokens = sum(choice.out_tokens for choice in choices)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": choices[0].cached_tokens if choices else 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": sum(choice.reasoning_tokens for choice in choices),
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def ratchet_block(reply: Reply) -> Json:
    """Return what the cascade decided and what it cost, in nano-USD."""
    served = reply.served
    return {
        "request_id": request_label(reply.request_id),
        "task": reply.task,
        "served_by": served.served_by.value,
        "route": served.route.value,
        "version": served.version.number if served.version else None,
        "confidence": served.scored.confidence if served.is_student_sampled else None,
        "threshold": served.threshold,
        "escalated": served.escalated,
        "cost_nusd": served.bill.cost_nusd,
        "all_teacher_nusd": served.bill.baseline_nusd,
        "audited": reply.audited,
        "stored": reply.is_stored,
    }


def system_fingerprint(served: Served) -> str:
    """Return the hash of what decided the answer: the version's serving configuration, or the teacher's model."""
    if served.served_by is Role.STUDENT and served.version is not None and served.version.fingerprint:
        return served.version.fingerprint
    return _fingerprint_of(served.model)


@lru_cache(maxsize=256)
def _fingerprint_of(model: str) -> str:
    return f"fp_{sha256_hex(model)[:12]}"


def finish_reason(choice: Completion, request: ChatRequest) -> str:
    """Return a reason that OpenAI's clients know; calls are announced only when there are calls."""
    calls = _calls(request, choice)
    if calls and choice.finish_reason not in ("length", "content_filter"):
        return next(iter(calls))
    return choice.finish_reason if choice.finish_reason in FINISH_REASONS else "stop"


def _head(reply: Reply, kind: str) -> Json:
    return {
        "id": COMPLETION_PREFIX + reply.request_id.hex,
        "object": kind,
        "created": reply.created,
        "model": reply.served.model,
        "system_fingerprint": system_fingerprint(reply.served),
        "service_tier": SERVICE_TIER,
    }


def _choice(reply: Reply, index: int, choice: Completion) -> Json:
    message: Json = {
        "role": "assistant",
        "content": _content(choice),
        "refusal": choice.refusal,
        "annotations": [],
        **_calls(reply.request, choice),
    }
    return {
        "index": index,
        "message": message,
        "logprobs": _logprobs(reply.request),
        "finish_reason": finish_reason(choice, reply.request),
    }


def _content(choice: Completion) -> str | None:
    """Calls and refusals come without text unless the model wrote some; any other answer is a string."""
    return choice.text or (None if choice.tool_calls or choice.refusal else "")


def _calls(request: ChatRequest, choice: Completion) -> Json:
    """Return the calls of a choice in the form that the client asked in, one when it allowed no parallel ones."""
    calls = choice.tool_calls or []
    if request.uses_legacy_functions:
        functions = [call for call in calls if "function" in call]
        return {"function_call": _called(functions[0])} if functions else {}
    if request.params.values.get("parallel_tool_calls") is False:
        calls = calls[:1]
    return {"tool_calls": [_tool_call(call) for call in calls]} if calls else {}


def _tool_call(call: Json) -> Json:
    """Return a call's documented fields; a call of another kind than we know is the teacher's, and stays as it is."""
    if "function" not in call:
        return call
    return {"id": call["id"], "type": "function", "function": _called(call)}


def _called(call: Json) -> Json:
    return {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}


def _logprobs(request: ChatRequest) -> Json | None:
    """The cascade keeps no token texts, so a client that asks for log-probabilities learns that there are none."""
    return {"content": None, "refusal": None} if request.params.values.get("logprobs") else None


def _deltas(reply: Reply, choice: Completion) -> Iterator[Json]:
    yield {"role": "assistant", "content": "" if _content(choice) is not None else None, "refusal": None}
    for start in range(0, len(choice.text), PIECE_CHARS):
        yield {"content": choice.text[start : start + PIECE_CHARS]}
    if choice.refusal:
        yield {"refusal": choice.refusal}
    calls = _calls(reply.request, choice)
    for index, call in enumerate(calls.get("tool_calls", ())):
        yield {"tool_calls": [{"index": index, **call}]}
    if "function_call" in calls:
        yield calls


def _chunk_choice(index: int, delta: Json, reason: str | None, logprobs: Json | None) -> Json:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}


def _event(chunk: Json) -> bytes:
    return b"data: " + orjson.dumps(chunk) + b"\n\n"
