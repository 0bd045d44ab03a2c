"""The endpoint on a real port, with the official SDK as the client."""

import hashlib
import json
from typing import Any

import httpx
import openai
import pytest

from common.money import Price
from gateway.cascade.types import Answer, Call
from gateway.settings import EndpointSettings
from gateway.upstream.base import UpstreamError
from ledger.models import Check, Event, Example, Failure, Request, Task
from privacy.end_users import EVERY_CLIENT
from tests.conftest import scripted_settings
from tests.fakes import ScriptedStudent, ScriptedTeacher, answer, unanimous, unavailable
from tests.gateway.world import BILLING, elsewhere, make_task, make_version, register_no_train, wait_for

ASK = {"model": "ratchet", "messages": [{"role": "user", "content": "I was charged twice"}]}


@pytest.fixture
def triage(shared_ledger: None, clock: Any) -> Task:
    return make_task(clock)


def sdk(base_url: str, key: str = "unused") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{base_url}/v1", api_key=key, max_retries=0)


def ask(client: openai.OpenAI, **changes: Any) -> Any:
    return client.chat.completions.create(**{**ASK, "extra_headers": {"X-Ratchet-Task": "triage"}, **changes})


@pytest.mark.req("FR-1.1", "FR-1.12", "US-1", "INV-27")
def test_the_teacher_answers_at_cold_start_and_the_row_and_the_example_are_durable(serve, triage):
    ScriptedTeacher.reset(lambda call: answer(BILLING, tokens=(100, 20)))
    response = ask(sdk(serve()))
    block = response.model_extra["ratchet"]
    assert response.choices[0].message.content == BILLING
    assert (block["served_by"], block["route"], block["task"]) == ("teacher", "cold_start", "triage")
    assert response.usage.total_tokens == 120
    row = Request.objects.get()
    assert (row.cost_nusd, row.baseline_nusd, row.stored) == (160_000, 160_000, True)
    assert block["cost_nusd"] == row.cost_nusd
    assert block["request_id"] == f"req_{row.pk.hex}"
    example = Example.objects.get()
    assert (example.completion, example.seen, example.licence) == (BILLING, 1, "OpenMDW-1.1")


@pytest.mark.req("FR-2.1", "US-1")
def test_a_live_student_serves_and_an_unsure_one_escalates(serve, triage, clock):
    make_version(clock, 1)
    ScriptedTeacher.reset(lambda call: answer(BILLING))
    ScriptedStudent.reset(unanimous(BILLING))
    client = sdk(serve())
    served = ask(client)
    assert (served.model, served.model_extra["ratchet"]["served_by"]) == ("default-v1", "student")
    assert ScriptedTeacher.calls == []
    ScriptedStudent.reset(unanimous(BILLING, probability=0.05))
    assert ask(client).model_extra["ratchet"]["route"] == "confidence"
    assert len(ScriptedTeacher.calls) == 1


@pytest.mark.req("FR-1.6")
def test_a_stream_joins_into_the_same_answer_and_ends_with_done(serve, triage):
    ScriptedTeacher.reset(lambda call: answer(BILLING))
    base_url = serve()
    chunks = list(ask(sdk(base_url), stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == BILLING
    raw = httpx.post(f"{base_url}/v1/chat/completions", json={**ASK, "stream": True})
    assert raw.headers["content-type"] == "text/event-stream"
    assert raw.text.endswith("data: [DONE]\n\n")


@pytest.mark.req("INV-28", "FR-2.5")
def test_a_drawn_audit_is_written_with_its_request_and_its_text_is_encrypted(serve, triage, clock):
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous(BILLING))
    response = ask(sdk(serve(audit_rate=1.0)))
    owed = Check.objects.get()
    assert response.model_extra["ratchet"]["audited"] == "pending"
    assert owed.wants_audit
    assert b"charged" not in bytes(owed.payload)
    assert Request.objects.get().audit == "pending"


@pytest.mark.req("INV-22", "INV-28", "FR-13.1")
def test_an_opted_out_request_is_audited_from_memory_and_never_stored(serve, triage, clock):
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous(BILLING))
    ScriptedTeacher.reset(lambda call: answer(BILLING))
    ask(sdk(serve(audit_rate=1.0)), extra_headers={"X-Ratchet-Task": "triage", "X-Ratchet-Store": "none"})
    wait_for(lambda: not Check.objects.exists())
    row = Request.objects.get()
    assert (row.store_opt_out, row.audit, Example.objects.count()) == ("request", "agree", 0)


@pytest.mark.req("INV-10")
def test_tool_requests_go_to_the_teacher_alone_and_are_not_stored(serve, triage, clock):
    make_version(clock, 1)
    ScriptedStudent.reset(unanimous(BILLING))
    ScriptedTeacher.reset(lambda call: answer("no tool needed"))
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
    block = ask(sdk(serve()), tools=tools).model_extra["ratchet"]
    assert (block["route"], block["stored"], ScriptedStudent.calls) == ("tools", False, [])


