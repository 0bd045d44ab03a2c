"""Any sequence of admissions, evidence, ticks and operators' moves keeps the rules of release."""

from datetime import UTC, datetime

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from common.clock import ManualClock
from common.errors import Refused
from ledger.bootstrap import ensure_defaults
from ledger.models import AdminAction, Event, StateEpoch, Student, Task, Version
from release import gate, operator
from release.operator import Intent
from release.policy import ReleasePolicy
from release.rules import LEGAL_MOVES
from tests.release.builders import GOOD, audits, build_version, shadowed

POLICY = ReleasePolicy()
INTENT = Intent("ops", "because")
MOVING_KINDS = {"canary", "shadow", "live", "live_retired", "retired", "rollback", "rejected"}
numbers = st.integers(1, 4)
shares = st.none() | st.sampled_from([0, 25, 99, 100])


class Releases(RuleBasedStateMachine):
    """The release of one student, with the places its versions had after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.savepoint = transaction.atomic()
        self.savepoint.__enter__()
        self.clock = ManualClock(datetime(2026, 11, 2, 12, tzinfo=UTC))
        self.places: dict[int, tuple[str, int, int]] = {}
        self.is_frozen = False

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.savepoint.__exit__(None, None, None)

    @initialize()
    def start(self) -> None:
        ensure_defaults(Student, Task, StateEpoch)
        self.student = Student.objects.get()
        for number, precision in enumerate((1.0, 1.0, 0.9, 1.0), 1):
            evaluation = {**GOOD, "precision": precision}
            build_version(self.student, self.clock, "candidate", number, evaluation=evaluation)

    @rule(number=numbers)
    def admit(self, number: int) -> None:
        """Admit whatever has this number, a candidate or not."""
        gate.admit(Version.objects.get(number=number).pk, clock=self.clock, policy=POLICY)

    @rule(
        audited=st.sampled_from([(20, 20)] * 3 + [(18, 20), (10, 20), (3, 3)]),
        agree=st.sampled_from([100, 100, 90]),
        n_ticks=st.integers(1, 4),
    )
    def observe(self, audited: tuple[int, int], agree: int, n_ticks: int) -> None:
        """Let evidence come in and tick, some times over."""
        for _ in range(n_ticks):
            for version in Version.objects.filter(state__in=["canary", "live"]):
                audits(version, *audited)
            for version in Version.objects.filter(state="shadow"):
                shadowed(version, 110, 100, agree, n_live_answered=110, n_live_served=100)
            before = self.traffic()
            gate.tick(self.student.pk, clock=self.clock, policy=POLICY)
            assert not self.is_frozen or self.traffic() <= before
            self.every_move_was_legal_and_started_a_stage()

    def traffic(self) -> int:
        return sum(Version.objects.values_list("traffic_pct", flat=True))

    @rule(is_frozen=st.booleans())
    def freeze(self, is_frozen: bool) -> None:
        operator.set_flag("releases_frozen", "on" if is_frozen else "off", INTENT, clock=self.clock)
        self.is_frozen = is_frozen

    @rule(number=numbers, act=st.sampled_from([operator.rollback, operator.retire]))
    def withdraw(self, number: int, act) -> None:
        self.by_hand(number, lambda version: act(version.pk, INTENT, clock=self.clock))

    @rule(
        number=numbers,
        to=st.sampled_from(["canary", "live"]),
        share=st.none() | st.integers(0, 101),
        force=st.booleans(),
    )
    def promote(self, number: int, to: str, share: int | None, force: bool) -> None:
        self.by_hand(
            number,
            lambda version: operator.promote(version.pk, to, INTENT, clock=self.clock, traffic_pct=share, force=force),
        )

    def by_hand(self, number: int, act) -> None:
        version = Version.objects.get(number=number)
        counts = (Event.objects.count(), AdminAction.objects.count())
        try:
            is_change = act(version).is_change
        except Refused:
            is_change = False
        if not is_change:
            assert (Event.objects.count(), AdminAction.objects.count()) == counts

    @invariant()
    def at_most_one_is_live_and_one_in_flight(self) -> None:
        states = list(Version.objects.values_list("state", flat=True))
        assert states.count("live") <= 1
        assert states.count("shadow") + states.count("canary") <= 1

    @invariant()
    def every_move_was_legal_and_started_a_stage(self) -> None:
        for pk, *place in Version.objects.values_list("pk", "state", "traffic_pct", "stage"):
            state, share, stage = place
            was_state, was_share, was_stage = self.places.get(pk, ("candidate", 0, 0))
            if (state, share) == (was_state, was_share):
                assert stage == was_stage
            else:
                assert stage == was_stage + 1
                assert state in LEGAL_MOVES[was_state]
            self.places[pk] = (state, share, stage)

    @invariant()
    def every_move_left_one_event(self) -> None:
        moves = sum(Version.objects.values_list("stage", flat=True))
        kinds = Event.objects.filter(version__isnull=False).exclude(kind__in=["alert", "conflict"])
        assert set(kinds.values_list("kind", flat=True)) <= MOVING_KINDS | {"admin"}
        assert kinds.count() == moves

    @invariant()
    def a_share_of_traffic_fits_its_state(self) -> None:
        for state, share in Version.objects.values_list("state", "traffic_pct"):
            assert {"live": share == 100, "canary": 1 <= share <= 99}.get(state, share == 0)


@pytest.mark.req("INV-5", "INV-29", "FR-12.1", "FR-12.9")
class TestReleases(TestCase, Releases.TestCase):
    """Runs the machine, each example in a transaction that is rolled back."""

    settings = settings(
        max_examples=20,
        stateful_step_count=15,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
