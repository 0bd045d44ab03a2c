"""The two kinds of models the cascade calls, made from the settings: the teacher and the students' backends."""

import random
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from common.errors import ConfigurationError
from gateway.cascade.types import Call, CallFailed, Outcome, Role
from gateway.settings import GatewaySettings
from gateway.students.base import StudentBackend, StudentUnavailable
from gateway.upstream.base import Teacher, UpstreamError
from gateway.upstream.breaker import Breakers, Report, log_transition


def load_path(path: str, variable: str) -> Any:
    """Import ``package.module.Name``; raises ``ConfigurationError`` naming ``variable``."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"{variable}: cannot import {path!r} ({type(error).__name__})") from error


@runtime_checkable
class HasBreakers(Protocol):
    """A provider that guards its endpoints with circuit breakers."""

    breakers: Breakers


@runtime_checkable
class Closable(Protocol):
    """A provider with connections to close."""

    async def aclose(self) -> None:
        """Close the running event loop's connections."""
        ...


class Models:
    """The teacher and the student backends of one process; calls become outcomes, failures never raise.

    ``report`` is told of every change of a circuit breaker; it must not block.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        rng: random.Random,
        teacher: Teacher | None = None,
        report: Report = log_transition,
    ) -> None:
        self._settings = settings
        self._rng = rng
        self._report = report
        self._backends: dict[str, StudentBackend] = {}
        self.teacher: Teacher = teacher or load_path(settings.teacher_backend, "RATCHET_TEACHER_BACKEND")(settings)
        self._listen(self.teacher)

    def _listen(self, provider: Teacher | StudentBackend) -> None:
        if isinstance(provider, HasBreakers):
            provider.breakers.report = self._report

    async def aclose(self) -> None:
        """Close every provider's connections of the running event loop."""
        for provider in (self.teacher, *self._backends.values()):
            if isinstance(provider, Closable):
                await provider.aclose()

    def backend(self, key: str) -> StudentBackend:
        """Return the backend registered under ``key``, built on first use."""
        if key not in self._backends:
            paths: Mapping[str, str] = self._settings.student_backends
            if key not in paths:
                raise ConfigurationError(
                    f"student backend {key!r} is not registered; known: {', '.join(sorted(paths))}"
                )
            backend = load_path(paths[key], "RATCHET_STUDENT_BACKENDS")(self._settings, self._rng)
            self._listen(backend)
            # Threads that race here must share one backend: its breakers and connections are the process's.
            self._backends.setdefault(key, backend)
        return self._backends[key]

    async def ask(self, call: Call) -> Outcome:
        """Make a call on the event loop."""
        try:
            if call.role is Role.TEACHER:
                return await self.teacher.complete(call)
            return await self.backend(call.student.backend).sample(call)
        except (UpstreamError, StudentUnavailable) as error:
            return _failed(error)
        except Exception as error:  # noqa: BLE001 - a bug in a provider escalates, it never fails a request (INV-7)
            return CallFailed(type(error).__name__, error=error)

    def ask_sync(self, call: Call) -> Outcome:
        """Make a call from synchronous code."""
        try:
            if call.role is Role.TEACHER:
                return self.teacher.complete_sync(call)
            return self.backend(call.student.backend).sample_sync(call)
        except (UpstreamError, StudentUnavailable) as error:
            return _failed(error)
        except Exception as error:  # noqa: BLE001 - as above
            return CallFailed(type(error).__name__, error=error)


def _failed(error: UpstreamError | StudentUnavailable) -> CallFailed:
    spent = error.spent if isinstance(error, StudentUnavailable) else ()
    return CallFailed(error.kind, error.is_breaker_open, error, spent)
