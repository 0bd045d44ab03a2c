"""The slim ASGI handler of ``/v1``: Django's URL resolving and request object without the full stack's costs.

Django's stock handler makes a thread context for every request, runs the request signals' synchronous receivers and
hops threads to close the response: more than half of a request's CPU. ``/v1`` needs none of it: it has no sessions, no
CSRF, no messages and no ORM on the event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from io import BytesIO
from typing import Any

import orjson
from django.conf import settings as django_settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpResponseBase
from django.urls import get_resolver

from common.ids import request_label, uuid7
from gateway.arrival import Arrival
from gateway.background import process_clock
from gateway.runtime import record_crash, record_refusal
from gateway.wire.errors import (
    APIError,
    body_too_large,
    body_too_slow,
    internal_error,
    method_not_allowed,
    unknown_url,
    unreadable_head,
)

URLCONF = "gateway.urls"
NOT_ALLOWED = 405
BODY_TIMEOUT_S = 60.0
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class SlimHandler:
    """ASGI application of ``/v1``: request id, body limit, URL, view. Every refusal is OpenAI's error envelope."""

    def __init__(self) -> None:
        self._resolve = lru_cache(maxsize=256)(get_resolver(URLCONF).resolve)
        self._max_body_bytes: int = django_settings.RATCHET_GATEWAY.max_body_bytes
        self._clock = process_clock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        at = self._clock.now()
        request_id = uuid7(at)
        try:
            body = await self._read_body(scope, receive)
            response = await self._respond(scope, Arrival.of(scope, request_id, at, body))
        except RequestAborted:
            return
        except APIError as error:
            record_refusal(error, request_id, at)
            await _send_error(send, error, request_label(request_id))
            return
        except Exception as error:  # noqa: BLE001 - whatever failed, the client gets OpenAI's envelope
            record_crash(error, request_id, at)
            await _send_error(send, internal_error(), request_label(request_id))
            return
        response.headers["x-request-id"] = request_label(request_id)
        await _send_response(send, response)

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes:
        """Read at most the allowed body, in the allowed time; the rest of a larger one stays unread."""
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                return await self._receive_body(scope, receive)
        except TimeoutError:
            raise body_too_slow(BODY_TIMEOUT_S) from None

    async def _receive_body(self, scope: Scope, receive: Receive) -> bytes:
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if declared.isdigit() and int(declared) > self._max_body_bytes:
            raise body_too_large(self._max_body_bytes)
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestAborted
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > self._max_body_bytes:
                raise body_too_large(self._max_body_bytes)
            chunks.append(chunk)
            if not message.get("more_body"):
                return b"".join(chunks)

    async def _respond(self, scope: Scope, arrival: Arrival) -> HttpResponseBase:
        try:
            request = ASGIRequest(scope, BytesIO(arrival.body))
        except ValueError as error:
            raise unreadable_head() from error
        request.ratchet = arrival  # type: ignore[attr-defined]
        try:
            match = self._resolve(scope["path"])
            response: HttpResponseBase = await match.func(request, *match.args, **match.kwargs)
        except Http404 as error:
            raise unknown_url(str(request.method), scope["path"][:200]) from error
        if response.status_code == NOT_ALLOWED:
            raise method_not_allowed(str(request.method), response.headers["Allow"])
        return response


async def _send_response(send: Send, response: HttpResponseBase) -> None:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items()]
    if response.streaming:
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        async for part in response:  # type: ignore[attr-defined]
            await send({"type": "http.response.body", "body": response.make_bytes(part), "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return
    content: bytes = response.content  # type: ignore[attr-defined]
    headers.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": content})


async def _send_error(send: Send, error: APIError, label: str) -> None:
    body = orjson.dumps(error.body)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", label.encode()),
        *((name.lower().encode(), value.encode()) for name, value in error.headers.items()),
    ]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