@pytest.mark.req("INV-13", "FR-1.2")
def test_with_a_key_configured_every_call_needs_one_and_the_row_names_its_client(serve, triage):

    key = "rk-a-key-of-the-tests"
    ScriptedTeacher.reset(lambda call: answer(BILLING))
    base_url = serve(api_keys={hashlib.sha256(key.encode()).hexdigest(): "shop"})
    with pytest.raises(openai.AuthenticationError) as refused:
        ask(sdk(base_url, "rk-wrong"))
    assert refused.value.code == "invalid_api_key"
    assert httpx.get(f"{base_url}/v1/models").status_code == 401
    ask(sdk(base_url, key))
    assert Request.objects.get().client == "shop"


@pytest.mark.req("FR-1.10", "INV-7")
@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (UpstreamError("HTTP 500", status=500), 502, "teacher_unavailable"),
        (UpstreamError("ReadTimeout", is_timeout=True), 504, "teacher_timeout"),
        (UpstreamError("CircuitOpen", is_breaker_open=True, retry_after_s=12), 503, "teacher_circuit_open"),
        (UpstreamError("HTTP 401", status=401), 502, "upstream_auth_error"),
        (RuntimeError("a bug in the provider"), 502, "teacher_unavailable"),
    ],
)
def test_a_failing_teacher_is_a_clean_error_and_leaves_a_failure_not_a_request(serve, triage, failure, status, code):
    ScriptedTeacher.reset(lambda call: failure)
    response = httpx.post(f"{serve()}/v1/chat/completions", json=ASK)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert "provider" not in response.text
    assert not Request.objects.exists()


