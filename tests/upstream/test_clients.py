"""Both clients, against a real port: what they send, what fails how, and what is tried again."""

import asyncio
import random
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from gateway.settings import EndpointSettings
from gateway.upstream.aio import AsyncClient
from gateway.upstream.base import UpstreamError
from gateway.upstream.sync import SyncClient
from tests.upstream.fakes import KEY, Reply, Upstream, Waits, ok, settings

Post = Callable[[EndpointSettings], bytes]


def post_async(patience: EndpointSettings, waits: Waits) -> bytes:
    async def once() -> bytes:
        client = AsyncClient(patience, random.Random(7), clock=waits.clock, sleep=waits.asleep)
        try:
            return await client.post(b'{"a":1}')
        finally:
            await client.aclose()

    return asyncio.run(once())


def post_sync(patience: EndpointSettings, waits: Waits) -> bytes:
    client = SyncClient(patience, random.Random(7), clock=waits.clock, sleep=waits.sleep)
    try:
        return client.post(b'{"a":1}')
    finally:
        client.close()


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture(params=[post_async, post_sync], ids=["aio", "sync"])
def post(request: pytest.FixtureRequest, waits: Waits) -> Post:
    return lambda patience: request.param(patience, waits)


@pytest.fixture(params=[post_async, post_sync], ids=["aio", "sync"])
def ticking(request: pytest.FixtureRequest) -> Post:
    """Like ``post``, on the machine's own clock."""
    return lambda patience: request.param(patience, RealWaits())


class RealWaits(Waits):
    """The machine's clock."""

    def clock(self) -> float:
        return time.monotonic()


def failure(post: Post, patience: EndpointSettings) -> UpstreamError:
    with pytest.raises(UpstreamError) as caught:
        post(patience)
    assert KEY not in repr(vars(caught.value)) and "127.0.0.1" not in repr(vars(caught.value))
    assert caught.value.__cause__ is None
    return caught.value


@pytest.mark.req("FR-1.11")
def test_the_body_goes_out_as_it_is_and_the_answer_comes_back_as_it_is(post: Post, upstream: Upstream) -> None:
    upstream.replies(Reply(status=201, body=b'{"any": "thing"}'))
    assert post(settings(upstream.base_url + "/")) == b'{"any": "thing"}'
    (seen,) = upstream.seen
    assert (seen.method, seen.path, seen.body) == ("POST", "/v1/chat/completions", {"a": 1})
    assert seen.headers["Authorization"] == f"Bearer {KEY}"
    assert seen.headers["Content-Type"] == "application/json"


@pytest.mark.req("INV-13")
def test_without_a_key_no_authorization_is_sent(post: Post, upstream: Upstream) -> None:
    post(settings(upstream.base_url, api_key=""))
    assert "Authorization" not in upstream.seen[0].headers


@pytest.mark.req("FR-1.11")
def test_a_busy_endpoint_is_tried_again_after_jittered_waits(post: Post, upstream: Upstream, waits: Waits) -> None:
    upstream.replies(Reply(503), Reply(500), ok())
    assert b"Shakespeare" in post(settings(upstream.base_url))
    assert len(upstream.seen) == 3
    rng = random.Random(7)
    assert waits.slept == [rng.uniform(0, 0.5), rng.uniform(0, 1.0)]


@pytest.mark.req("FR-1.11")
def test_the_servers_wait_is_waited_or_handed_on(post: Post, upstream: Upstream, waits: Waits) -> None:
    upstream.replies(Reply(429, headers={"Retry-After": "2"}), Reply(429, headers={"Retry-After": "30"}))
    error = failure(post, settings(upstream.base_url))
    assert waits.slept == [2.0]
    assert (error.kind, error.status, error.retry_after_s, len(upstream.seen)) == ("http_429", 429, 30.0, 2)


