"""The asynchronous client (aiohttp): one pooled session per event loop, everything but the body made in advance."""

import asyncio
import random
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable
from time import monotonic
from weakref import WeakKeyDictionary

import aiohttp
from yarl import URL

from gateway.settings import EndpointSettings
from gateway.upstream.base import UpstreamError
from gateway.upstream.failures import CONNECT_TIMEOUT, DISCONNECTED, UNREACHABLE, timed_out
from gateway.upstream.http import KEEPALIVE_S, Received, chat_url, checked, request_headers
from gateway.upstream.retry import Attempts

SMALL_BYTES = 1024 * 1024


class AsyncClient:
    """Posts bodies to one endpoint's chat completions, with retries inside the deadline."""

    def __init__(
        self,
        settings: EndpointSettings,
        rng: random.Random,
        *,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._rng = rng
        self._clock = clock
        self._sleep = sleep
        self._url = URL(chat_url(settings.base_url))
        self._timeout = self._timeout_within(settings.timeout_s)
        self._sessions: WeakKeyDictionary[AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()

    async def post(self, body: bytes) -> bytes:
        """Return the body of a 2xx answer to ``body``; raises ``UpstreamError``."""
        attempts = Attempts(self._settings, self._rng, self._clock)
        while True:
            try:
                return await self._attempt(body, attempts.time_left_s())
            except UpstreamError as error:
                wait = attempts.wait_s(error)
                if wait is None:
                    raise
            await self._sleep(wait)

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _attempt(self, body: bytes, left_s: float) -> bytes:
        is_capped = left_s < self._settings.timeout_s
        timeout = self._timeout_within(left_s) if is_capped else self._timeout
        try:
            async with self._session().post(self._url, data=body, timeout=timeout, allow_redirects=False) as response:
                answer = await _body(response)
                return checked(
                    self._settings.base_url, self._settings.api_key, response.status, response.headers, answer
                )
        except aiohttp.ConnectionTimeoutError:
            raise timed_out(CONNECT_TIMEOUT) from None
        except TimeoutError:
            raise timed_out() from None
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            raise UpstreamError(UNREACHABLE) from None
        except (aiohttp.ClientError, OSError):
            raise UpstreamError(DISCONNECTED) from None

    def _timeout_within(self, limit_s: float) -> aiohttp.ClientTimeout:
        connect_s = min(self._settings.connect_timeout_s, limit_s)
        return aiohttp.ClientTimeout(total=limit_s, sock_connect=connect_s)

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=request_headers(self._settings.api_key),
            )
        return session


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """Read an answer; one of a modest declared length at once, which costs less."""
    length = response.content_length
    if length is not None and length <= SMALL_BYTES and "Content-Encoding" not in response.headers:
        return await response.read()
    received = Received(response.status)
    async for chunk in response.content.iter_any():
        received.add(chunk)
    return received.body
