"""What a valid request becomes: normalised messages, parameters, task, storage wish and end users."""

from typing import Any

import pytest

from gateway.cascade.types import Params
from tests.wire.conftest import body, parse, refusal

ME = {"role": "user", "content": "hi"}
CALL = {"id": "call_a", "type": "function", "function": {"name": "lookup", "arguments": '{"city": "Lima"}'}}
RESULT = {"role": "tool", "tool_call_id": "call_a", "content": "42"}
TOOL = {"type": "function", "function": {"name": "lookup", "description": "d", "parameters": {"type": "object"}}}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}


@pytest.mark.req("FR-1.10")
def test_a_plain_conversation_passes_through_unchanged() -> None:
    messages = [{"role": "system", "content": "s"}, ME, {"role": "assistant", "content": "a"}, {**ME, "content": ""}]
    request = parse(messages=messages)
    assert request.messages == messages
    assert (request.uses_tools, request.is_multimodal, request.params) == (False, False, Params({}, 1))
    assert (request.stream, request.include_usage, request.task, request.store) == (False, False, None, None)
    assert (request.end_user, request.secondary_end_user, request.metadata, request.extra) == (None, None, {}, ())


@pytest.mark.req("FR-1.10")
@pytest.mark.parametrize(
    ("sent", "normalised"),
    [
        ({"role": "developer", "content": "x", "name": "n"}, {"role": "system", "content": "x", "name": "n"}),
        (
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "user", "content": "a\nb"},
        ),
        ({"role": "user", "content": "x", "tool_calls": [1], "vendor": {}}, {"role": "user", "content": "x"}),
        (
            {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}]},
            {"role": "assistant", "content": "a\nno"},
        ),
        (
            {
                **{"role": "assistant", "content": "a", "refusal": None, "annotations": [], "audio": None},
                **{"function_call": None, "tool_calls": None},
            },
            {"role": "assistant", "content": "a"},
        ),
        ({"role": "assistant", "content": "a", "tool_calls": []}, {"role": "assistant", "content": "a"}),
        (
            {"role": "assistant", "content": None, "refusal": "no"},
            {"role": "assistant", "content": None, "refusal": "no"},
        ),
    ],
)
def test_messages_are_rewritten_only_where_models_need_one_form(
    sent: dict[str, Any], normalised: dict[str, Any]
) -> None:
    assert parse(messages=[sent]).messages == [normalised]


@pytest.mark.req("FR-1.10", "INV-10")
@pytest.mark.parametrize(
    "part",
    [
        IMAGE,
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ],
)
def test_a_part_that_is_not_text_marks_the_request_and_stays_as_sent(part: dict[str, Any]) -> None:
    content = [{"type": "text", "text": "what is this?"}, part]
    request = parse(messages=[{"role": "user", "content": content}])
    assert request.is_multimodal is True
    assert request.messages == [{"role": "user", "content": content}]


@pytest.mark.req("FR-1.13", "FR-1.41", "INV-10")
def test_tools_or_tool_turns_mark_a_tool_request() -> None:
    assert parse(tools=[TOOL]).uses_tools is True
    turns = [ME, {"role": "assistant", "content": None, "tool_calls": [{**CALL, "index": 0}]}, {**RESULT, "x": 1}]
    request = parse(messages=turns)
    assert request.uses_tools is True
    assert request.messages == [ME, {"role": "assistant", "content": None, "tool_calls": [CALL]}, RESULT]
    legacy = [
        ME,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": None},
    ]
    request = parse(messages=legacy)
    assert (request.uses_tools, request.messages) == (True, legacy)


@pytest.mark.req("FR-1.13")
@pytest.mark.parametrize(
    ("sent", "values"),
    [
        ({"temperature": 0}, {"temperature": 0}),
        ({"temperature": 2, "top_p": 1.0, "seed": -7}, {"temperature": 2, "top_p": 1.0, "seed": -7}),
        ({"temperature": None, "stop": None, "tools": None, "n": None, "stream": None, "metadata": None}, {}),
        ({"stop": "END"}, {"stop": ["END"]}),
        ({"stop": ["a", "b", "c", "d"]}, {"stop": ["a", "b", "c", "d"]}),
        ({"max_tokens": 9}, {"max_tokens": 9}),
        ({"max_completion_tokens": 5}, {"max_tokens": 5}),
        ({"max_tokens": 5, "max_completion_tokens": 5}, {"max_tokens": 5}),
        ({"presence_penalty": -2, "frequency_penalty": 2}, {"presence_penalty": -2, "frequency_penalty": 2}),
        ({"logit_bias": {"50256": -100}}, {"logit_bias": {"50256": -100}}),
        ({"logprobs": True, "top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"response_format": {"type": "text"}}, {}),
        ({"response_format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}, "strict": True}}},
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}, "strict": True}}},
        ),
        (
            {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False},
            {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False},
        ),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "lookup"}}},
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "lookup"}}},
        ),
        (
            {"functions": [{"name": "f"}], "function_call": {"name": "f"}},
            {
                "tools": [{"type": "function", "function": {"name": "f"}}],
                "tool_choice": {"type": "function", "function": {"name": "f"}},
            },
        ),
        ({"service_tier": "auto", "user": "u", "store": True}, {}),
    ],
)
def test_parameters_come_back_as_models_take_them(sent: dict[str, Any], values: dict[str, Any]) -> None:
    assert parse(**sent).params == Params(values, 1)


@pytest.mark.req("FR-1.14")
def test_the_number_of_choices_is_kept_apart_from_the_other_parameters() -> None:
    assert parse(n=3).params == Params({}, 3)


