"""The teacher: an OpenAI-compatible endpoint named by the settings."""

import random

from gateway.cascade.types import Answer, Call
from gateway.settings import GatewaySettings
from gateway.upstream.base import UpstreamError
from gateway.upstream.breaker import Breakers
from gateway.upstream.endpoint import Endpoint
from gateway.upstream.failures import NOT_CONFIGURED


class OpenAITeacher:
    """Answers calls of role TEACHER through one endpoint and its breaker (``gateway.upstream.base.Teacher``)."""

    def __init__(
        self, settings: GatewaySettings, rng: random.Random | None = None, breakers: Breakers | None = None
    ) -> None:
        teacher = settings.teacher
        self.breakers = breakers or Breakers()
        self._model = teacher.model
        self._endpoint: Endpoint | None = None
        if teacher.base_url and teacher.model:
            breaker = self.breakers.get("teacher", teacher.base_url, teacher)
            self._endpoint = Endpoint(teacher, breaker, rng or random.Random())

    async def complete(self, call: Call) -> Answer:
        """Answer on the event loop; raises ``UpstreamError``."""
        endpoint = self._configured()
        return await endpoint.complete(call, self._model, endpoint.admit())

    def complete_sync(self, call: Call) -> Answer:
        """Answer from synchronous code; raises ``UpstreamError``."""
        endpoint = self._configured()
        return endpoint.complete_sync(call, self._model, endpoint.admit())

    async def aclose(self) -> None:
        """Close the connections."""
        if self._endpoint is not None:
            await self._endpoint.aclose()

    def _configured(self) -> Endpoint:
        if self._endpoint is None:
            raise UpstreamError(NOT_CONFIGURED)
        return self._endpoint
