"""When a failed call is tried again, and after what wait. Sans-I/O: both clients ask it and do the waiting."""

import random
from collections.abc import Callable

from gateway.settings import EndpointSettings
from gateway.upstream.base import UpstreamError
from gateway.upstream.failures import CONNECT_TIMEOUT, TIMEOUT, UNREACHABLE

BASE_WAIT_S = 0.5
MAX_WAIT_S = 8.0
MIN_TIMEOUT_S = 0.001
RETRIED_STATUSES = frozenset({408, 409, 429})


class Attempts:
    """The attempts of one call. Waits have full jitter, ``uniform(0, min(8, 0.5 * 2^i))`` seconds, unless the server
    names its own; ``clock`` gives monotonic seconds."""

    def __init__(self, settings: EndpointSettings, rng: random.Random, clock: Callable[[], float]) -> None:
        self._rng = rng
        self._clock = clock
        self._left = settings.retries
        self._made = 0
        self._has_timed_out = False
        self._ends_at = clock() + settings.deadline_s

    def time_left_s(self) -> float:
        """Return the seconds to the deadline; caps the next attempt's timeouts, so it is never 0."""
        return max(self._ends_at - self._clock(), MIN_TIMEOUT_S)

    def wait_s(self, error: UpstreamError) -> float | None:
        """Return the seconds to wait before the next attempt, or ``None`` when ``error`` is the call's result."""
        if self._left == 0 or not self._is_retried(error):
            return None
        wait = error.retry_after_s
        if wait is None:
            wait = self._rng.uniform(0.0, min(MAX_WAIT_S, BASE_WAIT_S * 2.0**self._made))
        if wait > MAX_WAIT_S or self._clock() + wait >= self._ends_at:
            return None
        self._left -= 1
        self._made += 1
        return wait

    def _is_retried(self, error: UpstreamError) -> bool:
        if error.kind == TIMEOUT:
            # Its tokens may have been billed, so a second timeout is not followed by a third.
            is_first, self._has_timed_out = not self._has_timed_out, True
            return is_first
        if error.kind in (UNREACHABLE, CONNECT_TIMEOUT):
            return True
        return error.status is not None and (error.status in RETRIED_STATUSES or error.status >= 500)
