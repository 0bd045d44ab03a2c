"""The mock teacher of simulations: always right on the labels, and priced like a reasoning model."""

from gateway.cascade.types import Answer, Call
from gateway.settings import GatewaySettings
from gateway.upstream.base import UpstreamError
from sim.tickets import ANSWERS, labels_of, recognise, ticket_text
from sim.tokens import completion, prompt_tokens

MODEL = "ratchet-sim/mock-teacher"
REASONING_TOKENS = 300
LATENCY_MS = 2_400.0


class MockTeacher:
    """A ``gateway.upstream.base.Teacher`` for ``RATCHET_TEACHER_BACKEND``; its latency is reported, not slept.

    It knows the simulated tickets only; anything else is the 400 that an endpoint gives to what it cannot answer.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self._model = settings.teacher.model or MODEL

    async def complete(self, call: Call) -> Answer:
        """Answer on the event loop."""
        return self.complete_sync(call)

    def complete_sync(self, call: Call) -> Answer:
        """Answer with the true labels; raises ``UpstreamError`` for a text that no template made."""
        template = recognise(ticket_text(call.messages))
        if template is None:
            raise UpstreamError(
                "MockTeacher 400",
                status=400,
                message="The mock teacher answers simulated tickets only.",
                error_type="invalid_request_error",
                code="unknown_ticket",
            )
        answer, tokens = ANSWERS[labels_of(template)], prompt_tokens(call.messages)
        choices = [completion(answer, tokens, call.params, reasoning=REASONING_TOKENS) for _ in range(call.n)]
        return Answer(choices, LATENCY_MS, self._model)

    async def aclose(self) -> None:
        """Hold nothing, close nothing."""
