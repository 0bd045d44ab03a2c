"""Circuit breakers."""

import threading
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.upstream.base import UpstreamError
from gateway.upstream.breaker import Breaker, Breakers, Permit, Transition
from tests.upstream.fakes import Waits, settings


def make(waits: Waits, told: list[str] | None = None, **changes: Any) -> Breaker:
    told = [] if told is None else told
    return Breaker("student", clock=waits.clock, report=lambda transition: told.append(str(transition)), **changes)


def permit(breaker: Breaker) -> Permit:
    found = breaker.allow()
    assert found is not None
    return found


def fail(breaker: Breaker, times: int = 1) -> None:
    for _ in range(times):
        breaker.failed(permit(breaker), "timeout")


def state(breaker: Breaker) -> str:
    return str(breaker.snapshot()["state"])


@pytest.mark.req("FR-2.11")
def test_five_failures_in_a_row_open_it_and_a_success_in_between_does_not() -> None:
    waits, told = Waits(), []
    breaker = make(waits, told)
    fail(breaker, 4)
    breaker.succeeded(permit(breaker))
    fail(breaker, 4)
    assert state(breaker) == "closed" and breaker.retry_in_s() is None
    fail(breaker)
    assert breaker.allow() is None
    assert breaker.retry_in_s() == 30.0
    assert told == ["student: closed->open after 5 failures (timeout)"]
    waits.now += 29.9
    assert breaker.allow() is None


@pytest.mark.req("FR-2.11")
def test_one_probe_closes_it_and_resets_the_wait() -> None:
    waits, told = Waits(), []
    breaker = make(waits, told)
    fail(breaker, 5)
    waits.now += 30
    assert breaker.retry_in_s() == 0.0
    probe = permit(breaker)
    assert breaker.allow() is None and breaker.retry_in_s() is None
    breaker.succeeded(probe)
    assert told[1:] == [
        "student: open->half_open after 30 s; one probe",
        "student: half_open->closed after a successful probe",
    ]
    assert breaker.snapshot() == {"name": "student", "state": "closed", "failures": 0, "wait_s": 30.0}
    fail(breaker, 5)
    assert breaker.retry_in_s() == 30.0


@pytest.mark.req("FR-2.11")
def test_failed_probes_double_the_wait_up_to_300_s_and_only_the_first_there_is_reported() -> None:
    waits, told = Waits(), []
    breaker = make(waits, told)
    fail(breaker, 5)
    found = []
    for _ in range(6):
        waits.now += breaker.snapshot()["wait_s"]
        fail(breaker)
        found.append(breaker.retry_in_s())
    assert found == [60.0, 120.0, 240.0, 300.0, 300.0, 300.0]
    assert told[-4:] == [
        "student: open->half_open after 240 s; one probe",
        "student: half_open->open for 300 s after a failed probe (timeout)",
        "student: open->half_open after 300 s; one probe (probe 1 at the longest wait)",
        "student: half_open->open for 300 s after a failed probe (timeout) (probe 1 at the longest wait)",
    ]


@pytest.mark.req("FR-2.11")
def test_a_long_outage_reports_the_1st_10th_and_100th_probe_and_the_closing() -> None:
    waits, told = Waits(), []
    breaker = make(waits, told, cooldown_s=300.0)
    for _outage in range(2):
        fail(breaker, 5)
        told.clear()
        for _ in range(120):
            waits.now += 300
            fail(breaker)
        assert breaker.snapshot()["failures"] == 125
        assert [line.rsplit("(", 1)[1] for line in told] == [
            f"probe {number} at the longest wait)" for number in (1, 1, 10, 10, 100, 100)
        ]
        waits.now += 300
        breaker.succeeded(permit(breaker))
        assert told[-1] == "student: half_open->closed after a successful probe"


@pytest.mark.req("FR-2.11")
def test_a_released_probe_lets_the_next_caller_probe_at_once() -> None:
    waits = Waits()
    breaker = make(waits)
    fail(breaker, 5)
    waits.now += 30
    breaker.released(permit(breaker))
    second = permit(breaker)
    assert breaker.allow() is None
    breaker.succeeded(second)
    assert state(breaker) == "closed"


@pytest.mark.req("FR-2.11")
def test_a_lost_probe_is_replaced_only_when_it_cannot_be_running_and_still_counts() -> None:
    waits = Waits()
    breaker = make(waits, cooldown_s=5.0, probe_timeout_s=37.0)
    fail(breaker, 5)
    waits.now += 5
    lost = permit(breaker)
    waits.now += 36.9
    assert breaker.allow() is None
    waits.now += 0.1
    assert permit(breaker) is not lost
    breaker.failed(lost, "timeout")
    assert state(breaker) == "open" and breaker.retry_in_s() == 10.0


@pytest.mark.req("FR-2.11")
def test_late_results_of_calls_from_before_the_outage_change_nothing() -> None:
    waits = Waits()
    breaker = make(waits)
    early, late = permit(breaker), permit(breaker)
    fail(breaker, 5)
    breaker.succeeded(early)
    assert state(breaker) == "open"
    waits.now += 30
    probe = permit(breaker)
    breaker.succeeded(early)
    breaker.failed(late, "timeout")
    assert state(breaker) == "half_open"
    breaker.failed(probe, "timeout")
    breaker.succeeded(probe)
    assert state(breaker) == "open" and breaker.retry_in_s() == 60.0


@pytest.mark.req("FR-2.11", "FR-2.12")
def test_a_threshold_of_zero_never_opens() -> None:
    breaker = make(Waits(), failures=0)
    fail(breaker, 100)
    assert state(breaker) == "closed" and breaker.snapshot()["failures"] == 100


