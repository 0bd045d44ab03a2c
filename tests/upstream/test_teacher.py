"""The teacher behind its breaker."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.cascade.types import Answer
from gateway.models import Models
from gateway.settings import EndpointSettings, GatewaySettings
from gateway.upstream.base import UpstreamError
from gateway.upstream.breaker import Breakers
from gateway.upstream.teacher import OpenAITeacher
from tests.upstream.fakes import MESSAGES, Reply, Upstream, Waits, ok, settings, teacher_call

Ask = Callable[[OpenAITeacher], Answer]


def ask_async(teacher: OpenAITeacher) -> Answer:
    async def once() -> Answer:
        try:
            return await teacher.complete(teacher_call())
        finally:
            await teacher.aclose()

    return asyncio.run(once())


@pytest.fixture(params=[ask_async, lambda teacher: teacher.complete_sync(teacher_call())], ids=["aio", "sync"])
def ask(request: pytest.FixtureRequest) -> Ask:
    return request.param


def teacher_at(upstream: Upstream, waits: Waits, told: list[str], **changes: Any) -> OpenAITeacher:
    endpoint = settings(upstream.base_url, **{"retries": 0, **changes})
    breakers = Breakers(waits.clock, lambda transition: told.append(str(transition)))
    return OpenAITeacher(GatewaySettings(teacher=endpoint), random.Random(1), breakers)


@pytest.mark.req("FR-1.11", "FR-1.13")
def test_it_answers_as_the_configured_model(ask: Ask, upstream: Upstream) -> None:
    upstream.replies(ok("Shakespeare", usage={"prompt_tokens": 9, "completion_tokens": 3}))
    answer = ask(teacher_at(upstream, Waits(), []))
    assert [(one.text, one.in_tokens, one.out_tokens) for one in answer.completions] == [("Shakespeare", 9, 3)]
    assert answer.model == "served-model" and answer.latency_ms > 0
    assert upstream.seen[0].body == {
        "model": "teacher-model", "messages": MESSAGES, "temperature": 0.0, "max_tokens": 100,
    }  # fmt: skip


@pytest.mark.req("FR-2.12")
def test_an_open_breaker_refuses_at_once_and_a_probe_closes_it(ask: Ask, upstream: Upstream) -> None:
    waits, told = Waits(), []
    teacher = teacher_at(upstream, waits, told)
    upstream.replies(*[Reply(503)] * 5, ok())
    for _ in range(5):
        with pytest.raises(UpstreamError, match="http_503"):
            ask(teacher)
    waits.now += 12.5
    with pytest.raises(UpstreamError) as caught:
        ask(teacher)
    error = caught.value
    assert (error.kind, error.is_breaker_open, error.retry_after_s, error.status) == ("circuit_open", True, 17.5, None)
    assert len(upstream.seen) == 5
    waits.now += 17.5
    assert ask(teacher).completions[0].text == "Shakespeare"
    assert told == [
        "teacher: closed->open after 5 failures (http_503)",
        "teacher: open->half_open after 30 s; one probe",
        "teacher: half_open->closed after a successful probe",
    ]


@pytest.mark.req("FR-2.12")
@pytest.mark.parametrize("reply, is_outage", [(Reply(400), False), (Reply(401), False), (Reply(body=b"junk"), True)])
def test_only_outages_open_the_breaker(ask: Ask, upstream: Upstream, reply: Reply, is_outage: bool) -> None:
    teacher = teacher_at(upstream, Waits(), [])
    upstream.replies(reply)
    for _ in range(5):
        with pytest.raises(UpstreamError) as caught:
            ask(teacher)
        assert not caught.value.is_breaker_open
    assert teacher.breakers.snapshots()[0]["state"] == ("open" if is_outage else "closed")


@pytest.mark.req("FR-2.12")
def test_a_cancelled_call_says_nothing_about_the_teacher(upstream: Upstream) -> None:
    teacher = teacher_at(upstream, Waits(), [], breaker_failures=1)
    upstream.replies(Reply(act="hang"))

    async def cancel() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(teacher.complete(teacher_call()), 0.05)
        await teacher.aclose()

    asyncio.run(cancel())
    assert teacher.breakers.snapshots() == [{"name": "teacher", "state": "closed", "failures": 0, "wait_s": 30.0}]


@pytest.mark.req("FR-1.8")
@pytest.mark.parametrize("missing", ["base_url", "model"])
def test_an_unconfigured_teacher_says_so(ask: Ask, missing: str) -> None:
    teacher = OpenAITeacher(GatewaySettings(teacher=replace(settings("http://127.0.0.1:1/v1"), **{missing: ""})))
    with pytest.raises(UpstreamError) as caught:
        ask(teacher)
    assert (caught.value.kind, caught.value.status) == ("not_configured", None)


def test_the_settings_name_it(upstream: Upstream) -> None:
    models = Models(GatewaySettings(teacher=EndpointSettings(upstream.base_url, model="m")), random.Random(1))
    outcome = models.ask_sync(teacher_call())
    assert isinstance(outcome, Answer) and outcome.completions[0].text == "Shakespeare"
