"""Odd clients on a real port: whatever they send, OpenAI's envelope with a request id, and never a 500."""

import json
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import openai
import pydantic
import pytest

from gateway import handler
from gateway.cascade.types import Answer, Completion
from gateway.wire.chat_request import ChatRequest
from ledger.models import Example, Request
from tests.fakes import ScriptedStudent, ScriptedTeacher, answer, unanimous
from tests.gateway.world import make_version
from tests.wire.test_chat_request_fuzz import FULL, outcome, places, replaced

ASK = {"model": "ratchet", "messages": [{"role": "user", "content": "I was charged twice"}]}
BODY = json.dumps(ASK).encode()
CHAT = "/v1/chat/completions"


@pytest.fixture
def base_url(serve: Any) -> str:
    ScriptedTeacher.reset(lambda call: answer(*["fine"] * call.n))
    return serve()


def post(base_url: str, **headers: str) -> httpx.Response:
    return httpx.post(f"{base_url}{CHAT}", content=BODY, headers={"content-type": "application/json", **headers})


def raw_exchange(base_url: str, head: str, body: bytes, timeout_s: float = 20) -> bytes:
    """Send a request as it is and read until the server closes."""
    parts = urlsplit(base_url)
    received = b""
    with socket.create_connection((parts.hostname, parts.port), timeout=timeout_s) as connection:
        connection.sendall(
            f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n".encode() + body
        )
        while chunk := connection.recv(65536):
            received += chunk
    return received


@pytest.mark.req("FR-1.5", "FR-1.10")
def test_no_url_and_no_method_is_a_500(base_url):
    paths = (
        *("/v1", "/v1/", "/v1/openapi.json", "/v1/docs", "/v1/models/", "/v1/models/x", "/v1/nothing"),
        *(f"{CHAT}/", f"{CHAT}%00", "/v1/%0d%0aX-Injected: 1", "/v1/%ff%fe", f"/v1/{'a' * 5000}"),
    )
    with httpx.Client(base_url=base_url) as client:
        for path in paths:
            for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
                response = client.request(method, path, content=BODY if method == "POST" else None)
                assert response.status_code in (404, 405), (method, path)
                assert set(response.json()["error"]) == {"message", "type", "param", "code"}
                assert response.headers["x-request-id"].startswith("req_")
                assert "x-injected" not in response.headers
        assert client.head("/v1/").status_code == 404
    assert ScriptedTeacher.calls == []


@pytest.mark.req("FR-1.5", "FR-1.10")
@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("text/plain", 200),
        ("application/json; charset=utf-16", 200),
        ("multipart/form-data; boundary=x", 200),
        (";;;=;", 200),
        ("application/json; charset*=nope''x", 400),
    ],
)
def test_the_body_is_json_whatever_its_content_type_says(base_url, content_type, status):
    response = post(base_url, **{"content-type": content_type})
    assert response.status_code == status
    if status == 400:
        error = response.json()["error"]
        assert (error["type"], error["param"]) == ("invalid_request_error", "Content-Type")


@pytest.mark.req("FR-1.5")
def test_chunks_and_an_expected_continue_are_understood(base_url):
    chunked = raw_exchange(base_url, "Transfer-Encoding: chunked\r\n", b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY))
    assert chunked.startswith(b"HTTP/1.1 200")
    expected = raw_exchange(base_url, f"Expect: 100-continue\r\nContent-Length: {len(BODY)}\r\n", BODY)
    assert b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK" in expected
    refused = raw_exchange(base_url, "Expect: 100-continue\r\nContent-Length: 9999999\r\n", b"")
    assert refused.startswith(b"HTTP/1.1 413")


@pytest.mark.req("FR-1.5", "FR-1.10")
def test_a_body_that_never_ends_is_given_up_on(base_url, monkeypatch):
    monkeypatch.setattr(handler, "BODY_TIMEOUT_S", 0.2)
    answered = raw_exchange(base_url, f"Content-Length: {len(BODY) + 1}\r\n", BODY)
    assert answered.startswith(b"HTTP/1.1 408")
    assert b'"code":"request_timeout"' in answered
    assert ScriptedTeacher.calls == []


@pytest.mark.req("INV-12", "FR-1.10")
def test_a_crash_before_any_view_is_an_envelope_too_and_keeps_its_message_to_itself(base_url, monkeypatch, caplog):
    class Broken:
        @classmethod
        def of(cls, *args: Any) -> None:
            raise RuntimeError("text" + " of a user")

    monkeypatch.setattr(handler, "Arrival", Broken)
    response = post(base_url)
    assert (response.status_code, response.json()["error"]["type"]) == (500, "api_error")
    assert response.headers["x-request-id"].startswith("req_")
    assert "failed: RuntimeError" in caplog.text
    assert "of a user" not in caplog.text.replace('"text" + " of a user"', "")


@pytest.mark.req("INV-22", "FR-13.1")
@pytest.mark.parametrize(
    ("word", "opt_out"),
    [("none", "request"), ("FALSE", "request"), ("0", "request"), ("", ""), ("true", ""), ("1", "")],
)
def test_the_store_header_takes_every_word_for_no_and_cannot_turn_one_into_yes(base_url, word, opt_out):
    assert post(base_url, **{"x-ratchet-store": word}).status_code == 200
    assert Request.objects.get().store_opt_out == opt_out
    assert Example.objects.count() == (0 if opt_out else 1)
    refused = httpx.post(f"{base_url}{CHAT}", json={**ASK, "store": False}, headers={"x-ratchet-store": word})
    assert refused.json()["ratchet"]["stored"] is False


