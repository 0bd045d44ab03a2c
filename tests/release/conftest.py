"""Versions in any state with any evidence."""

from collections.abc import Callable
from typing import Any

import pytest

from common.clock import ManualClock
from ledger.models import Event, Student, Version
from release.operator import Intent
from tests.release.builders import build_version

MakeVersion = Callable[..., Version]


@pytest.fixture
def make_version(student: Student, clock: ManualClock) -> MakeVersion:
    """Create a version of the default student in any state, as if it had been moved there."""

    def make(state: str, number: int = 1, **fields: Any) -> Version:
        return build_version(fields.pop("student", student), clock, state, number, **fields)

    return make


@pytest.fixture
def intent() -> Intent:
    """An operator with a reason."""
    return Intent("ops", "checked by hand")


@pytest.fixture
def log(student: Student) -> Callable[[], list[tuple[str, str]]]:
    """The release log so far, oldest first: kinds and details."""
    return lambda: list(Event.objects.order_by("pk").values_list("kind", "detail"))
