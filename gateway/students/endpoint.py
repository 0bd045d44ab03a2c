"""The student at an OpenAI-compatible endpoint: a version is an adapter name, a student has one replica or several."""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

from gateway.cascade.types import Answer, Call, Purpose
from gateway.settings import GatewaySettings
from gateway.students.base import StudentUnavailable
from gateway.upstream.base import UpstreamError
from gateway.upstream.breaker import Breakers, Permit
from gateway.upstream.endpoint import Endpoint, circuit_open
from gateway.upstream.failures import NOT_CONFIGURED


class EndpointStudent:
    """Samples adapters (``gateway.students.base.StudentBackend``): one call for all samples, never a retry.

    Calls go to the least busy replica whose breaker lets them through. Shadows have breakers of their own, so that a
    bad candidate cannot shut off the live version.
    """

    def __init__(self, settings: GatewaySettings, rng: random.Random, breakers: Breakers | None = None) -> None:
        # The teacher is the student's retry.
        self._settings = replace(settings.student, retries=0)
        self._rng = rng
        self._turns = count()
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        self.breakers = breakers or Breakers()

    async def sample(self, call: Call) -> Answer:
        """Draw samples on the event loop; raises ``StudentUnavailable``."""
        adapter = _adapter(call)
        with _unavailable(adapter):
            endpoint, permit = self._pick(call)
            return _complete_set(await endpoint.complete(call, adapter, permit), call)

    def sample_sync(self, call: Call) -> Answer:
        """Draw samples from synchronous code; raises ``StudentUnavailable``."""
        adapter = _adapter(call)
        with _unavailable(adapter):
            endpoint, permit = self._pick(call)
            return _complete_set(endpoint.complete_sync(call, adapter, permit), call)

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        for endpoint in list(self._endpoints.values()):
            await endpoint.aclose()

    def _pick(self, call: Call) -> tuple[Endpoint, Permit]:
        replicas = self._replicas(call)
        turn = next(self._turns) % len(replicas)
        in_turn = replicas[turn:] + replicas[:turn]
        for endpoint in sorted(in_turn, key=lambda endpoint: endpoint.in_flight):
            permit = endpoint.breaker.allow()
            if permit is not None:
                return endpoint, permit
        waits = [wait for endpoint in replicas if (wait := endpoint.breaker.retry_in_s()) is not None]
        raise circuit_open(min(waits, default=None))

    def _replicas(self, call: Call) -> list[Endpoint]:
        role = "shadow" if call.purpose is Purpose.SHADOW else "student"
        base_urls = call.student.endpoints or (self._settings.base_url,)
        if not all(base_urls):
            raise UpstreamError(NOT_CONFIGURED)
        return [self._endpoint(role, base_url) for base_url in base_urls]

    def _endpoint(self, role: str, base_url: str) -> Endpoint:
        endpoint = self._endpoints.get((role, base_url))
        if endpoint is None:
            settings = replace(self._settings, base_url=base_url)
            endpoint = Endpoint(settings, self.breakers.get(role, base_url, settings), self._rng)
            # Threads that race here must share one endpoint, or its count of calls in flight would be split.
            endpoint = self._endpoints.setdefault((role, base_url), endpoint)
        return endpoint


def _adapter(call: Call) -> str:
    if call.version is None:
        raise StudentUnavailable("no_version")
    return call.version.adapter


@contextmanager
def _unavailable(adapter: str) -> Iterator[None]:
    try:
        yield
    except UpstreamError as error:
        is_missing = error.status == 404 and _names(error.message, adapter)
        kind = "adapter_missing" if is_missing else error.kind
        raise StudentUnavailable(kind, is_breaker_open=error.is_breaker_open, is_adapter_missing=is_missing) from error


def _names(message: str, adapter: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(adapter)}(?![\w-])", message) is not None


def _complete_set(answer: Answer, call: Call) -> Answer:
    """Refuse fewer samples than asked for: the threshold was calibrated on the agreement of a full set."""
    if len(answer.completions) < call.n:
        raise StudentUnavailable("too_few_samples", spent=answer.completions)
    return answer