@pytest.mark.req("INV-22", "FR-13.1")
def test_an_unknown_word_in_the_store_header_is_refused_before_anything_is_stored(base_url):
    response = post(base_url, **{"x-ratchet-store": "flase"})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "X-Ratchet-Store")
    assert "flase" not in response.text
    assert (ScriptedTeacher.calls, Request.objects.count()) == ([], 0)


@pytest.mark.req("FR-1.3")
def test_a_task_that_is_not_registered_is_refused_with_where_it_was_named_and_which_there_are(serve):
    ScriptedTeacher.reset(lambda call: answer("fine"))
    base_url = serve(unknown_tasks="reject")
    by_header = post(base_url, **{"x-ratchet-task": "no-such-task"})
    by_metadata = httpx.post(f"{base_url}{CHAT}", json={**ASK, "metadata": {"ratchet_task": "no-such-task"}})
    for response, param in ((by_header, "X-Ratchet-Task"), (by_metadata, "metadata.ratchet_task")):
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["param"]) == (400, "unknown_task", param)
        assert "send one of these: default" in error["message"]
        assert "no-such-task" not in response.text
    assert post(base_url).status_code == 200


@pytest.mark.req("INV-13", "FR-1.2")
@pytest.mark.parametrize(
    "headers",
    [
        {"x-forwarded-for": "127.0.0.1"},
        {"x-forwarded-for": "203.0.113.9"},
        {"host": "evil.example"},
        {"origin": "https://evil.example", "content-type": "text/plain"},
    ],
    ids=str,
)
def test_without_a_key_nobody_gets_in_by_looking_local(base_url, headers):
    response = post(base_url, **headers)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "no_api_key_configured")
    assert httpx.get(f"{base_url}/v1/models", headers=headers).status_code == 403
    assert ScriptedTeacher.calls == []


@pytest.mark.req("FR-1.2", "US-1")
def test_every_listed_model_can_be_retrieved_and_no_other(serve, clock):
    make_version(clock, 1)
    client = openai.OpenAI(base_url=f"{serve()}/v1", api_key="unused", max_retries=0)
    listed = client.models.list().data
    assert {model.id for model in listed} == {"ratchet", "nvidia/nemotron-3-ultra", "default-v1"}
    assert [client.models.retrieve(model.id) for model in listed] == listed
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("gpt-4o")
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")


@pytest.mark.req("FR-1.12", "US-1")
def test_ids_times_usage_and_the_block_agree_with_each_other_and_with_the_row(serve, clock):
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous("fine"))
    response = httpx.post(f"{serve()}{CHAT}", json={**ASK, "n": 2, "model": "gpt-4o"})
    document, row = response.json(), Request.objects.get()
    usage, block = document["usage"], document["ratchet"]
    assert document["id"] == f"chatcmpl-{row.pk.hex}"
    assert block["request_id"] == response.headers["x-request-id"] == f"req_{row.pk.hex}"
    assert document["created"] == int(row.at.timestamp())
    assert [choice["index"] for choice in document["choices"]] == [0, 1]
    assert (document["model"], document["object"]) == ("default-v1", "chat.completion")
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (10, 10, 20)
    assert (block["cost_nusd"], block["all_teacher_nusd"]) == (row.cost_nusd, row.baseline_nusd)


class Claim(pydantic.BaseModel):
    """A structured answer."""

    amount: int


@pytest.mark.req("FR-1.1", "FR-1.6", "FR-1.12", "FR-1.13", "US-1")
def test_the_sdks_helpers_work_with_schemas_tools_and_streams(base_url):
    client = openai.OpenAI(base_url=f"{base_url}/v1", api_key="unused", max_retries=0)
    ScriptedTeacher.reset(lambda call: answer('{"amount": 12}'))
    parsed = client.chat.completions.parse(**ASK, response_format=Claim)
    assert parsed.choices[0].message.parsed == Claim(amount=12)

    calls = [
        {
            "id": f"call_{place}",
            "type": "function",
            "function": {"name": "look_up", "arguments": f'{{"amount":{place}}}'},
        }
        for place in (0, 1)
    ]
    ScriptedTeacher.reset(lambda call: Answer([Completion("", "tool_calls", 10, 5, tool_calls=calls)], model=""))
    tools = [openai.pydantic_function_tool(Claim, name="look_up")]
    with client.chat.completions.stream(**ASK, tools=tools, stream_options={"include_usage": True}) as stream:
        final = stream.get_final_completion()
    choice = final.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert [(call.id, call.function.parsed_arguments) for call in choice.message.tool_calls] == [
        ("call_0", Claim(amount=0)),
        ("call_1", Claim(amount=1)),
    ]
    assert final.usage.total_tokens == 15


@pytest.mark.req("FR-1.5", "FR-1.10")
@pytest.mark.parametrize("junk", [None, -1, "\U0001f600" * 90, [], {"x": 1}, ...], ids=lambda junk: repr(junk)[:12])
def test_a_request_with_one_changed_value_is_answered_or_refused_as_its_parser_says(serve, junk):
    ScriptedTeacher.reset(lambda call: answer(*["fine"] * call.n))
    n_answered = 0
    with httpx.Client(base_url=serve()) as client:
        for place in places(FULL)[1:]:
            body = json.dumps(replaced(FULL, place, junk)).encode()
            expected = outcome(body)
            response = client.post(CHAT, content=body)
            if isinstance(expected, ChatRequest):
                assert response.status_code == 200, (place, response.text)
                n_answered += 1
            else:
                assert (response.status_code, response.json()) == (400, expected.body), place
    assert Request.objects.count() == len(ScriptedTeacher.calls) == n_answered
