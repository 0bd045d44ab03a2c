"""When a call is tried again."""

import random

import pytest

from gateway.upstream.base import UpstreamError
from gateway.upstream.failures import bad_response, timed_out
from gateway.upstream.retry import Attempts
from tests.upstream.fakes import Waits, settings


class Jitter(random.Random):
    """Draws a fixed point of the range and records the range."""

    def __init__(self, at: float) -> None:
        super().__init__(1)
        self.at = at
        self.tops: list[float] = []

    def uniform(self, a: float, b: float) -> float:
        assert a == 0.0
        self.tops.append(b)
        return self.at * b


def status(code: int, retry_after_s: float | None = None) -> UpstreamError:
    return UpstreamError(f"http_{code}", status=code, retry_after_s=retry_after_s)


def attempts(
    waits: Waits, rng: random.Random | None = None, *, retries: int = 2, deadline_s: float = 180.0
) -> Attempts:
    return Attempts(settings("http://x/v1", retries=retries, deadline_s=deadline_s), rng or Jitter(1.0), waits.clock)


@pytest.mark.req("FR-1.11")
def test_waits_have_full_jitter_under_a_growing_cap() -> None:
    jitter = Jitter(0.5)
    tries = attempts(Waits(), jitter, retries=6)
    assert [tries.wait_s(status(503)) for _ in range(7)] == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0, None]
    assert jitter.tops == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    assert attempts(Waits(), Jitter(0.0)).wait_s(status(500)) == 0.0


@pytest.mark.req("FR-1.11")
@pytest.mark.parametrize("code", [408, 409, 429, 500, 502, 503, 504])
def test_busy_and_broken_answers_are_retried(code: int) -> None:
    assert attempts(Waits()).wait_s(status(code)) == 0.5


@pytest.mark.req("FR-1.11")
@pytest.mark.parametrize("code", [301, 400, 401, 402, 403, 404, 413, 422])
def test_refusals_are_not_retried(code: int) -> None:
    assert attempts(Waits()).wait_s(status(code, retry_after_s=1.0)) is None


@pytest.mark.req("FR-1.11")
def test_an_unreadable_success_and_a_broken_connection_are_not_retried() -> None:
    assert attempts(Waits()).wait_s(bad_response()) is None
    assert attempts(Waits()).wait_s(UpstreamError("disconnected")) is None
    assert attempts(Waits()).wait_s(UpstreamError("not_configured")) is None


@pytest.mark.req("FR-1.11")
def test_the_servers_wait_is_honoured_up_to_the_cap() -> None:
    assert attempts(Waits()).wait_s(status(429, 2.0)) == 2.0
    assert attempts(Waits()).wait_s(status(503, 8.0)) == 8.0
    assert attempts(Waits()).wait_s(status(429, 8.5)) is None


@pytest.mark.req("FR-1.11")
def test_a_read_timeout_is_retried_once_and_other_failures_do_not_use_it_up() -> None:
    tries = attempts(Waits(), retries=5)
    assert tries.wait_s(status(503)) is not None
    assert tries.wait_s(timed_out()) is not None
    assert tries.wait_s(status(503)) is not None
    assert tries.wait_s(timed_out()) is None


@pytest.mark.req("FR-1.11")
def test_connection_failures_are_retried_to_the_end() -> None:
    tries = attempts(Waits(), retries=3)
    failures = [timed_out("connect_timeout"), UpstreamError("unreachable"), timed_out("connect_timeout")]
    assert None not in [tries.wait_s(failure) for failure in failures]
    assert tries.wait_s(UpstreamError("unreachable")) is None


@pytest.mark.req("FR-1.11")
def test_no_wait_ends_past_the_deadline_and_time_left_shrinks() -> None:
    waits = Waits()
    tries = attempts(waits, retries=9, deadline_s=5.0)
    left = []
    for _ in range(3):
        left.append(tries.time_left_s())
        waits.now += 1.0
        wait = tries.wait_s(status(503))
        waits.now += wait or 0.0
    assert left == [5.0, 3.5, 1.5]
    assert wait is None
    waits.now += 100
    assert tries.time_left_s() == 0.001


@pytest.mark.req("FR-1.11")
def test_without_retries_the_first_failure_is_the_result() -> None:
    assert attempts(Waits(), retries=0).wait_s(status(503)) is None
