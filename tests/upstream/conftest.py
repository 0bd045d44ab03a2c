"""Scripted endpoints."""

from collections.abc import Callable, Iterator

import pytest

from tests.upstream.fakes import Upstream


@pytest.fixture
def start() -> Iterator[Callable[[], Upstream]]:
    """Start any number of endpoints, which stop with the test."""
    started: list[Upstream] = []

    def start_one() -> Upstream:
        started.append(Upstream())
        return started[-1]

    yield start_one
    for upstream in started:
        upstream.stop()


@pytest.fixture
def upstream(start: Callable[[], Upstream]) -> Upstream:
    """One endpoint."""
    return start()
