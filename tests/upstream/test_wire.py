"""Request bodies and answers."""

import json
from types import MappingProxyType
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.cascade.types import Answer
from gateway.upstream.base import UpstreamError
from gateway.upstream.wire import build_body, parse_answer
from tests.upstream.fakes import MESSAGES, completion, student_call, teacher_call


def parse(document: Any, call: Any = None) -> Answer:
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    return parse_answer(raw, call or teacher_call(), "asked-model")


def with_logprobs(*values: Any) -> dict[str, Any]:
    document = completion("a")
    document["choices"][0]["logprobs"] = {"content": [{"token": "t", "logprob": value} for value in values]}
    return document


@pytest.mark.req("FR-1.11", "FR-1.13")
def test_a_teacher_body_holds_the_params_and_nothing_of_the_clients_model() -> None:
    call = teacher_call(params={"max_tokens": 5, "model": "gpt-4o", "stream": True, "top_p": 0.5, "n": 9}, n=2)
    assert orjson.loads(build_body(call, "teacher-model")) == {
        "model": "teacher-model",
        "messages": MESSAGES,
        "n": 2,
        "temperature": 0.0,
        "max_tokens": 5,
        "top_p": 0.5,
    }


@pytest.mark.req("FR-1.11", "INV-6")
def test_a_student_body_asks_for_logprobs_and_all_samples_at_once() -> None:
    assert orjson.loads(build_body(student_call(), "default-v1")) == {
        "model": "default-v1",
        "messages": MESSAGES,
        "n": 3,
        "temperature": 0.7,
        "max_tokens": 100,
        "logprobs": True,
    }


def test_one_answer_at_the_endpoints_temperature_sends_neither_n_nor_temperature() -> None:
    body = orjson.loads(build_body(teacher_call(temperature=None), "m"))
    assert "n" not in body and "temperature" not in body and "logprobs" not in body


def test_any_mapping_is_a_message() -> None:
    assert (
        orjson.loads(build_body(teacher_call(messages=(MappingProxyType(MESSAGES[0]),)), "m"))["messages"] == MESSAGES
    )


@pytest.mark.req("FR-1.11")
def test_an_answer_is_its_content_alone() -> None:
    document = completion("visible", usage={"prompt_tokens": 7, "completion_tokens": 5})
    document["choices"][0]["message"] |= {"reasoning_content": "hidden", "reasoning": "hidden"}
    answer = parse(document)
    (choice,) = answer.completions
    assert (choice.text, choice.finish_reason, choice.in_tokens, choice.out_tokens) == ("visible", "stop", 7, 5)
    assert (choice.logprobs, choice.tool_calls, choice.refusal, choice.reasoning_tokens) == (None, None, None, 0)
    assert answer.model == "served-model"


@pytest.mark.req("FR-1.11")
@pytest.mark.parametrize(
    "content, text",
    [(None, ""), (5, ""), ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "x"}, 3], "ab")],
)
def test_content_may_be_null_or_parts(content: Any, text: str) -> None:
    document = completion("x")
    document["choices"][0]["message"]["content"] = content
    assert parse(document).completions[0].text == text


def test_a_missing_model_is_the_one_that_was_asked_for() -> None:
    assert parse(completion("a", model=None)).model == "asked-model"


@pytest.mark.req("FR-2.13", "FR-1.11")
@pytest.mark.parametrize(
    "value, read",
    [
        (None, "stop"),
        ("", "stop"),
        ("  ", "stop"),
        ("stop", "stop"),
        (" Length ", "length"),
        ("tool_calls", "tool_calls"),
        ("abort", "abort"),
        (5, "unknown"),
        (True, "unknown"),
        (["stop"], "unknown"),
        ("it ran out of room", "unknown"),
        ("x" * 41, "unknown"),
    ],
)
def test_finish_reasons_are_read_safely(value: Any, read: str) -> None:
    assert parse(completion("a", finish_reason=value)).completions[0].finish_reason == read


def test_a_missing_finish_reason_is_stop() -> None:
    document = completion("a")
    del document["choices"][0]["finish_reason"]
    assert parse(document).completions[0].finish_reason == "stop"


@pytest.mark.req("FR-1.11")
def test_junk_logprobs_are_left_out_and_none_is_above_certainty() -> None:
    (choice,) = parse(with_logprobs(-0.5, "x", True, None, -1, 0.25)).completions
    assert choice.logprobs == [-0.5, -1, 0.0]


@pytest.mark.req("FR-1.11")
def test_not_a_number_and_infinity_are_left_out() -> None:
    raw = json.dumps(with_logprobs(-0.5, float("nan"), float("-inf"))).encode().replace(b"-Infinity", b"-1e999")
    assert b"NaN" in raw and b"-1e999" in raw
    assert parse(raw).completions[0].logprobs == [-0.5]


def test_only_junk_logprobs_are_no_logprobs() -> None:
    assert parse(with_logprobs("x")).completions[0].logprobs is None


