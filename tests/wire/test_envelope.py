"""Completions and chunks as the official SDK reads them."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from gateway.cascade.types import Completion
from gateway.wire.envelope import Reply, chat_completion, sse_chunks

MakeReply = Callable[..., Reply]
TOOL = {"type": "function", "function": {"name": "lookup"}}
CALLS = [
    {"id": f"call_{name}", "type": "function", "function": {"name": "lookup", "arguments": '{"q": "' + name + '"}'}}
    for name in "ab"
]
HELLO = Completion("hello", in_tokens=10, out_tokens=5, cached_tokens=4, reasoning_tokens=2)


def chunks(reply: Reply) -> list[dict[str, Any]]:
    """Decode a stream, checking its framing."""
    events = list(sse_chunks(reply))
    assert events[-1] == b"data: [DONE]\n\n"
    assert all(event.startswith(b"data: {") and event.endswith(b"}\n\n") for event in events[:-1])
    documents = [orjson.loads(event[6:]) for event in events[:-1]]
    for document in documents:
        ChatCompletionChunk.model_validate(document, strict=True)
    return documents


def choices(reply: Reply) -> Iterator[dict[str, Any]]:
    return (choice for chunk in chunks(reply) for choice in chunk["choices"])


@pytest.mark.req("FR-1.1", "FR-1.12", "US-1", "INV-27")
def test_a_completion_has_every_field_and_validates(make_reply: MakeReply) -> None:
    document = orjson.loads(orjson.dumps(chat_completion(make_reply([HELLO], is_stored=False, audited="pending"))))
    ChatCompletion.model_validate(document, strict=True)
    assert document == {
        "id": "chatcmpl-0198c0de0000700080000000000000aa",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "student-v4",
        "system_fingerprint": "fp_v4",
        "service_tier": "default",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "hello", "refusal": None, "annotations": []},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 2,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
        "ratchet": {
            "request_id": "req_0198c0de0000700080000000000000aa",
            "task": "tickets",
            "served_by": "student",
            "route": "student",
            "version": 4,
            "confidence": 0.93,
            "threshold": 0.7,
            "escalated": False,
            "cost_nusd": 1_200,
            "all_teacher_nusd": 90_000,
            "audited": "pending",
            "stored": False,
        },
    }


@pytest.mark.req("FR-1.12")
def test_a_teachers_answer_says_so_and_has_the_teachers_fingerprint(make_reply: MakeReply) -> None:
    reply = make_reply([HELLO], student=False, is_stored=True)
    document = chat_completion(reply)
    block = document["ratchet"]
    assert (document["model"], block["served_by"], block["escalated"], block["stored"]) == (
        "open/teacher", "teacher", True, True,
    )  # fmt: skip
    assert document["system_fingerprint"].startswith("fp_")
    assert document["system_fingerprint"] != "fp_v4"
    assert document["system_fingerprint"] == chunks(reply)[0]["system_fingerprint"]


@pytest.mark.req("FR-1.12", "FR-1.14")
def test_several_choices_count_the_prompt_once(make_reply: MakeReply) -> None:
    two = [HELLO, Completion("hallo", in_tokens=10, out_tokens=7)]
    document = chat_completion(make_reply(two, n=2))
    assert [choice["index"] for choice in document["choices"]] == [0, 1]
    counted = document["usage"]
    assert (counted["prompt_tokens"], counted["completion_tokens"], counted["total_tokens"]) == (10, 12, 22)


@pytest.mark.req("FR-1.13")
@pytest.mark.parametrize(
    ("choice", "asked", "reason"),
    [
        (Completion("x", "length"), {}, "length"),
        (Completion("x", "content_filter"), {}, "content_filter"),
        (Completion("x", "abort"), {}, "stop"),
        (Completion("x", "tool_calls"), {"tools": [TOOL]}, "stop"),
        (Completion("", "stop", tool_calls=CALLS), {"tools": [TOOL]}, "tool_calls"),
        (Completion("", "tool_calls", tool_calls=CALLS), {"tools": [TOOL]}, "tool_calls"),
        (Completion("", "length", tool_calls=CALLS), {"tools": [TOOL]}, "length"),
        (Completion("", "tool_calls", tool_calls=CALLS), {"functions": [{"name": "lookup"}]}, "function_call"),
    ],
)
def test_finish_reasons_are_ones_that_clients_know(
    make_reply: MakeReply, choice: Completion, asked: dict[str, Any], reason: str
) -> None:
    reply = make_reply([choice], student=False, **asked)
    document = chat_completion(reply)
    ChatCompletion.model_validate(document, strict=True)
    assert document["choices"][0]["finish_reason"] == reason
    assert [c["finish_reason"] for c in choices(reply) if c["finish_reason"]] == [reason]


@pytest.mark.req("FR-1.13", "FR-1.41")
def test_tool_calls_come_back_in_the_form_that_was_asked_for(make_reply: MakeReply) -> None:
    called = [Completion("", "tool_calls", tool_calls=[{**call, "vendor": 1} for call in CALLS])]

    def message(**asked: Any) -> dict[str, Any]:
        result: dict[str, Any] = chat_completion(make_reply(called, student=False, **asked))["choices"][0]["message"]
        return result

    assert message(tools=[TOOL])["content"] is None
    assert message(tools=[TOOL])["tool_calls"] == CALLS
    assert message(tools=[TOOL], parallel_tool_calls=False)["tool_calls"] == CALLS[:1]
    assert message(functions=[{"name": "lookup"}])["function_call"] == CALLS[0]["function"]
    assert "tool_calls" not in message(functions=[{"name": "lookup"}])


CUSTOM = {"id": "call_c", "type": "custom", "custom": {"name": "run", "input": "ls"}}


@pytest.mark.req("FR-1.13", "FR-1.41")
@pytest.mark.parametrize(
    ("calls", "asked", "key", "expected"),
    [
        ([CUSTOM], {"tools": [TOOL]}, "tool_calls", [CUSTOM]),
        ([CUSTOM, CALLS[0]], {"tools": [TOOL]}, "tool_calls", [CUSTOM, CALLS[0]]),
        ([CUSTOM, CALLS[0]], {"functions": [{"name": "lookup"}]}, "function_call", CALLS[0]["function"]),
        ([CUSTOM], {"functions": [{"name": "lookup"}]}, "function_call", None),
        ([CUSTOM], {}, "tool_calls", [CUSTOM]),
    ],
)
def test_a_call_of_another_kind_than_asked_for_is_no_crash(
    make_reply: MakeReply, calls: list[Any], asked: dict[str, Any], key: str, expected: Any
) -> None:
    answered = [Completion("", "tool_calls", tool_calls=calls)]
    document = chat_completion(make_reply(answered, student=False, **asked))
    ChatCompletion.model_validate(document, strict=True)
    choice = document["choices"][0]
    assert choice["message"].get(key) == expected
    assert choice["finish_reason"] == (key if expected else "stop")
    streamed = make_reply(answered, student=False, stream=True, **asked)
    assert list(sse_chunks(streamed))[-1] == b"data: [DONE]\n\n"


@pytest.mark.req("FR-1.6", "FR-1.41")
def test_streamed_tool_calls_carry_an_index_and_one_id_each(make_reply: MakeReply) -> None:
    reply = make_reply([Completion("", "tool_calls", tool_calls=CALLS)], student=False, stream=True, tools=[TOOL])
    deltas = [call for choice in choices(reply) for call in choice["delta"].get("tool_calls", ())]
    assert deltas == [{"index": index, **call} for index, call in enumerate(CALLS)]


@pytest.mark.req("FR-1.1", "FR-1.6")
def test_a_refusal_has_no_content(make_reply: MakeReply) -> None:
    reply = make_reply([Completion("", refusal="I cannot.")], student=False)
    message = chat_completion(reply)["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "I cannot.")
    assert [c["delta"]["refusal"] for c in choices(reply) if c["delta"].get("refusal")] == ["I cannot."]


@pytest.mark.req("FR-1.14")
def test_log_probabilities_are_an_empty_object_only_when_asked_for(make_reply: MakeReply) -> None:
    nothing = {"content": None, "refusal": None}
    asked = make_reply([HELLO], stream=True, logprobs=True)
    assert chat_completion(asked)["choices"][0]["logprobs"] == nothing
    assert [choice["logprobs"] for choice in choices(asked)] == [None, nothing, None]
    plain = make_reply([HELLO], stream=True)
    assert [choice["logprobs"] for choice in choices(plain)] == [None, None, None]


@pytest.mark.req("FR-1.6", "US-1")
@pytest.mark.parametrize("text", ["", "x", "word " * 200, "\U0001f600é\n" * 77])
def test_the_streamed_pieces_join_into_exactly_the_answer(make_reply: MakeReply, text: str) -> None:
    reply = make_reply([Completion(text)], stream=True)
    assert "".join(choice["delta"].get("content") or "" for choice in choices(reply)) == text


@pytest.mark.req("FR-1.6", "FR-1.14")
def test_each_choice_is_announced_once_and_finished_once(make_reply: MakeReply) -> None:
    three = [Completion(text * 60, out_tokens=1) for text in "abc"]
    seen = list(choices(make_reply(three, stream=True, n=3)))
    for index in range(3):
        own = [choice for choice in seen if choice["index"] == index]
        assert own[0]["delta"]["role"] == "assistant"
        assert not any("role" in choice["delta"] for choice in own[1:])
        assert [choice["finish_reason"] for choice in own] == [None] * (len(own) - 1) + ["stop"]
    assert [choice["index"] for choice in seen] == sorted(choice["index"] for choice in seen)


@pytest.mark.req("FR-1.6", "FR-1.12")
@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}])
def test_without_include_usage_every_chunk_has_one_choice_and_no_usage(make_reply: MakeReply, options: Any) -> None:
    documents = chunks(make_reply([HELLO], stream=True, stream_options=options))
    assert all(len(document["choices"]) == 1 and "usage" not in document for document in documents)
    assert ["ratchet" in document for document in documents] == [False, False, True]


@pytest.mark.req("FR-1.6", "FR-1.12")
def test_with_include_usage_the_totals_come_last_in_a_chunk_without_choices(make_reply: MakeReply) -> None:
    reply = make_reply([HELLO], stream=True, stream_options={"include_usage": True})
    *ordinary, last = chunks(reply)
    assert all(len(document["choices"]) == 1 and document["usage"] is None for document in ordinary)
    assert last["choices"] == []
    assert last["usage"] == chat_completion(reply)["usage"]
    assert last["ratchet"] == ordinary[-1]["ratchet"] == chat_completion(reply)["ratchet"]
    assert {(document["id"], document["model"], document["created"]) for document in [*ordinary, last]} == {
        ("chatcmpl-0198c0de0000700080000000000000aa", "student-v4", 1_790_000_000)
    }
