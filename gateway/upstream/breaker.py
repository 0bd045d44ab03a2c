"""Circuit breakers: an endpoint that keeps failing is left alone for a while, then tried with one call at a time.

Pure state on an injected monotonic clock, safe under threads; a closed breaker costs no lock.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic
from types import TracebackType
from typing import Any

from gateway.settings import EndpointSettings
from gateway.upstream.base import UpstreamError
from gateway.upstream.failures import endpoint_down

MAX_WAIT_S = 300.0
PROBE_MARGIN_S = 5.0
REPORTED_PROBES = frozenset({1, 10, 100, 1000})
logger = logging.getLogger(__name__)


class State(StrEnum):
    """A breaker's state."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class Transition:
    """One change of state; its text names the breaker and the failure's kind, never an endpoint or a message."""

    breaker: str
    old: State
    new: State
    why: str

    def __str__(self) -> str:
        return f"{self.breaker}: {self.old}->{self.new} {self.why}"


Report = Callable[[Transition], None]


def log_transition(transition: Transition) -> None:
    """Report a transition to the log."""
    logger.warning("circuit %s", transition)


class Permit:
    """Leave to make one call, as a context manager that tells the breaker how the call ended."""

    __slots__ = ("_breaker", "period")

    def __init__(self, breaker: "Breaker", period: int | None) -> None:
        self._breaker = breaker
        self.period = period
        """The outage that this permit probes; ``None`` for a call through a closed breaker."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._breaker.succeeded(self)
        elif not isinstance(error, UpstreamError):
            self._breaker.released(self)
        elif endpoint_down(error):
            self._breaker.failed(self, error.kind)
        else:
            self._breaker.succeeded(self)


class Breaker:
    """The breaker of one endpoint in one role.

    ``failures`` in a row open it (0: never). After ``cooldown_s`` one call probes the endpoint; a failed probe doubles
    the wait up to 300 s, a successful one closes the breaker. A probe that does not report within the longer of the
    wait and ``probe_timeout_s`` is presumed lost and another may start; reporting late, it decides as that one would.
    ``report`` is called outside the lock and must not block. Raises ``ValueError`` on impossible numbers.
    """

    def __init__(
        self,
        name: str,
        *,
        failures: int = 5,
        cooldown_s: float = 30.0,
        probe_timeout_s: float = 0.0,
        clock: Callable[[], float] = monotonic,
        report: Report = log_transition,
    ) -> None:
        if failures < 0 or not 0 < cooldown_s <= MAX_WAIT_S or not 0 <= probe_timeout_s < float("inf"):
            raise ValueError(f"breaker {name}: failures, cooldown or probe timeout out of range")
        self.name = name
        self._threshold = failures
        self._cooldown_s = cooldown_s
        self._probe_timeout_s = probe_timeout_s
        self._clock = clock
        self._report = report
        self._lock = threading.Lock()
        self._through = Permit(self, None)
        self._state = State.CLOSED
        self._failures = 0
        self._wait_s = cooldown_s
        self._open_until = 0.0
        self._period = 0
        self._probe: Permit | None = None
        self._probed_at = 0.0
        self._probes_at_max = 0

    def allow(self) -> Permit | None:
        """Return leave to make one call, or ``None`` while the endpoint is to be left alone."""
        if self._state is State.CLOSED:
            return self._through
        with self._lock:
            permit, transition = self._admit(self._clock())
        self._tell(transition)
        return permit

    def succeeded(self, permit: Permit) -> None:
        """Record that the endpoint answered, be it with a refusal of the request."""
        if permit.period is None and not self._failures:
            return
        transition = None
        with self._lock:
            if permit.period is None and self._state is State.CLOSED:
                self._failures = 0
            elif self._decides(permit):
                transition = Transition(self.name, State.HALF_OPEN, State.CLOSED, "after a successful probe")
                self._close()
        self._tell(transition)

    def failed(self, permit: Permit, kind: str) -> None:
        """Record that the endpoint looks down; ``kind`` is the failure's class and status."""
        transition = None
        with self._lock:
            if permit.period is None and self._state is State.CLOSED:
                self._failures += 1
                if 0 < self._threshold <= self._failures:
                    transition = self._open(f"after {self._failures} failures ({kind})")
            elif self._decides(permit):
                self._failures += 1
                self._wait_s = min(2 * self._wait_s, MAX_WAIT_S)
                transition = self._open(f"for {self._wait_s:g} s after a failed probe ({kind}){self._probe_label()}")
                transition = transition if self._is_probe_reported() else None
        self._tell(transition)

    def released(self, permit: Permit) -> None:
        """Record that a call said nothing about the endpoint (it was cancelled, or a bug ended it)."""
        with self._lock:
            if permit is self._probe:
                self._probe = None

    def retry_in_s(self) -> float | None:
        """Return the seconds until the next probe, 0 once it is due; ``None`` while closed or half-open."""
        with self._lock:
            return max(self._open_until - self._clock(), 0.0) if self._state is State.OPEN else None

    def snapshot(self) -> dict[str, Any]:
        """Return its name, state, failures in a row and current wait, for people and metrics."""
        with self._lock:
            return {"name": self.name, "state": str(self._state), "failures": self._failures, "wait_s": self._wait_s}

    def _admit(self, now: float) -> tuple[Permit | None, Transition | None]:
        transition = None
        if self._state is State.CLOSED:
            return self._through, None
        if self._state is State.OPEN:
            if now < self._open_until:
                return None, None
            self._state = State.HALF_OPEN
            self._probes_at_max += self._wait_s >= MAX_WAIT_S
            if self._is_probe_reported():
                why = f"after {self._wait_s:g} s; one probe{self._probe_label()}"
                transition = Transition(self.name, State.OPEN, State.HALF_OPEN, why)
        elif self._probe is not None and now < self._probed_at + max(self._wait_s, self._probe_timeout_s):
            return None, None
        self._probe, self._probed_at = Permit(self, self._period), now
        return self._probe, transition

    def _decides(self, permit: Permit) -> bool:
        return self._state is State.HALF_OPEN and permit.period == self._period

    def _open(self, why: str) -> Transition:
        transition = Transition(self.name, self._state, State.OPEN, why)
        self._state = State.OPEN
        self._open_until = self._clock() + self._wait_s
        self._period += 1
        self._probe = None
        return transition

    def _close(self) -> None:
        self._state = State.CLOSED
        self._failures = 0
        self._wait_s = self._cooldown_s
        self._probe = None
        self._probes_at_max = 0

    def _is_probe_reported(self) -> bool:
        return not self._probes_at_max or self._probes_at_max in REPORTED_PROBES

    def _probe_label(self) -> str:
        return f" (probe {self._probes_at_max} at the longest wait)" if self._probes_at_max else ""

    def _tell(self, transition: Transition | None) -> None:
        if transition is not None:
            try:
                self._report(transition)
            except Exception:  # noqa: BLE001 - a listener never fails the call that it is told of
                logger.warning("circuit listener failed")