@pytest.mark.req("FR-1.5", "FR-1.10", "INV-12")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'"hi"', 400),
        (b"\xff\xfe", 400),
        (b'{"messages": 7, "model": "x"}', 400),
        (b'{"messages": [], "model": "x"}', 400),
        (b'{"messages": [{"role": "user", "content": "cut \\ud83d"}], "model": "x"}', 400),
        (b'{"messages": [{"role": "user", "content": "nul \\u0000"}], "model": "x"}', 400),
        (json.dumps({**ASK, "temperature": "hot"}).encode(), 400),
        (json.dumps({**ASK, "n": True}).encode(), 400),
        (json.dumps({**ASK, "wholly_unknown": {"deep": [1]}}).encode(), 200),
        (b"[" * 100_000, 400),
        (b'{"model": "x", "messages": "' + b"a" * 2 * 1024 * 1024 + b'"}', 413),
    ],
)
def test_bad_input_is_never_a_500(serve, body: bytes, status: int):
    ScriptedTeacher.reset(lambda call: answer("fine"))
    response = httpx.post(f"{serve()}/v1/chat/completions", content=body, headers={"content-type": "application/json"})
    assert response.status_code == status, response.text
    if status != 200:
        assert set(response.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.req("FR-1.5")
def test_unknown_paths_and_wrong_methods_are_openai_errors(serve):
    base_url = serve()
    unknown = httpx.get(f"{base_url}/v1/embeddings")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown_url")
    wrong = httpx.get(f"{base_url}/v1/chat/completions")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert wrong.json()["error"]["code"] == "method_not_allowed"
    assert wrong.headers["x-request-id"].startswith("req_")


@pytest.mark.req("FR-1.2")
def test_models_lists_the_name_to_ask_for_the_teacher_and_the_serving_versions(serve, triage, clock):
    make_version(clock, 1)
    models = sdk(serve()).models.list()
    assert {(model.id, model.owned_by) for model in models.data} == {
        ("ratchet", "ratchet"),
        ("nvidia/nemotron-3-ultra", "ratchet-teacher"),
        ("default-v1", "ratchet-student"),
    }


@pytest.mark.req("INV-12")
def test_a_crash_is_an_envelope_without_its_message_an_event_and_a_log_line_with_its_place(serve, monkeypatch, caplog):
    def crash(*args: Any) -> None:
        raise RuntimeError("secret text of a user")

    monkeypatch.setattr("gateway.serving.admit", crash)
    response = httpx.post(f"{serve()}/v1/chat/completions", json=ASK)
    assert (response.status_code, response.json()["error"]["type"]) == (500, "api_error")
    assert "secret" not in response.text
    assert "secret text" not in caplog.text.replace('raise RuntimeError("secret text of a user")', "")
    assert "failed: RuntimeError" in caplog.text
    assert not Failure.objects.filter(error__contains="secret").exists()


@pytest.mark.req("FR-2.12", "INV-19")
def test_a_circuit_that_opens_is_in_the_release_log(serve, triage):

    teacher = EndpointSettings(
        base_url="http://127.0.0.1:9/v1",
        model="nvidia/nemotron-3-ultra",
        price=Price(1, 1),
        retries=0,
        breaker_failures=2,
    )
    base_url = serve(teacher=teacher, teacher_backend="gateway.upstream.teacher.OpenAITeacher")
    statuses = [httpx.post(f"{base_url}/v1/chat/completions", json=ASK).status_code for _ in range(3)]
    assert statuses == [502, 502, 503]
    wait_for(lambda: Event.objects.filter(kind="circuit").exists())
    assert Event.objects.get(kind="circuit").detail.startswith("teacher: closed->open after 2 failures")


@pytest.mark.req("FR-1.10", "INV-12")
def test_refusals_leave_failure_rows_and_malformed_requests_do_not(serve):
    base_url = serve(api_keys={hashlib.sha256(b"rk-a-key-of-the-tests").hexdigest(): "shop"})
    headers = {"authorization": "Bearer rk-a-key-of-the-tests"}
    httpx.post(f"{base_url}/v1/chat/completions", json=ASK)
    httpx.post(f"{base_url}/v1/chat/completions", content=b"a" * 2 * 1024 * 1024, headers=headers)
    httpx.post(f"{base_url}/v1/chat/completions", content=b"{", headers=headers)
    httpx.get(f"{base_url}/v1/nothing", headers=headers)
    wait_for(lambda: Failure.objects.count() == 2)
    assert set(Failure.objects.values_list("stage", "error", "status")) == {
        ("http_401", "invalid_api_key", 401),
        ("http_413", "request_too_large", 413),
    }
    assert not Request.objects.exists()


@pytest.fixture
def _slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """However late the watcher's thread runs, a request waits for it instead of going on with what it knows."""
    monkeypatch.setattr("gateway.watcher.WAIT_S", 30.0)


@pytest.mark.usefixtures("_slow_machine")
@pytest.mark.req("INV-22", "FR-13.2")
@pytest.mark.parametrize("scope", ["", EVERY_CLIENT])
def test_an_end_user_registered_while_the_teacher_answers_is_not_stored(serve, triage, clock, scope):
    def answer_late(call: Call) -> Answer:
        elsewhere(lambda: register_no_train(clock, scripted_settings(), scope, "ann"))
        return answer(BILLING)

    client = sdk(serve())
    ScriptedTeacher.reset(answer_late)
    block = ask(client, user="ann").model_extra["ratchet"]
    row = Request.objects.get()
    assert (block["stored"], row.stored, row.store_opt_out, Example.objects.count()) == (False, False, "end_user", 0)
    ScriptedTeacher.reset(lambda call: answer(BILLING))
    assert ask(client, user="bob").model_extra["ratchet"]["stored"]


@pytest.mark.usefixtures("_slow_machine")
@pytest.mark.req("INV-22", "INV-28", "FR-13.2")
def test_the_check_of_an_end_user_registered_meanwhile_keeps_its_text_in_memory(serve, triage, clock):
    def sample_late(call: Call) -> Answer:
        elsewhere(lambda: register_no_train(clock, scripted_settings(), "", "ann"))
        return unanimous(BILLING)(call)

    make_version(clock, 1)
    ScriptedStudent.reset(sample_late)
    payloads: list[Any] = []

    def audit(call: Call) -> Answer:
        payloads.extend(Check.objects.values_list("payload", flat=True))
        return answer(BILLING)

    ScriptedTeacher.reset(audit)
    ask(sdk(serve(audit_rate=1.0)), user="ann")
    wait_for(lambda: not Check.objects.exists())
    row = Request.objects.get()
    assert (row.store_opt_out, row.audit, row.stored, payloads) == ("end_user", "agree", False, [None])


@pytest.mark.req("FR-2.9", "INV-19", "INV-27")
def test_when_student_and_teacher_both_fail_both_failures_are_recorded(serve, triage, clock):
    make_version(clock, 1)
    ScriptedStudent.reset(unavailable("timeout"))
    ScriptedTeacher.reset(lambda call: UpstreamError("http_500", status=500))
    response = httpx.post(f"{serve()}/v1/chat/completions", json=ASK, headers={"X-Ratchet-Task": "triage"})
    assert response.status_code == 502
    wait_for(lambda: Failure.objects.filter(stage="student_error").exists())
    assert set(Failure.objects.values_list("stage", "error", "task")) >= {
        ("student_error", "timeout", "triage"),
        ("teacher_error", "http_500", "triage"),
    }


@pytest.mark.req("INV-7", "INV-12", "INV-27")
def test_an_answer_that_cannot_be_stored_is_served_and_booked_all_the_same(serve, triage, monkeypatch):
    def crash(*args: Any) -> None:
        raise RuntimeError("secret text of a user")

    monkeypatch.setattr("gateway.storing.redact_messages", crash)
    ScriptedTeacher.reset(lambda call: answer(BILLING, tokens=(100, 20)))
    block = ask(sdk(serve())).model_extra["ratchet"]
    row = Request.objects.get()
    assert (block["stored"], row.stored, row.cost_nusd, Example.objects.count()) == (False, False, 160_000, 0)
    wait_for(lambda: Failure.objects.exists() and Event.objects.filter(kind="store_error").exists())
    assert Failure.objects.values_list("stage", "error", "task").get() == ("store_error", "RuntimeError", "triage")
    assert Event.objects.get(kind="store_error").detail == "triage: RuntimeError (number 1)"
