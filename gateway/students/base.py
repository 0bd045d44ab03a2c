"""The interface of a student: something that draws samples of an answer."""

from collections.abc import Sequence
from typing import Protocol

from gateway.cascade.types import Answer, Call, Completion


class StudentUnavailable(Exception):
    """Sampling failed. ``kind`` names the class (and status), never a message or a text.

    ``spent`` are samples that came and cannot be used; they are billed all the same.
    """

    def __init__(
        self,
        kind: str,
        *,
        is_breaker_open: bool = False,
        is_adapter_missing: bool = False,
        spent: Sequence[Completion] = (),
    ) -> None:
        super().__init__(kind)
        self.kind = kind
        self.is_breaker_open = is_breaker_open
        self.is_adapter_missing = is_adapter_missing
        self.spent = spent


class StudentBackend(Protocol):
    """Samples versions of one kind. Built once per process with the gateway's settings and a random generator.

    ``call`` carries everything: ``call.version`` (its ``adapter`` and ``artefact``), ``call.task``, ``call.messages``,
    ``call.n`` samples, ``call.temperature``, ``call.params`` and ``call.student`` (its ``endpoints``).
    ``call.purpose`` is SAMPLE on the request path, SHADOW for a shadow and for the golden evaluation.
    Both methods draw from the same distribution (INV-6) and raise ``StudentUnavailable``.
    """

    async def sample(self, call: Call) -> Answer:
        """Draw samples on the event loop; blocks nothing for longer than a millisecond."""
        ...

    def sample_sync(self, call: Call) -> Answer:
        """Draw samples from synchronous code (Celery, the simulator, the golden evaluation)."""
        ...
