"""Whatever the bytes: a ``ChatRequest`` or an ``APIError``, never anything else."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.settings import GatewaySettings
from gateway.wire.chat_request import ChatRequest, parse_chat_request
from gateway.wire.errors import APIError

CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
FULL: dict[str, Any] = {
    "model": "ratchet",
    "messages": [
        {"role": "developer", "content": "be short", "name": "ops"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "u"}}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
    ],
    "temperature": 1,
    "top_p": 1,
    "n": 2,
    "stop": ["x"],
    "max_tokens": 5,
    "max_completion_tokens": 5,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "seed": 1,
    "logit_bias": {"5": 1},
    "logprobs": True,
    "top_logprobs": 2,
    "user": "u",
    "safety_identifier": "s",
    "store": True,
    "metadata": {"ratchet_task": "t", "ratchet_store": "true"},
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {}, "strict": True}}],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "parallel_tool_calls": True,
    "stream": True,
    "stream_options": {"include_usage": True},
    "service_tier": "auto",
}
SETTINGS = GatewaySettings()

scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
junk = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


def outcome(raw: bytes) -> ChatRequest | APIError:
    """Parse, and check that a refusal can be written."""
    try:
        return parse_chat_request(raw, SETTINGS)
    except APIError as error:
        assert error.status == 400
        orjson.dumps(error.body)
        return error


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return ``value`` with the item at ``path`` replaced, or left out for ``...``."""
    if not path:
        return new
    key, *rest = path
    pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    changed = [(k, replaced(v, tuple(rest), new) if k == key else v) for k, v in pairs]
    kept = [(k, v) for k, v in changed if v is not ...]
    return dict(kept) if isinstance(value, dict) else [v for _, v in kept]


@pytest.mark.req("FR-1.10")
def test_the_request_with_every_field_is_valid() -> None:
    assert isinstance(outcome(orjson.dumps(FULL)), ChatRequest)


@pytest.mark.req("FR-1.10")
@given(st.binary(max_size=64))
def test_any_bytes_are_refused_or_parsed(raw: bytes) -> None:
    outcome(raw)


@pytest.mark.req("FR-1.10")
@given(junk)
def test_any_json_is_refused_or_parsed(document: Any) -> None:
    outcome(orjson.dumps(document))


@pytest.mark.req("FR-1.10")
@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(sorted(FULL)), junk), st.booleans())
def test_any_known_fields_are_refused_or_parsed(fields: dict[str, Any], keeps_messages: bool) -> None:
    outcome(orjson.dumps({**fields, "model": "m", **({"messages": FULL["messages"]} if keeps_messages else {})}))


@pytest.mark.req("FR-1.10")
@given(st.sampled_from(places(FULL)[1:]), junk | st.just(...))
def test_one_changed_value_of_a_valid_request_is_refused_or_parsed(path: tuple[Any, ...], new: Any) -> None:
    result = outcome(orjson.dumps(replaced(FULL, path, new)))
    if isinstance(result, ChatRequest):
        orjson.dumps([result.messages, dict(result.params.values), result.metadata])


@pytest.mark.req("FR-1.10")
@pytest.mark.parametrize("new", [None, True, 0, -1, 1.5, "", "x", [], [None], {}, {"x": 1}, ...], ids=str)
def test_every_value_swapped_for_junk_is_refused_or_parsed(new: Any) -> None:
    for path in places(FULL)[1:]:
        outcome(orjson.dumps(replaced(FULL, path, new)))
