"""One row per rule of the request format: what is refused, with which code, and where the error points."""

from typing import Any

import orjson
import pytest

from gateway.settings import GatewaySettings
from gateway.wire.chat_request import parse_chat_request
from tests.wire.conftest import parse, refusal

ME = {"role": "user", "content": "hi"}
CALL = {"id": "call_a", "type": "function", "function": {"name": "lookup", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}


def deep(levels: int) -> dict[str, Any]:
    """A schema of nested objects."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels - 1):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


def calls(**changes: Any) -> list[dict[str, Any]]:
    """A conversation with one changed tool call; a key set to ``...`` is left out."""
    call = {name: value for name, value in {**CALL, **changes}.items() if value is not ...}
    return [ME, {"role": "assistant", "content": None, "tool_calls": [call]}]


def part(value: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": [value]}]}


def json_schema(**wrapper: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": wrapper}}


REFUSED = [
    # model and messages
    ({"model": ...}, "missing_required_parameter", "model"),
    ({"model": None}, "invalid_type", "model"),
    ({"model": 7}, "invalid_type", "model"),
    ({"model": ""}, "empty_string", "model"),
    ({"messages": ...}, "missing_required_parameter", "messages"),
    ({"messages": None}, "invalid_type", "messages"),
    ({"messages": 7}, "invalid_type", "messages"),
    ({"messages": "hi"}, "invalid_type", "messages"),
    ({"messages": {}}, "invalid_type", "messages"),
    ({"messages": []}, "empty_array", "messages"),
    ({"messages": [ME] * 257}, "array_above_max_length", "messages"),
    ({"messages": [None]}, "invalid_type", "messages[0]"),
    ({"messages": ["hi"]}, "invalid_type", "messages[0]"),
    ({"messages": [{}]}, "missing_required_parameter", "messages[0].role"),
    ({"messages": [ME, {"content": "x"}]}, "missing_required_parameter", "messages[1].role"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "invalid_value", "messages[0].role"),
    ({"messages": [{"role": ["user"], "content": "x"}]}, "invalid_type", "messages[0].role"),
    ({"messages": [{"role": "user"}]}, "missing_required_parameter", "messages[0].content"),
    ({"messages": [ME, {"role": "user", "content": 5}]}, "invalid_type", "messages[1].content"),
    ({"messages": [{"role": "system", "content": None}]}, "invalid_type", "messages[0].content"),
    ({"messages": [{"role": "user", "content": "x", "name": 4}]}, "invalid_type", "messages[0].name"),
    ({"messages": [{"role": "user", "content": "x", "name": ""}]}, "empty_string", "messages[0].name"),
    ({"messages": [{"role": "user", "content": "x" * 120_001}]}, "context_length_exceeded", "messages"),
    # content parts
    ({"messages": [{"role": "user", "content": []}]}, "empty_array", "messages[0].content"),
    (part("x"), "invalid_type", "messages[0].content[0]"),
    (part({"text": "x"}), "missing_required_parameter", "messages[0].content[0].type"),
    (part({"type": "video"}), "invalid_value", "messages[0].content[0].type"),
    (part({"type": "text"}), "missing_required_parameter", "messages[0].content[0].text"),
    (part({"type": "text", "text": 1}), "invalid_type", "messages[0].content[0].text"),
    (part({"type": "refusal", "refusal": "no"}), "invalid_value", "messages[0].content[0].type"),
    (part({"type": "image_url"}), "missing_required_parameter", "messages[0].content[0].image_url"),
    (part({"type": "image_url", "image_url": "u"}), "invalid_type", "messages[0].content[0].image_url"),
    (part({"type": "image_url", "image_url": {"url": ""}}), "empty_string", "messages[0].content[0].image_url.url"),
    (
        part({"type": "image_url", "image_url": {"url": "u", "detail": "max"}}),
        "invalid_value",
        "messages[0].content[0].image_url.detail",
    ),
    (part({"type": "image_url", "image_url": {"url": "u"}}, "system"), "invalid_value", "messages[0].content[0].type"),
    (
        part({"type": "input_audio", "input_audio": {"data": "AA", "format": "ogg"}}),
        "invalid_value",
        "messages[0].content[0].input_audio.format",
    ),
    (part({"type": "file", "file": {"filename": "a"}}), "invalid_value", "messages[0].content[0].file"),
    (part({"type": "file", "file": {"file_id": 1}}), "invalid_type", "messages[0].content[0].file.file_id"),
    # assistant turns, calls and their answers
    ({"messages": [ME, {"role": "assistant", "content": None}]}, "invalid_type", "messages[1].content"),
    ({"messages": [ME, {"role": "assistant"}]}, "missing_required_parameter", "messages[1].content"),
    ({"messages": [ME, {"role": "assistant", "content": "x", "refusal": 1}]}, "invalid_type", "messages[1].refusal"),
    (
        {"messages": [ME, {"role": "assistant", "content": None, "tool_calls": {}}]},
        "invalid_type",
        "messages[1].tool_calls",
    ),
    (
        {"messages": [ME, {"role": "assistant", "content": None, "tool_calls": []}]},
        "invalid_type",
        "messages[1].content",
    ),
    ({"messages": calls(id=...)}, "missing_required_parameter", "messages[1].tool_calls[0].id"),
    ({"messages": calls(id="")}, "empty_string", "messages[1].tool_calls[0].id"),
    ({"messages": calls(type=...)}, "missing_required_parameter", "messages[1].tool_calls[0].type"),
    ({"messages": calls(type="custom")}, "unsupported_value", "messages[1].tool_calls[0].type"),
    ({"messages": calls(function=...)}, "missing_required_parameter", "messages[1].tool_calls[0].function"),
    ({"messages": calls(function="f")}, "invalid_type", "messages[1].tool_calls[0].function"),
    (
        {"messages": calls(function={"arguments": "{}"})},
        "missing_required_parameter",
        "messages[1].tool_calls[0].function.name",
    ),
    (
        {"messages": calls(function={"name": "f"})},
        "missing_required_parameter",
        "messages[1].tool_calls[0].function.arguments",
    ),
    (
        {"messages": calls(function={"name": "f", "arguments": {}})},
        "invalid_type",
        "messages[1].tool_calls[0].function.arguments",
    ),
    ({"messages": calls()}, "invalid_value", "messages[1].tool_calls[0]"),
    ({"messages": [*calls(), ME]}, "invalid_value", "messages[1].tool_calls[0]"),
    (
        {"messages": [ME, {"role": "tool", "tool_call_id": "call_a", "content": "42"}]},
        "invalid_value",
        "messages[1].tool_call_id",
    ),
    (
        {"messages": [*calls(), {"role": "tool", "content": "42"}]},
        "missing_required_parameter",
        "messages[2].tool_call_id",
    ),
    (
        {"messages": [*calls(), {"role": "tool", "tool_call_id": "call_a"}]},
        "missing_required_parameter",
        "messages[2].content",
    ),
    ({"messages": [ME, {"role": "function", "content": "1"}]}, "missing_required_parameter", "messages[1].name"),
    ({"messages": [ME, {"role": "function", "name": "f"}]}, "missing_required_parameter", "messages[1].content"),
    (
        {"messages": [ME, {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": 1}}]},
        "invalid_type",
        "messages[1].function_call.arguments",
    ),
    # sampling
    ({"temperature": 3}, "decimal_above_max_value", "temperature"),
    ({"temperature": -0.1}, "decimal_below_min_value", "temperature"),
    ({"temperature": "1"}, "invalid_type", "temperature"),
    ({"temperature": True}, "invalid_type", "temperature"),
    ({"top_p": 1.01}, "decimal_above_max_value", "top_p"),
    ({"n": 0}, "integer_below_min_value", "n"),
    ({"n": 5}, "unsupported_value", "n"),
    ({"n": True}, "invalid_type", "n"),
    ({"n": 2.0}, "invalid_type", "n"),
    ({"stop": [*"abcde"]}, "array_above_max_length", "stop"),
    ({"stop": []}, "empty_array", "stop"),
    ({"stop": ""}, "empty_string", "stop"),
    ({"stop": ["x", ""]}, "empty_string", "stop[1]"),
    ({"stop": [1]}, "invalid_type", "stop[0]"),
    ({"stop": 1}, "invalid_type", "stop"),
    ({"max_tokens": 0}, "integer_below_min_value", "max_tokens"),
    ({"max_completion_tokens": 0}, "integer_below_min_value", "max_completion_tokens"),
    ({"max_completion_tokens": -1}, "integer_below_min_value", "max_completion_tokens"),
    ({"max_completion_tokens": True}, "invalid_type", "max_completion_tokens"),
    ({"max_completion_tokens": 5.0}, "invalid_type", "max_completion_tokens"),
    ({"max_tokens": 5, "max_completion_tokens": 6}, "invalid_value", "max_tokens"),
    ({"presence_penalty": 2.1}, "decimal_above_max_value", "presence_penalty"),
    ({"frequency_penalty": -2.1}, "decimal_below_min_value", "frequency_penalty"),
    ({"seed": 1.5}, "invalid_type", "seed"),
    ({"seed": 2**63}, "integer_above_max_value", "seed"),
    ({"seed": 1e30}, "integer_above_max_value", "seed"),
    ({"max_tokens": -1e30}, "integer_below_min_value", "max_tokens"),
    ({"logit_bias": []}, "invalid_type", "logit_bias"),
    ({"logit_bias": {"x": 1}}, "invalid_value", "logit_bias"),
    ({"logit_bias": {"5": 101}}, "decimal_above_max_value", "logit_bias.5"),
    ({"logit_bias": {"5": "1"}}, "invalid_type", "logit_bias.5"),
    ({"logit_bias": {str(token): 1 for token in range(1025)}}, "invalid_value", "logit_bias"),
    ({"logprobs": 1}, "invalid_type", "logprobs"),
    ({"top_logprobs": 2}, "invalid_value", "top_logprobs"),
    ({"top_logprobs": 2, "logprobs": False}, "invalid_value", "top_logprobs"),
    ({"top_logprobs": 21, "logprobs": True}, "integer_above_max_value", "top_logprobs"),
    # response format
    ({"response_format": "json"}, "invalid_type", "response_format"),
    ({"response_format": {}}, "missing_required_parameter", "response_format.type"),
    ({"response_format": {"type": "xml"}}, "invalid_value", "response_format.type"),
    ({"response_format": {"type": "json_schema"}}, "missing_required_parameter", "response_format.json_schema"),
    (json_schema(), "missing_required_parameter", "response_format.json_schema.name"),
    (json_schema(name="a b"), "invalid_value", "response_format.json_schema.name"),
    (json_schema(name="a\n"), "invalid_value", "response_format.json_schema.name"),
    (json_schema(name="a", schema=[]), "invalid_type", "response_format.json_schema.schema"),
    (json_schema(name="a", schema=deep(17)), "invalid_value", "response_format.json_schema.schema"),
    (json_schema(name="a", schema={"x": "y" * 65_536}), "invalid_value", "response_format.json_schema.schema"),
    (json_schema(name="a", strict="yes"), "invalid_type", "response_format.json_schema.strict"),
    # tools
    ({"tools": {}}, "invalid_type", "tools"),
    ({"tools": []}, "empty_array", "tools"),
    ({"tools": [TOOL] * 129}, "array_above_max_length", "tools"),
    ({"tools": [1]}, "invalid_type", "tools[0]"),
    ({"tools": [{"type": "custom"}]}, "unsupported_value", "tools[0].type"),
    ({"tools": [{"type": "function"}]}, "missing_required_parameter", "tools[0].function"),
    ({"tools": [{"type": "function", "function": {}}]}, "missing_required_parameter", "tools[0].function.name"),
    ({"tools": [{"type": "function", "function": {"name": "a.b"}}]}, "invalid_value", "tools[0].function.name"),
    (
        {"tools": [{"type": "function", "function": {"name": "a", "parameters": 1}}]},
        "invalid_type",
        "tools[0].function.parameters",
    ),
    ({"tool_choice": "auto"}, "invalid_value", "tool_choice"),
    ({"tools": [TOOL], "tool_choice": "any"}, "invalid_value", "tool_choice"),
    ({"tools": [TOOL], "tool_choice": 1}, "invalid_type", "tool_choice"),
    ({"tools": [TOOL], "tool_choice": {"type": "function"}}, "missing_required_parameter", "tool_choice.function"),
    (
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "other"}}},
        "invalid_value",
        "tool_choice",
    ),
    ({"parallel_tool_calls": False}, "invalid_value", "parallel_tool_calls"),
    ({"tools": [TOOL], "parallel_tool_calls": "no"}, "invalid_type", "parallel_tool_calls"),
    ({"functions": []}, "empty_array", "functions"),
    ({"functions": [{"name": ""}]}, "empty_string", "functions[0].name"),
    ({"function_call": "auto"}, "invalid_value", "function_call"),
    ({"functions": [{"name": "a"}], "function_call": "required"}, "invalid_value", "function_call"),
    ({"functions": [{"name": "a"}], "function_call": {"name": "b"}}, "invalid_value", "function_call"),
    ({"functions": [{"name": "a"}], "tools": [TOOL]}, "invalid_value", "functions"),
    # streaming
    ({"stream": "true"}, "invalid_type", "stream"),
    ({"stream_options": {"include_usage": True}}, "invalid_value", "stream_options"),
    ({"stream": False, "stream_options": {}}, "invalid_value", "stream_options"),
    ({"stream": True, "stream_options": []}, "invalid_type", "stream_options"),
    ({"stream": True, "stream_options": {"include_usage": 1}}, "invalid_type", "stream_options.include_usage"),
    # who and what for
    ({"metadata": "x"}, "invalid_type", "metadata"),
    ({"metadata": {f"k{i}": "v" for i in range(17)}}, "object_above_max_properties", "metadata"),
    ({"metadata": {"k" * 65: "v"}}, "string_above_max_length", "metadata"),
    ({"metadata": {"k": "v" * 513}}, "string_above_max_length", "metadata.k"),
    ({"metadata": {"k": 1}}, "invalid_type", "metadata.k"),
    ({"metadata": {"a b": 1}}, "invalid_type", "metadata"),
    ({"metadata": {"ratchet_task": "tickets\n"}}, "invalid_value", "metadata.ratchet_task"),
    ({"metadata": {"ratchet_task": ""}}, "invalid_value", "metadata.ratchet_task"),
    ({"metadata": {"ratchet_task": "t" * 65}}, "invalid_value", "metadata.ratchet_task"),
    ({"metadata": {"ratchet_store": "flase"}}, "invalid_value", "metadata.ratchet_store"),
    ({"store": "false"}, "invalid_type", "store"),
    ({"user": 1}, "invalid_type", "user"),
    ({"safety_identifier": {}}, "invalid_type", "safety_identifier"),
    ({"service_tier": "gold"}, "invalid_value", "service_tier"),
]


@pytest.mark.req("FR-1.10", "FR-1.14", "INV-12")
@pytest.mark.parametrize(("fields", "code", "param"), REFUSED, ids=lambda value: str(value)[:50])
def test_a_broken_rule_is_a_400_naming_the_field(fields: dict[str, Any], code: str, param: str) -> None:
    error = refusal(**fields)
    assert (error.status, error.type, error.code, error.param) == (400, "invalid_request_error", code, param)
    assert error.headers == {"X-Should-Retry": "false"}


BAD_JSON = [
    (b"", None),
    (b"{", None),
    (b'{"a": NaN}', None),
    (b'{"a": Infinity}', None),
    (b'{"a": 1e999}', None),
    (b'{"a": "\xff"}', None),
    (b"[" * 100_000 + b"]" * 100_000, None),
    (b'{"a": ' + b"[" * 150 + b"]" * 150 + b"}", None),
    (b'{"messages": [{"role": "user", "content": "cut \\ud83d"}]}', "messages[0].content"),
    (b'{"messages": [{"role": "user", "content": "cut \xed\xa0\xbd"}]}', "messages[0].content"),
    (b'{"tools": [{"function": {"name": "\\udc00"}}]}', "tools[0].function.name"),
    (b'{"metadata": {"k": "\\ud800"}}', "metadata.k"),
    (b'{"metadata": {"\\ud800": "v"}}', "metadata"),
    (b'{"\\ud800": "v"}', None),
    (b'{"user": "\\ud800"}', "user"),
]


@pytest.mark.req("FR-1.10", "INV-12")
@pytest.mark.parametrize(("raw", "param"), BAD_JSON, ids=lambda value: str(value)[:50])
def test_anything_but_strict_json_is_a_400(raw: bytes, param: str | None) -> None:
    error = refusal(raw)
    assert (error.status, error.code, error.param) == (400, "invalid_json", param)
    orjson.dumps(error.body)


@pytest.mark.req("FR-1.10")
@pytest.mark.parametrize("raw", [b"[]", b"7", b"null", b'"x"'])
def test_a_body_that_is_no_object_is_a_400(raw: bytes) -> None:
    assert refusal(raw).code == "invalid_type"


@pytest.mark.req("FR-1.10")
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": [{"role": "user", "content": "a\0b"}]}, "messages[0].content"),
        ({"user": "\0"}, "user"),
        ({"metadata": {"k": "\0"}}, "metadata.k"),
        ({"metadata": {"\0": "v"}}, "metadata"),
        ({"unknown": [{"x": "\0"}]}, "unknown[0].x"),
    ],
)
def test_a_nul_character_is_a_400_since_postgresql_cannot_store_it(fields: dict[str, Any], param: str) -> None:
    error = refusal(**fields)
    assert (error.code, error.param) == ("invalid_value", param)


@pytest.mark.req("FR-1.10")
def test_a_paired_surrogate_escape_and_an_escaped_backslash_before_u0000_are_fine() -> None:
    raw = rb'{"model": "m", "messages": [{"role": "user", "content": "\ud83d\ude00 \\u0000"}]}'
    assert parse_chat_request(raw, GatewaySettings()).messages[0]["content"] == "\U0001f600 \\u0000"


@pytest.mark.req("FR-1.10")
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (b"9" * 30, "integer_above_max_value"),
        (b"18446744073709551616", "integer_above_max_value"),
        (b"-9223372036854775809", "invalid_type"),
        (b"-" + b"9" * 30, "integer_below_min_value"),
    ],
)
def test_an_integer_beyond_64_bits_is_refused(number: bytes, code: str) -> None:
    raw = b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "seed": ' + number + b"}"
    assert (refusal(raw).code, refusal(raw).param) == (code, "seed")


@pytest.mark.req("INV-12")
def test_an_error_never_quotes_the_request() -> None:
    marker = "zebra-4711"
    for fields in (
        {"messages": [{"role": marker, "content": "x"}]},
        {"messages": [{"role": "user", "content": {marker: marker}}]},
        {"metadata": {f"{marker} secret": 1}},
        {"stop": {marker: 1}},
        {"service_tier": marker},
        {"tool_choice": marker, "tools": [TOOL]},
        {"response_format": {"type": marker}},
    ):
        assert marker not in orjson.dumps(refusal(**fields).body).decode()


@pytest.mark.req("FR-1.10")
def test_limits_come_from_the_settings_and_zero_means_none() -> None:
    two = [ME, ME]
    assert refusal(settings=GatewaySettings(max_messages=1), messages=two).code == "array_above_max_length"
    assert len(parse(GatewaySettings(max_messages=2), messages=two).messages) == 2
    assert parse(GatewaySettings(max_messages=0), messages=[ME] * 300).messages == [ME] * 300
    assert refusal(settings=GatewaySettings(max_input_chars=3), messages=two).code == "context_length_exceeded"
    assert len(parse(GatewaySettings(max_input_chars=4), messages=two).messages) == 2
    assert parse(GatewaySettings(max_input_chars=0), messages=[{"role": "user", "content": "x" * 200_000}])
    assert refusal(settings=GatewaySettings(max_n=1), n=2).code == "unsupported_value"
    assert parse(GatewaySettings(max_n=6), n=5).params.n == 5


@pytest.mark.req("FR-1.10")
@pytest.mark.parametrize(
    ("message", "n_chars"),
    [
        ({"role": "user", "content": "abc", "name": "de"}, 5),
        ({"role": "user", "content": [{"type": "text", "text": "abc"}, {"type": "text", "text": "de"}]}, 5),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "abcde"}]}, 5),
        ({"role": "assistant", "content": None, "refusal": "abcde"}, 5),
        ({"role": "assistant", "content": "a", "function_call": {"name": "bc", "arguments": "de"}}, 5),
        ({"role": "function", "name": "ab", "content": "cde"}, 5),
        ({"role": "user", "content": "abcde", "vendor": "ignored"}, 5),
    ],
)
def test_every_text_that_a_model_reads_counts_toward_the_input_limit(message: dict[str, Any], n_chars: int) -> None:
    assert parse(GatewaySettings(max_input_chars=n_chars), messages=[message])
    error = refusal(settings=GatewaySettings(max_input_chars=n_chars - 1), messages=[message])
    assert error.code == "context_length_exceeded"


@pytest.mark.req("FR-1.10")
def test_the_deepest_allowed_schema_passes() -> None:
    fields = json_schema(name="a", schema=deep(16))
    assert parse(**fields).params.values == fields
