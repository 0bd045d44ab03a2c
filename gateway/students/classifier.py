"""The CPU classifier as a student: a linear text model answers tasks whose every field is a label."""

import asyncio
import random
import time
from pathlib import Path

from gateway.cascade.types import Answer, Call
from gateway.settings import GatewaySettings
from gateway.students.base import StudentUnavailable
from gateway.students.linear.artefact import ArtefactError
from gateway.students.linear.cache import ArtefactCache
from gateway.students.linear.features import n_chars
from gateway.students.linear.model import LinearModel
from gateway.students.linear.sampling import draw

LONG_CHARS = 600
"""Above this a text is scored off the event loop, since it may take longer than a millisecond."""


class ClassifierStudent:
    """Samples the versions that ``nightschool.trainers.classifier`` trained, from their artefacts on disk."""

    def __init__(self, settings: GatewaySettings, rng: random.Random) -> None:
        self._rng = rng
        self._artefacts = ArtefactCache(Path(settings.artefact_dir), time.monotonic)

    async def sample(self, call: Call) -> Answer:
        """Draw samples on the event loop. Raises ``StudentUnavailable``."""
        try:
            model = await self._artefacts.get_async(call.version.artefact if call.version else {})
        except ArtefactError as error:
            raise _unavailable(error) from error
        if n_chars(call.messages) > LONG_CHARS:
            return await asyncio.get_running_loop().run_in_executor(None, self._answer, call, model)
        return self._answer(call, model)

    def sample_sync(self, call: Call) -> Answer:
        """Draw samples from synchronous code. Raises ``StudentUnavailable``."""
        try:
            model = self._artefacts.get(call.version.artefact if call.version else {})
        except ArtefactError as error:
            raise _unavailable(error) from error
        return self._answer(call, model)

    def _answer(self, call: Call, model: LinearModel) -> Answer:
        started = time.perf_counter()
        completions = draw(model, call.task, call.messages, n=call.n, temperature=call.temperature, rng=self._rng)
        elapsed_ms = (time.perf_counter() - started) * 1000
        return Answer(completions, latency_ms=elapsed_ms, model=call.version.adapter if call.version else "")


def _unavailable(error: ArtefactError) -> StudentUnavailable:
    return StudentUnavailable(error.kind, is_adapter_missing=error.kind == "artefact_missing")
