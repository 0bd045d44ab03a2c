"""The OpenAI wire: a call becomes a request body, a response body becomes an answer. Pure.

Reading is strict about there being an answer at all and tolerant about everything optional around it.
"""

import json
import re
from math import isfinite
from typing import Any

import orjson

from gateway.cascade.types import Answer, Call, Completion, Role
from gateway.upstream.failures import bad_response
from gateway.upstream.toolcalls import read_tool_calls
from gateway.upstream.usage import read_usage, share_usage

MODEL_MAX_CHARS = 200
_FINISH_REASON = re.compile(r"[a-z_-]{1,40}")
_OURS = frozenset({"model", "messages", "n", "temperature", "stream", "stream_options"})


def build_body(call: Call, model: str) -> bytes:
    """Encode ``call`` for ``model``, which is never the client's. Students report log-probabilities."""
    body: dict[str, Any] = {name: value for name, value in call.params.items() if name not in _OURS}
    body["model"] = model
    body["messages"] = call.messages
    if call.n > 1:
        body["n"] = call.n
    if call.temperature is not None:
        body["temperature"] = call.temperature
    if call.role is Role.STUDENT:
        body["logprobs"] = True
    return orjson.dumps(body, default=dict)


def parse_answer(raw: bytes, call: Call, model: str) -> Answer:
    """Read the body of a 2xx answer to ``call``; raises ``UpstreamError`` when there is no answer in it."""
    document = _load(raw)
    entries = document.get("choices") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise bad_response()
    choices = [_choice(entry) for entry in entries]
    share_usage(read_usage(document.get("usage")), choices, call.messages)
    reported = document.get("model")
    return Answer(choices, model=reported[:MODEL_MAX_CHARS] if isinstance(reported, str) and reported else model)


def _load(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _load_leniently(raw)


def _load_leniently(raw: bytes) -> Any:
    """Accept what Python's parser does (NaN, Infinity, lone surrogates, bad UTF-8) and make it plain JSON."""
    try:
        document = json.loads(raw.decode("utf-8", "replace"), parse_constant=_finite, parse_float=_finite)
        return orjson.loads(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise bad_response() from None


def _finite(text: str) -> float | None:
    number = float(text)
    return number if isfinite(number) else None


def _choice(entry: Any) -> Completion:
    message = entry.get("message") if isinstance(entry, dict) else None
    if not isinstance(message, dict):
        raise bad_response()
    refusal = message.get("refusal")
    return Completion(
        text=_text(message.get("content")),
        finish_reason=_finish_reason(entry.get("finish_reason")),
        logprobs=_logprobs(entry.get("logprobs")),
        tool_calls=read_tool_calls(message),
        refusal=refusal if isinstance(refusal, str) and refusal else None,
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return _storable(content)
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return _storable("".join(text for text in texts if isinstance(text, str)))


def _storable(text: str) -> str:
    """PostgreSQL refuses NUL in any text, and with it the row of the whole request."""
    return text.replace("\x00", "\ufffd")


def _finish_reason(value: Any) -> str:
    if value is None or value == "stop":
        return "stop"
    word = value.strip().lower() if isinstance(value, str) else "?"
    if not word:
        return "stop"
    return word if _FINISH_REASON.fullmatch(word) else "unknown"


def _logprobs(block: Any) -> list[float] | None:
    content = block.get("content") if isinstance(block, dict) else None
    if not isinstance(content, list):
        return None
    found: list[Any] = [entry.get("logprob") for entry in content if isinstance(entry, dict)]
    # Rounding puts some servers' certainties a hair above 0; a probability above 1 would inflate the confidence.
    return [min(value, 0.0) for value in found if type(value) in (int, float) and isfinite(value)] or None
