"""The demo's application: how many requests are in flight, what is tried again, how answers are scored."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from sim.demo import client
from sim.demo.client import IN_FLIGHT, Outcome, RequestFailed, parse_answer, post_all, session
from sim.demo.dataset import DemoMessage

MESSAGES = [DemoMessage("sms-spam", f"text {i}", "ham") for i in range(40)]


def reply(label, served_by="student"):
    content = f'{{"label": "{label}"}}'
    block = {"served_by": served_by, "route": served_by}
    return {"choices": [{"message": {"content": content}}], "ratchet": block}


def run(handler, messages=MESSAGES):
    async def go():
        app = web.Application()
        app.router.add_post("/v1/chat/completions", handler)
        async with TestServer(app) as server, session(str(server.make_url("/v1/"))) as http:
            return await post_all(http, messages)

    return asyncio.run(go())


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(client, "RETRY_WAIT_S", 0.0)


def test_every_message_is_sent_once_with_its_task_and_scored_in_order():
    seen = []

    async def handler(request):
        body = await request.json()
        text = body["messages"][-1]["content"]
        seen.append((request.headers["X-Ratchet-Task"], text))
        return web.json_response(reply("ham" if text.endswith("7") else "spam"))

    outcomes = run(handler)
    assert sorted(seen) == sorted(("sms-spam", message.text) for message in MESSAGES)
    assert outcomes == [Outcome("sms-spam", "student", "student", i % 10 == 7) for i in range(40)]


def test_at_most_sixteen_requests_are_on_their_way():
    now, most, are_full = 0, 0, asyncio.Event()

    async def handler(request):
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == IN_FLIGHT:
            are_full.set()
        await asyncio.wait_for(are_full.wait(), 30)
        await asyncio.sleep(0.005)
        now -= 1
        return web.json_response(reply("ham"))

    run(handler)
    assert most == IN_FLIGHT == 16


@pytest.mark.parametrize("status", [429, 503])
def test_an_overloaded_server_is_asked_again(status):
    calls = 0

    async def handler(request):
        nonlocal calls
        calls += 1
        if calls == 1:
            return web.json_response({"error": {"code": "overloaded"}}, status=status)
        return web.json_response(reply("ham"))

    assert run(handler, MESSAGES[:1]) == [Outcome("sms-spam", "student", "student", True)]
    assert calls == 2


@pytest.mark.req("INV-12")
def test_a_refused_request_ends_the_replay_with_its_status_and_code_only():
    async def handler(request):
        error = {"code": "unknown_task", "message": "secret text 0"}
        return web.json_response({"error": error}, status=400)

    with pytest.raises(RequestFailed) as raised:
        run(handler)
    assert str(raised.value) == "a sms-spam request was not answered: 400 unknown_task"


@pytest.mark.parametrize(("text", "answer"), [('{"label": "ham"}', {"label": "ham"}), ("ham", None), ("[1]", None)])
def test_only_a_json_object_is_an_answer(text, answer):
    assert parse_answer(text) == answer