@pytest.mark.req("FR-2.11", "INV-7")
def test_a_failing_listener_is_swallowed() -> None:
    def broken(transition: Transition) -> None:
        raise RuntimeError("listener")

    breaker = Breaker("student", failures=1, clock=Waits().clock, report=broken)
    fail(breaker)
    assert state(breaker) == "open"


@pytest.mark.parametrize(
    "bad",
    [
        {"failures": -1},
        {"cooldown_s": 0},
        {"cooldown_s": 301},
        {"cooldown_s": float("nan")},
        {"probe_timeout_s": -1},
        {"probe_timeout_s": float("inf")},
    ],
)
def test_impossible_numbers_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="breaker student"):
        make(Waits(), **bad)


@pytest.mark.req("FR-2.11")
@pytest.mark.parametrize(
    "raised, failures, is_handed_back",
    [
        (None, 0, False),
        (UpstreamError("http_400", status=400), 0, False),
        (UpstreamError("http_503", status=503), 2, False),
        (KeyError("bug"), 1, True),
    ],
)
def test_a_permit_tells_how_its_call_ended(raised: Exception | None, failures: int, is_handed_back: bool) -> None:
    waits = Waits()
    breaker = make(waits, failures=1)
    fail(breaker)
    waits.now += 30
    with suppress(UpstreamError, KeyError), permit(breaker):
        if raised:
            raise raised
    assert breaker.snapshot()["failures"] == failures
    assert (state(breaker) == "half_open" and breaker.allow() is not None) is is_handed_back


@pytest.mark.req("FR-2.11")
def test_exactly_one_of_many_threads_probes() -> None:
    for _ in range(10):
        waits = Waits()
        breaker = make(waits, failures=1)
        fail(breaker)
        waits.now += 30
        barrier, found = threading.Barrier(8), []

        def ask(breaker: Breaker, barrier: threading.Barrier, found: list[Permit | None]) -> None:
            barrier.wait()
            found.append(breaker.allow())

        threads = [threading.Thread(target=ask, args=(breaker, barrier, found)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(one is not None for one in found) == 1


@pytest.mark.req("FR-2.11")
def test_breakers_are_one_per_role_and_endpoint() -> None:
    breakers = Breakers(Waits().clock, lambda transition: None)
    patience = settings("http://a/v1", breaker_failures=2, breaker_cooldown_s=7.0)
    first = breakers.get("student", "http://a/v1", patience)
    assert breakers.get("student", "http://a/v1", patience) is first
    names = [
        breakers.get(role, url, patience).name
        for role, url in [("student", "http://b/v1"), ("student", "http://c/v1"), ("shadow", "http://a/v1")]
    ]
    assert (first.name, *names) == ("student", "student-2", "student-3", "shadow")
    fail(first, 2)
    assert [(one["name"], one["state"]) for one in breakers.snapshots()] == [
        ("student", "open"),
        ("student-2", "closed"),
        ("student-3", "closed"),
        ("shadow", "closed"),
    ]
    assert first.retry_in_s() == 7.0


class BreakerMachine(RuleBasedStateMachine):
    """Any interleaving of calls, results and time, against a plain model of what callers may rely on."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = Waits()
        self.told: list[Transition] = []
        self.breaker = Breaker(
            "student",
            failures=2,
            cooldown_s=30.0,
            probe_timeout_s=40.0,
            clock=self.waits.clock,
            report=self.told.append,
        )
        self.calls: list[Permit] = []
        self.probes: list[tuple[Permit, float]] = []

    @rule()
    def ask(self) -> None:
        before = self.breaker.snapshot()
        wait = self.breaker.retry_in_s()
        found = self.breaker.allow()
        if before["state"] == "closed":
            assert found is not None
        if before["state"] == "open":
            assert (found is not None) == (wait == 0.0)
        if found is not None:
            self.calls.append(found)
            if found.period is not None:
                running = [at for probe, at in self.probes if probe.period == found.period]
                assert all(self.waits.now >= at + max(before["wait_s"], 40.0) for at in running)
                self.probes.append((found, self.waits.now))

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), how=st.sampled_from(["succeeded", "failed", "released"]))
    def report(self, data: st.DataObject, how: str) -> None:
        call = self.calls.pop(data.draw(st.integers(0, len(self.calls) - 1)))
        before = self.breaker.snapshot()
        if how == "failed":
            self.breaker.failed(call, "timeout")
        else:
            getattr(self.breaker, how)(call)
        self.probes = [entry for entry in self.probes if entry[0] is not call]
        after = self.breaker.snapshot()
        if before["state"] == "open":
            assert after == before
        if call.period is None and before["state"] == "half_open":
            assert after == before
        if how == "released":
            assert after == before

    @rule(seconds=st.sampled_from([0.5, 15.0, 30.0, 60.0, 400.0]))
    def pass_time(self, seconds: float) -> None:
        self.waits.now += seconds

    @invariant()
    def the_wait_stays_in_its_range(self) -> None:
        snapshot = self.breaker.snapshot()
        assert 30.0 <= snapshot["wait_s"] <= 300.0
        assert (self.breaker.retry_in_s() is not None) == (snapshot["state"] == "open")
        if snapshot["state"] == "closed":
            assert snapshot["failures"] < 2 and snapshot["wait_s"] == 30.0

    @invariant()
    def reports_begin_in_closed_and_never_stay_where_they_were(self) -> None:
        assert not self.told or self.told[0].old == "closed"
        assert all(transition.old != transition.new for transition in self.told)


TestBreakerMachine = pytest.mark.req("FR-2.11")(BreakerMachine.TestCase)
TestBreakerMachine.settings = hypothesis_settings(max_examples=40, stateful_step_count=25, deadline=None)
