"""Scripted models: a teacher and a student backend that tests plug in by dotted path."""

import random
from collections.abc import Callable, Sequence
from math import log
from typing import Any

from gateway.cascade.types import Answer, Call, Completion
from gateway.settings import GatewaySettings
from gateway.students.base import StudentUnavailable

Script = Callable[[Call], Answer | Exception]


def completion(
    text: str, *, probability: float | None = None, finish: str = "stop", tokens: tuple = (10, 5)
) -> Completion:
    """One choice; ``probability`` is the probability of its single token."""
    logprobs = None if probability is None else [log(probability)]
    return Completion(text, finish, in_tokens=tokens[0], out_tokens=tokens[1], logprobs=logprobs)


def answer(*texts: str, probability: float | None = None, **options: Any) -> Answer:
    """An answer of one or more choices."""
    return Answer([completion(text, probability=probability, **options) for text in texts], model="")


class Scripted:
    """Calls a script and remembers the calls. Class-level, because backends are built by the code under test."""

    script: Script = staticmethod(lambda call: answer("unscripted"))
    calls: list[Call] = []

    @classmethod
    def reset(cls, script: Script) -> None:
        """Install a script and forget earlier calls."""
        cls.script = staticmethod(script)
        cls.calls = []

    @classmethod
    def run(cls, call: Call) -> Answer:
        """Answer or raise what the script says."""
        cls.calls.append(call)
        result = cls.script(call)
        if isinstance(result, Exception):
            raise result
        return result


class ScriptedTeacher(Scripted):
    """A teacher that answers as scripted; ``model`` is the configured teacher's."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._model = settings.teacher.model

    async def complete(self, call: Call) -> Answer:
        return self.complete_sync(call)

    def complete_sync(self, call: Call) -> Answer:
        result = self.run(call)
        result.model = result.model or self._model
        return result

    async def aclose(self) -> None:
        pass


class ScriptedStudent(Scripted):
    """A student backend that samples as scripted."""

    def __init__(self, settings: GatewaySettings, rng: random.Random) -> None:
        pass

    async def sample(self, call: Call) -> Answer:
        return self.run(call)

    def sample_sync(self, call: Call) -> Answer:
        return self.run(call)


def unanimous(text: str, probability: float = 0.99) -> Script:
    """A student that always gives the same samples."""
    return lambda call: answer(*[text] * call.n, probability=probability)


def unavailable(kind: str = "ReadTimeout") -> Script:
    """A student whose endpoint is down."""
    return lambda call: StudentUnavailable(kind)


class Draws:
    """A scripted generator of random draws that counts them."""

    def __init__(self, draws: Sequence[float]) -> None:
        self._draws = list(draws)
        self.n_drawn = 0

    def random(self) -> float:
        self.n_drawn += 1
        return self._draws.pop(0)