@pytest.mark.req("FR-1.11")
def test_nul_never_leaves_the_parser() -> None:
    parts = {"choices": [{"message": {"content": [{"type": "text", "text": "c\x00"}]}}]}
    assert parse(completion("a\x00b")).completions[0].text == "a\ufffdb"
    assert parse(parts).completions[0].text == "c\ufffd"


def test_lone_surrogates_and_bad_utf8_never_leave_the_parser() -> None:
    raw = json.dumps(completion("a\ud800b")).encode()
    assert parse(raw).completions[0].text == "a?b"
    assert parse(raw.replace(b"\\ud800", b"\xff")).completions[0].text == "a\ufffdb"


@pytest.mark.req("FR-1.41", "FR-1.11")
def test_tool_calls_come_in_openais_shape() -> None:
    document = completion("words beside")
    document["choices"][0]["message"]["tool_calls"] = [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": {"city": "Zürich"}}},
        {"function": {"name": "g"}},
        {"function": {"name": "h", "arguments": '{"a":1}'}, "id": ""},
        {"function": {"name": ""}},
        "junk",
    ]
    (choice,) = parse(document).completions
    assert choice.text == "words beside"
    assert choice.tool_calls is not None
    ids = [call.pop("id") for call in choice.tool_calls]
    assert choice.tool_calls == [
        {"type": "function", "function": {"name": "f", "arguments": '{"city":"Zürich"}'}},
        {"type": "function", "function": {"name": "g", "arguments": "{}"}},
        {"type": "function", "function": {"name": "h", "arguments": '{"a":1}'}},
    ]
    assert ids[0] == "call_1" and len(set(ids)) == 3
    assert all(len(made) == 29 and made.startswith("call_") for made in ids[1:])


@pytest.mark.req("FR-1.41")
@pytest.mark.parametrize("calls", [[], None, "x", [None]])
def test_no_tool_calls_are_none(calls: Any) -> None:
    document = completion("a")
    document["choices"][0]["message"]["tool_calls"] = calls
    assert parse(document).completions[0].tool_calls is None


@pytest.mark.req("FR-1.41")
def test_a_legacy_function_call_is_one_tool_call() -> None:
    document = completion("")
    document["choices"][0]["message"]["function_call"] = {"name": "f", "arguments": "{}"}
    calls = parse(document).completions[0].tool_calls
    assert calls is not None and [call["function"] for call in calls] == [{"name": "f", "arguments": "{}"}]


@pytest.mark.req("FR-1.11", "INV-16")
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not json",
        b"[]",
        b"3",
        b"{}",
        b'{"choices":null}',
        b'{"choices":[]}',
        b'{"choices":[3]}',
        b'{"choices":[{}]}',
        b'{"choices":[{"message":null}]}',
        b'{"choices":' + b"[" * 100_000,
    ],
)
def test_a_success_without_an_answer_is_a_failure(raw: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        parse(raw)
    assert (caught.value.kind, caught.value.status, str(caught.value)) == ("bad_response", 200, "bad_response")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=12,
)
tool_call = st.fixed_dictionaries(
    {},
    optional={
        "id": json_values,
        "type": json_values | st.just("function"),
        "function": st.fixed_dictionaries({}, optional={"name": st.text(max_size=3), "arguments": json_values}),
    },
)
message = st.fixed_dictionaries(
    {},
    optional={
        "content": json_values,
        "refusal": json_values,
        "tool_calls": st.lists(tool_call, max_size=2) | json_values,
        "function_call": json_values,
    },
)
choice = st.fixed_dictionaries(
    {"message": message | json_values},
    optional={
        "finish_reason": json_values,
        "logprobs": st.fixed_dictionaries(
            {"content": st.lists(st.fixed_dictionaries({"logprob": json_values}), max_size=3) | json_values}
        )
        | json_values,
    },
)
counts = st.fixed_dictionaries(
    {},
    optional={
        "prompt_tokens": json_values | st.integers(),
        "completion_tokens": json_values | st.integers(),
        "completion_tokens_details": st.fixed_dictionaries({"reasoning_tokens": json_values}) | json_values,
        "prompt_tokens_details": st.fixed_dictionaries({"cached_tokens": json_values}) | json_values,
    },
)
body = st.fixed_dictionaries(
    {"choices": st.lists(choice | json_values, max_size=3) | json_values},
    optional={"usage": counts | json_values, "model": json_values},
)


@pytest.mark.req("FR-1.11", "INV-7")
@settings(max_examples=50, deadline=None)
@given(document=body | json_values)
def test_any_json_body_is_an_answer_or_an_upstream_error(document: Any) -> None:
    try:
        answer = parse(document)
    except UpstreamError:
        return
    assert answer.completions
    for found in answer.completions:
        assert 0 <= found.reasoning_tokens <= found.out_tokens and 0 <= found.cached_tokens <= found.in_tokens
        assert all(value <= 0 for value in found.logprobs or ())
        functions = [call["function"] for call in found.tool_calls or () if call["type"] == "function"]
        assert all(isinstance(function["arguments"], str) for function in functions)
        found.text.encode()


@pytest.mark.req("FR-1.11")
@given(raw=st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_an_upstream_error(raw: bytes) -> None:
    with pytest.raises(UpstreamError):
        parse(raw)