class Breakers:
    """The breakers of one process, made on first use and keyed by role and base URL."""

    def __init__(self, clock: Callable[[], float] = monotonic, report: Report = log_transition) -> None:
        self._clock = clock
        self.report = report
        """Called with each change of state; may be replaced, also after breakers were made."""
        self._lock = threading.Lock()
        self._breakers: dict[tuple[str, str], Breaker] = {}

    def get(self, role: str, base_url: str, settings: EndpointSettings) -> Breaker:
        """Return the breaker of ``role`` at ``base_url``; further endpoints of a role are ``role-2`` and so on."""
        with self._lock:
            breaker = self._breakers.get((role, base_url))
            if breaker is None:
                position = 1 + sum(known == role for known, _ in self._breakers)
                breaker = self._breakers[role, base_url] = Breaker(
                    role if position == 1 else f"{role}-{position}",
                    failures=settings.breaker_failures,
                    cooldown_s=settings.breaker_cooldown_s,
                    probe_timeout_s=settings.deadline_s + PROBE_MARGIN_S,
                    clock=self._clock,
                    report=self._relay,
                )
            return breaker

    def _relay(self, transition: Transition) -> None:
        self.report(transition)

    def snapshots(self) -> list[dict[str, Any]]:
        """Return every breaker's snapshot."""
        with self._lock:
            breakers = list(self._breakers.values())
        return [breaker.snapshot() for breaker in breakers]