@pytest.mark.req("FR-1.11", "FR-1.8")
def test_a_refusal_is_the_result_with_the_endpoints_words(post: Post, upstream: Upstream, waits: Waits) -> None:
    fields = {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded", "param": "m"}
    upstream.replies(Reply(400, {"error": fields}))
    error = failure(post, settings(upstream.base_url))
    assert (error.message, error.error_type, error.code, error.param) == tuple(fields.values())
    assert (len(upstream.seen), waits.slept) == (1, [])


@pytest.mark.req("INV-13")
def test_redirects_are_not_followed(post: Post, upstream: Upstream) -> None:
    upstream.replies(Reply(307, headers={"Location": "/v1/elsewhere"}))
    assert failure(post, settings(upstream.base_url)).kind == "http_307"
    assert len(upstream.seen) == 1


@pytest.mark.req("FR-1.11")
def test_a_hanging_endpoint_times_out_and_is_tried_once_more(post: Post, upstream: Upstream, waits: Waits) -> None:
    upstream.replies(Reply(act="hang"))
    error = failure(post, settings(upstream.base_url, timeout_s=0.5, retries=5))
    assert (error.kind, error.is_timeout, error.status) == ("timeout", True, None)
    upstream.wait_for(2)
    assert (len(upstream.seen), len(waits.slept)) == (2, 1)


@pytest.mark.req("FR-1.11")
def test_the_deadline_caps_an_attempt(post: Post, upstream: Upstream, waits: Waits) -> None:
    upstream.replies(Reply(act="hang"))
    error = failure(post, settings(upstream.base_url, timeout_s=60.0, deadline_s=0.5, retries=0))
    upstream.wait_for(1)
    assert (error.kind, len(upstream.seen), waits.slept) == ("timeout", 1, [])


@pytest.mark.req("FR-1.11")
def test_an_answer_in_drops_is_held_to_the_time_limit(upstream: Upstream, ticking: Post) -> None:
    upstream.replies(Reply(act="drip", body=b'{"a": 1}'))
    error = failure(ticking, settings(upstream.base_url, timeout_s=1.0, retries=0))
    assert (error.kind, error.is_timeout) == ("timeout", True)


@pytest.mark.req("FR-1.11", "NFR-2")
@pytest.mark.parametrize("reply", [Reply(act="endless"), Reply(body=b" " * 3_000_000), Reply(500, b" " * 3_000_000)])
def test_an_answer_longer_than_any_is_not_kept_in_memory(
    post: Post, upstream: Upstream, monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    monkeypatch.setattr("gateway.upstream.http.MAX_ANSWER_BYTES", 2_000_000)
    upstream.replies(reply)
    error = failure(post, settings(upstream.base_url, retries=0))
    assert (error.kind, error.status) == ("bad_response", reply.status)


@pytest.mark.req("FR-1.11")
@pytest.mark.parametrize("act", ["reset", "truncate"])
def test_a_broken_answer_is_not_tried_again(post: Post, upstream: Upstream, act: str) -> None:
    upstream.replies(Reply(act=act, body=b"{}"))
    error = failure(post, settings(upstream.base_url))
    assert (error.kind, error.is_timeout, error.status, len(upstream.seen)) == ("disconnected", False, None, 1)


@pytest.mark.req("FR-1.11")
@pytest.mark.parametrize("scheme", ["http://127.0.0.1:{port}/v1", "ftp://127.0.0.1:{port}/v1"])
def test_a_closed_port_is_tried_to_the_end(post: Post, waits: Waits, scheme: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = scheme.format(port=closed.getsockname()[1])
        error = failure(post, settings(url))
    assert (error.kind, error.is_timeout, error.status, len(waits.slept)) == ("unreachable", False, None, 2)


@pytest.mark.req("FR-1.11")
def test_an_endpoint_that_accepts_no_connection_is_a_connect_timeout(post: Post, waits: Waits) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        error = failure(post, settings(f"http://127.0.0.1:{port}/v1", connect_timeout_s=0.1, retries=1))
        for filler in fillers:
            filler.close()
    assert (error.kind, error.is_timeout, len(waits.slept)) == ("connect_timeout", True, 1)


@pytest.mark.req("FR-1.11")
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_each_event_loop_has_its_own_connections(
    upstream: Upstream, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    client = AsyncClient(settings(upstream.base_url), random.Random(7))

    async def twice() -> None:
        await asyncio.gather(client.post(b"{}"), client.post(b"{}"))
        await client.aclose()
        await client.aclose()

    run(twice())
    run(twice())
    assert len(upstream.seen) == 4


def test_a_closed_synchronous_client_opens_again(upstream: Upstream) -> None:
    client = SyncClient(settings(upstream.base_url), random.Random(7))
    client.post(b"{}")
    client.close()
    client.post(b"{}")
    client.close()
    assert len(upstream.seen) == 2
