"""One endpoint: its two clients behind its circuit breaker, speaking calls and answers."""

import random
from time import perf_counter

from gateway.cascade.types import Answer, Call
from gateway.settings import EndpointSettings
from gateway.upstream.aio import AsyncClient
from gateway.upstream.base import UpstreamError
from gateway.upstream.breaker import Breaker, Permit
from gateway.upstream.failures import CIRCUIT_OPEN
from gateway.upstream.sync import SyncClient
from gateway.upstream.wire import build_body, parse_answer


class Endpoint:
    """An OpenAI-compatible endpoint. ``in_flight`` is the number of calls it is answering for this process."""

    def __init__(self, settings: EndpointSettings, breaker: Breaker, rng: random.Random) -> None:
        self.breaker = breaker
        self.in_flight = 0
        self._client = AsyncClient(settings, rng)
        self._sync_client = SyncClient(settings, rng)

    def admit(self) -> Permit:
        """Return leave for one call; raises ``UpstreamError`` (``is_breaker_open``) while the breaker is open."""
        permit = self.breaker.allow()
        if permit is None:
            raise circuit_open(self.breaker.retry_in_s())
        return permit

    async def complete(self, call: Call, model: str, permit: Permit) -> Answer:
        """Answer ``call`` with ``model`` on the event loop; raises ``UpstreamError``."""
        started = perf_counter()
        self.in_flight += 1
        try:
            with permit:
                answer = parse_answer(await self._client.post(build_body(call, model)), call, model)
        finally:
            self.in_flight -= 1
        answer.latency_ms = (perf_counter() - started) * 1000
        return answer

    def complete_sync(self, call: Call, model: str, permit: Permit) -> Answer:
        """Answer ``call`` with ``model`` from synchronous code; raises ``UpstreamError``."""
        started = perf_counter()
        with permit:
            answer = parse_answer(self._sync_client.post(build_body(call, model)), call, model)
        answer.latency_ms = (perf_counter() - started) * 1000
        return answer

    async def aclose(self) -> None:
        """Close the running loop's connections and the synchronous pool."""
        await self._client.aclose()
        self._sync_client.close()


def circuit_open(retry_in_s: float | None) -> UpstreamError:
    """Return the refusal of an open breaker, with the wait until its next probe."""
    return UpstreamError(CIRCUIT_OPEN, retry_after_s=retry_in_s, is_breaker_open=True)
