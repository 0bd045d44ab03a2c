"""Students at OpenAI-compatible endpoints."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.cascade.types import Answer, Call, Purpose
from gateway.settings import EndpointSettings, GatewaySettings
from gateway.students.base import StudentUnavailable
from gateway.students.endpoint import EndpointStudent
from gateway.upstream.breaker import Breakers
from tests.upstream.fakes import KEY, MESSAGES, Reply, Upstream, Waits, ok, settings, student_call

Ask = Callable[[EndpointStudent, Call], Answer]
THREE = ("a", "b", "c")
LOST = Reply(404, {"error": {"message": "The model `default-v1` does not exist.", "type": "NotFoundError"}})


def ask_async(student: EndpointStudent, call: Call) -> Answer:
    async def once() -> Answer:
        try:
            return await student.sample(call)
        finally:
            await student.aclose()

    return asyncio.run(once())


@pytest.fixture(params=[ask_async, lambda student, call: student.sample_sync(call)], ids=["aio", "sync"])
def ask(request: pytest.FixtureRequest) -> Ask:
    return request.param


@pytest.fixture
def waits() -> Waits:
    return Waits()


def make(waits: Waits, base_url: str = "", **changes: Any) -> EndpointStudent:
    breakers = Breakers(waits.clock, lambda transition: None)
    return EndpointStudent(GatewaySettings(student=settings(base_url, **changes)), random.Random(1), breakers)


def refused(ask: Ask, student: EndpointStudent, call: Call) -> StudentUnavailable:
    with pytest.raises(StudentUnavailable) as caught:
        ask(student, call)
    assert str(caught.value) == caught.value.kind
    return caught.value


def states(student: EndpointStudent) -> dict[str, str]:
    return {one["name"]: one["state"] for one in student.breakers.snapshots()}


@pytest.mark.req("FR-1.11", "INV-6")
def test_all_samples_come_from_one_call_to_the_adapter(ask: Ask, upstream: Upstream, waits: Waits) -> None:
    upstream.replies(ok(*THREE))
    answer = ask(make(waits, upstream.base_url), student_call())
    assert [one.text for one in answer.completions] == ["a", "b", "c"]
    (seen,) = upstream.seen
    assert seen.body == {
        "model": "default-v1", "messages": MESSAGES, "n": 3, "temperature": 0.7, "logprobs": True, "max_tokens": 100,
    }  # fmt: skip
    assert seen.headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.req("INV-6")
def test_both_ways_send_the_same_bytes(upstream: Upstream, waits: Waits) -> None:
    upstream.replies(ok(*THREE))
    student = make(waits, upstream.base_url)
    ask_async(student, student_call())
    student.sample_sync(student_call())
    assert upstream.seen[0].body == upstream.seen[1].body


@pytest.mark.req("FR-1.11")
def test_a_student_is_never_retried(ask: Ask, upstream: Upstream, waits: Waits) -> None:
    upstream.replies(Reply(503), ok(*THREE))
    error = refused(ask, make(waits, upstream.base_url, retries=3), student_call())
    assert (error.kind, error.is_breaker_open, error.is_adapter_missing) == ("http_503", False, False)
    assert len(upstream.seen) == 1


@pytest.mark.req("INV-12")
def test_a_refusal_never_quotes_the_endpoint(ask: Ask, upstream: Upstream, waits: Waits) -> None:
    upstream.replies(Reply(400, {"error": {"message": f"Invalid content: 'my SSN' at {upstream.base_url}"}}))
    error = refused(ask, make(waits, upstream.base_url), student_call())
    assert error.args == ("http_400",)


@pytest.mark.req("FR-2.11", "NFR-2")
def test_a_lost_adapter_is_named_and_speaks_for_the_endpoint(ask: Ask, upstream: Upstream, waits: Waits) -> None:
    upstream.replies(LOST)
    student = make(waits, upstream.base_url, breaker_failures=1)
    for _ in range(3):
        error = refused(ask, student, student_call())
        assert (error.kind, error.is_adapter_missing, error.is_breaker_open) == ("adapter_missing", True, False)
    assert states(student) == {"student": "closed"}


@pytest.mark.req("FR-2.11")
@pytest.mark.parametrize(
    "message", ["Not Found", "The model `default-v12` does not exist.", "The model `my-default-v1` does not exist."]
)
def test_another_404_is_no_lost_adapter(ask: Ask, upstream: Upstream, waits: Waits, message: str) -> None:
    upstream.replies(Reply(404, {"error": {"message": message}}))
    error = refused(ask, make(waits, upstream.base_url), student_call())
    assert (error.kind, error.is_adapter_missing) == ("http_404", False)


@pytest.mark.req("INV-6", "FR-2.13")
def test_fewer_samples_than_asked_for_are_no_sample_set(ask: Ask, upstream: Upstream, waits: Waits) -> None:
    upstream.replies(ok("a", "b"))
    student = make(waits, upstream.base_url, breaker_failures=1)
    error = refused(ask, student, student_call())
    assert (error.kind, [one.text for one in error.spent]) == ("too_few_samples", ["a", "b"])
    assert states(student) == {"student": "closed"}


@pytest.mark.req("FR-2.11")
def test_an_open_breaker_refuses_without_a_call(ask: Ask, upstream: Upstream, waits: Waits) -> None:
    upstream.replies(*[Reply(500)] * 5, ok(*THREE))
    student = make(waits, upstream.base_url)
    for _ in range(5):
        assert not refused(ask, student, student_call()).is_breaker_open
    error = refused(ask, student, student_call())
    assert (error.kind, error.is_breaker_open, len(upstream.seen)) == ("circuit_open", True, 5)
    waits.now += 30
    assert len(ask(student, student_call()).completions) == 3
    assert states(student) == {"student": "closed"}


@pytest.mark.req("FR-2.11")
def test_shadows_have_a_breaker_of_their_own(ask: Ask, upstream: Upstream, waits: Waits) -> None:
    upstream.replies(Reply(500), ok(*THREE))
    student = make(waits, upstream.base_url, breaker_failures=1)
    shadow = student_call(purpose=Purpose.SHADOW)
    refused(ask, student, shadow)
    assert refused(ask, student, shadow).is_breaker_open
    assert len(ask(student, student_call()).completions) == 3
    assert states(student) == {"shadow": "open", "student": "closed"}


@pytest.mark.req("FR-2.11", "NFR-2")
def test_calls_are_spread_over_the_healthy_replicas(ask: Ask, start: Callable[[], Upstream], waits: Waits) -> None:
    good, bad, other = start(), start(), start()
    good.replies(ok(*THREE))
    other.replies(ok(*THREE))
    bad.replies(Reply(500))
    student = make(waits, "http://127.0.0.1:1/v1", breaker_failures=1)
    call = student_call(good.base_url, bad.base_url, other.base_url)
    answers = 0
    for _ in range(9):
        try:
            answers += len(ask(student, call).completions) == 3
        except StudentUnavailable as error:
            assert error.kind == "http_500"
    assert (answers, len(bad.seen)) == (8, 1)
    assert len(good.seen) + len(other.seen) == 8 and min(len(good.seen), len(other.seen)) >= 3
    assert states(student) == {"student": "closed", "student-2": "open", "student-3": "closed"}


@pytest.mark.req("NFR-2")
def test_a_busy_replica_is_passed_over(start: Callable[[], Upstream], waits: Waits) -> None:
    slow, quick = start(), start()
    slow.replies(Reply(act="hang"))
    quick.replies(ok(*THREE))
    student = make(waits)
    call = student_call(slow.base_url, quick.base_url)

    async def run() -> None:
        hanging = asyncio.create_task(student.sample(call))
        while not slow.seen:
            await asyncio.sleep(0)
        for _ in range(4):
            await student.sample(call)
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        await student.aclose()

    asyncio.run(run())
    assert (len(slow.seen), len(quick.seen)) == (1, 4)


def test_a_student_without_an_endpoint_or_a_version_says_so(ask: Ask, waits: Waits) -> None:
    student = EndpointStudent(GatewaySettings(student=EndpointSettings()), random.Random(1))
    assert refused(ask, student, student_call()).kind == "not_configured"
    assert refused(ask, student, replace(student_call(), version=None)).kind == "no_version"