@pytest.mark.req("FR-1.6", "FR-1.12")
def test_streaming_and_its_usage_are_read() -> None:
    def streaming(**sent: Any) -> tuple[bool, bool]:
        request = parse(**sent)
        return request.stream, request.include_usage

    assert streaming(stream=True) == (True, False)
    assert streaming(stream=True, stream_options={}) == (True, False)
    assert streaming(stream=True, stream_options={"include_usage": False}) == (True, False)
    assert streaming(stream=True, stream_options={"include_usage": True}) == (True, True)
    assert streaming(stream=False, stream_options=None) == (False, False)


@pytest.mark.req("FR-13.1", "INV-22")
@pytest.mark.parametrize(
    ("sent", "store"),
    [
        ({}, None),
        ({"store": True}, None),
        ({"store": False}, False),
        ({"metadata": {"ratchet_store": "true"}}, None),
        ({"metadata": {"ratchet_store": "False"}}, False),
        ({"metadata": {"ratchet_store": "0"}}, False),
        ({"metadata": {"ratchet_store": "none"}}, False),
        ({"store": True, "metadata": {"ratchet_store": "false"}}, False),
        ({"store": False, "metadata": {"ratchet_store": "true"}}, False),
    ],
)
def test_any_opt_out_wins_and_nothing_opts_in(sent: dict[str, Any], store: bool | None) -> None:
    assert parse(**sent).store is store


@pytest.mark.req("FR-13.2", "FR-13.30")
@pytest.mark.parametrize(
    ("sent", "users"),
    [
        ({"user": "u"}, ("u", None)),
        ({"safety_identifier": "s"}, ("s", None)),
        ({"user": "u", "safety_identifier": "s"}, ("s", "u")),
        ({"user": "s", "safety_identifier": "s"}, ("s", None)),
        ({"user": "", "safety_identifier": ""}, (None, None)),
        ({"user": "u" * 309}, ("u" * 309, None)),
    ],
)
def test_end_users_are_the_safety_identifier_then_the_user(sent: dict[str, Any], users: tuple[Any, Any]) -> None:
    request = parse(**sent)
    assert (request.end_user, request.secondary_end_user) == users


@pytest.mark.req("FR-1.10")
def test_the_task_is_read_from_the_metadata() -> None:
    request = parse(metadata={"ratchet_task": "ticket-triage", "other": "x"})
    assert request.task == "ticket-triage"
    assert request.metadata == {"ratchet_task": "ticket-triage", "other": "x"}


@pytest.mark.req("FR-1.10")
def test_unknown_fields_are_named_and_go_nowhere() -> None:
    request = parse(top_k=5, chat_template_kwargs={"deep": [1]})
    assert request.extra == ("top_k", "chat_template_kwargs")
    assert request.params.values == {}


@pytest.mark.req("FR-1.10")
def test_metadata_at_its_limits_passes() -> None:
    metadata = {f"{index:064d}": "v" * 512 for index in range(16)}
    assert parse(metadata=metadata).metadata == metadata


# Reported faults of other gateways and servers.


@pytest.mark.req("FR-1.10", "FR-1.41")
@pytest.mark.parametrize("content", [{"content": None}, {}, {"content": ""}])
def test_an_assistant_turn_with_calls_needs_no_content(content: dict[str, Any]) -> None:
    turn = {"role": "assistant", **content, "tool_calls": [CALL]}
    request = parse(messages=[ME, turn, RESULT])
    assert request.messages[1] == {"role": "assistant", "content": content.get("content"), "tool_calls": [CALL]}


@pytest.mark.req("FR-1.10", "FR-1.41")
def test_calls_and_answers_must_match() -> None:
    two = {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "call_b"}]}
    answer_b = {**RESULT, "tool_call_id": "call_b"}
    assert len(parse(messages=[ME, two, answer_b, RESULT, ME]).messages) == 5
    assert refusal(messages=[ME, two, RESULT, ME]).param == "messages[1].tool_calls[1]"
    assert refusal(messages=[ME, two, RESULT, {**RESULT, "tool_call_id": "call_c"}]).param == "messages[3].tool_call_id"
    assert refusal(messages=[ME, {"role": "assistant", "content": None}, RESULT]).param == "messages[1].content"


@pytest.mark.req("FR-1.10")
def test_developer_turns_become_system_wherever_they_stand() -> None:
    first = {"role": "developer", "content": "Answer in one word."}
    assert parse(messages=[first, ME]).messages == [{"role": "system", "content": "Answer in one word."}, ME]
    later = parse(messages=[{"role": "system", "content": "a"}, first, ME]).messages
    assert [message["role"] for message in later] == ["system", "system", "user"]


@pytest.mark.req("FR-1.10")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("messages", [[], None, 7, "hi", [None], [{}], [{"role": "user"}], {}, ...])
def test_bad_messages_are_a_400_that_points_into_messages(messages: Any, stream: bool) -> None:
    error = refusal(messages=messages, stream=stream)
    assert (error.status, error.type) == (400, "invalid_request_error")
    assert error.param is not None
    assert error.param.startswith("messages")


@pytest.mark.req("FR-1.10")
def test_text_parts_and_the_plain_string_are_the_same_request() -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    assert parse(messages=parts) == parse(messages=[{"role": "user", "content": "a\nb"}])


@pytest.mark.req("FR-1.10")
def test_messages_are_judged_before_the_model() -> None:
    assert refusal(messages=[], model=...).param == "messages"
    assert body(model=...) == {"messages": [ME]}


@pytest.mark.req("INV-10")
def test_an_image_anywhere_marks_the_request_whatever_follows() -> None:
    later = {"role": "user", "content": [{"type": "text", "text": "and now?"}]}
    request = parse(messages=[{"role": "user", "content": [IMAGE]}, {"role": "assistant", "content": "a cat"}, later])
    assert request.is_multimodal is True
