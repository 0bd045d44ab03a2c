"""The demo's application: posts messages to the real endpoint, several at a time, and scores what comes back."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from sim.demo.dataset import DemoMessage
from sim.demo.tasks import TASKS, is_right, request_body

IN_FLIGHT = 16
TRIES = 6
RETRY_WAIT_S = 0.5
TIMEOUT_S = 300


class RequestFailed(Exception):
    """The endpoint kept refusing a request; the text has the status and the error code, never the message."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one message."""

    task: str
    served_by: str
    route: str
    is_right: bool


def parse_answer(text: str) -> dict[str, Any] | None:
    """Return the answer as an application would read it: one JSON object, else ``None``."""
    try:
        answer = json.loads(text)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


@asynccontextmanager
async def session(base_url: str) -> AsyncIterator[aiohttp.ClientSession]:
    """Open the client's connections to ``base_url`` (which ends in ``/v1/``)."""
    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    async with aiohttp.ClientSession(base_url, connector=connector, timeout=timeout) as opened:
        yield opened


async def ask(http: aiohttp.ClientSession, message: DemoMessage) -> Outcome:
    """Send one message and score the answer against the data set's label. Raises ``RequestFailed``."""
    body = await post(http, message.task, message.text)
    block = body["ratchet"]
    answer = parse_answer(body["choices"][0]["message"]["content"])
    return Outcome(message.task, block["served_by"], block["route"], is_right(message, answer))


async def post(http: aiohttp.ClientSession, task: str, text: str) -> dict[str, Any]:
    """Send one chat request; waits and tries again while the server is away or overloaded."""
    failure = ""
    for attempt in range(TRIES):
        if attempt:
            await asyncio.sleep(RETRY_WAIT_S * attempt)
        try:
            body = request_body(TASKS[task], text)
            async with http.post("chat/completions", json=body, headers={"X-Ratchet-Task": task}) as response:
                document: dict[str, Any] = await response.json()
                if response.status == 200:
                    return document
                failure = f"{response.status} {document.get('error', {}).get('code')}"
                if response.status not in (429, 502, 503, 504):
                    break
        except (aiohttp.ClientError, TimeoutError) as error:
            failure = type(error).__name__
    raise RequestFailed(f"a {task} request was not answered: {failure}")


async def post_all(
    http: aiohttp.ClientSession, messages: Sequence[DemoMessage], done: Callable[[], object] = lambda: None
) -> list[Outcome]:
    """Send ``messages`` with ``IN_FLIGHT`` of them on their way at any time; outcomes are in the order of the messages.

    ``done()`` is called whenever an answer is in. Raises the first ``RequestFailed``.
    """
    outcomes: list[Outcome | None] = [None] * len(messages)
    waiting = iter(enumerate(messages))
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(IN_FLIGHT, len(messages))):
                group.create_task(_sender(http, waiting, outcomes, done))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [outcome for outcome in outcomes if outcome is not None]


async def _sender(
    http: aiohttp.ClientSession,
    waiting: Iterable[tuple[int, DemoMessage]],
    outcomes: list[Outcome | None],
    done: Callable[[], object],
) -> None:
    for index, message in waiting:
        outcomes[index] = await ask(http, message)
        done()
