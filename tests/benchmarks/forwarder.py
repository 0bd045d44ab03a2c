"""The measure of the benchmark: an ASGI application that does nothing but forward the request with aiohttp.

Served by uvicorn as ``tests.benchmarks.forwarder:application``; ``BENCHMARK_UPSTREAM`` is the URL that it posts to.
"""

import os
from typing import Any

import aiohttp

UPSTREAM = os.environ["BENCHMARK_UPSTREAM"]
HEADERS = {"content-type": "application/json", "authorization": "Bearer upstream"}

_sessions: list[aiohttp.ClientSession] = []


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer the lifespan and forward everything else."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    async with _sessions[0].post(UPSTREAM, data=body, headers=HEADERS) as response:
        answer = await response.read()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


async def _lifespan(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            _sessions.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        else:
            await _sessions.pop().close()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
