"""The two kinds of models the cascade calls, made from the settings: the teacher and the students' backends."""

import random
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from common.errors import ConfigurationError
from gateway.cascade.types import Call, CallFailed, Outcome, Role
from gateway.settings import GatewaySettings
from gateway.students.base import StudentBackend, StudentUnavailable
from gateway.upstream.base import Teacher, UpstreamError


def load_path(path: str, variable: str) -> Any:
    """Import ``package.module.Name``; raises ``ConfigurationError`` naming ``variable``."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"{variable}: cannot import {path!r} ({type(error).__name__})") from error


class Models:
    """The teacher and the student backends of one process; calls become outcomes, failures never raise."""

    def __init__(self, settings: GatewaySettings, rng: random.Random, teacher: Teacher | None = None) -> None:
        self._settings = settings
        self._rng = rng
        self._backends: dict[str, StudentBackend] = {}
        self.teacher: Teacher = teacher or load_path(settings.teacher_backend, "RATCHET_TEACHER_BACKEND")(settings)

    def backend(self, key: str) -> StudentBackend:
        """Return the backend registered under ``key``, built on first use."""
        if key not in self._backends:
            paths: Mapping[str, str] = self._settings.student_backends
            if key not in paths:
                raise ConfigurationError(
                    f"student backend {key!r} is not registered; known: {', '.join(sorted(paths))}"
                )
            self._backends[key] = load_path(paths[key], "RATCHET_STUDENT_BACKENDS")(self._settings, self._rng)
        return self._backends[key]

    async def ask(self, call: Call) -> Outcome:
        """Make a call on the event loop."""
        try:
            if call.role is Role.TEACHER:
                return await self.teacher.complete(call)
            return await self.backend(call.student.backend).sample(call)
        except (UpstreamError, StudentUnavailable) as error:
            return CallFailed(error.kind, error.is_breaker_open, error)
        except Exception as error:  # noqa: BLE001 - a bug in a provider escalates, it never fails a request (INV-7)
            return CallFailed(type(error).__name__, error=error)

    def ask_sync(self, call: Call) -> Outcome:
        """Make a call from synchronous code."""
        try:
            if call.role is Role.TEACHER:
                return self.teacher.complete_sync(call)
            return self.backend(call.student.backend).sample_sync(call)
        except (UpstreamError, StudentUnavailable) as error:
            return CallFailed(error.kind, error.is_breaker_open, error)
        except Exception as error:  # noqa: BLE001 - as above
            return CallFailed(type(error).__name__, error=error)
