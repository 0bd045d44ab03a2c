"""The synchronous client (httpx), for Celery, commands and evaluations; one pool shared by all threads."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx

from gateway.settings import EndpointSettings
from gateway.upstream.base import UpstreamError
from gateway.upstream.failures import CONNECT_TIMEOUT, DISCONNECTED, UNREACHABLE, timed_out
from gateway.upstream.http import KEEPALIVE_S, Received, chat_url, checked, request_headers
from gateway.upstream.retry import Attempts


@contextmanager
def httpx_failures() -> Iterator[None]:
    """Turn the failures of an httpx request into ``UpstreamError``."""
    try:
        yield
    except (httpx.ConnectTimeout, httpx.PoolTimeout):
        raise timed_out(CONNECT_TIMEOUT) from None
    except httpx.WriteTimeout:
        raise timed_out(DISCONNECTED) from None
    except httpx.TimeoutException:
        raise timed_out() from None
    except (httpx.ConnectError, httpx.UnsupportedProtocol, httpx.InvalidURL):
        raise UpstreamError(UNREACHABLE) from None
    except httpx.HTTPError:
        raise UpstreamError(DISCONNECTED) from None


class SyncClient:
    """Posts bodies to one endpoint's chat completions, with retries inside the deadline."""

    def __init__(
        self,
        settings: EndpointSettings,
        rng: random.Random,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._rng = rng
        self._clock = clock
        self._sleep = sleep
        self._url = chat_url(settings.base_url)
        self._lock = threading.Lock()
        self._shared: httpx.Client | None = None

    def post(self, body: bytes) -> bytes:
        """Return the body of a 2xx answer to ``body``; raises ``UpstreamError``."""
        attempts = Attempts(self._settings, self._rng, self._clock)
        while True:
            try:
                return self._attempt(body, attempts.time_left_s())
            except UpstreamError as error:
                wait = attempts.wait_s(error)
                if wait is None:
                    raise
            self._sleep(wait)

    def close(self) -> None:
        """Close the pool; the next call opens another."""
        with self._lock:
            client, self._shared = self._shared, None
        if client is not None:
            client.close()

    def _attempt(self, body: bytes, left_s: float) -> bytes:
        limit_s = min(self._settings.timeout_s, left_s)
        ends_at = self._clock() + limit_s
        timeout = httpx.Timeout(limit_s, connect=min(self._settings.connect_timeout_s, left_s))
        with httpx_failures(), self._client().stream("POST", self._url, content=body, timeout=timeout) as response:
            received = Received(response.status_code)
            for chunk in response.iter_bytes():
                received.add(chunk)
                # httpx limits the wait for each part, so that an answer in drops would have no limit at all.
                if self._clock() > ends_at:
                    raise timed_out()
        return checked(
            self._settings.base_url, self._settings.api_key, response.status_code, response.headers, received.body
        )

    def _client(self) -> httpx.Client:
        with self._lock:
            if self._shared is None:
                self._shared = httpx.Client(
                    headers=request_headers(self._settings.api_key),
                    limits=httpx.Limits(
                        max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEPALIVE_S
                    ),
                    trust_env=False,
                )
            return self._shared
