"""Ticks: the evidence of a stage moves a version, once."""

import logging

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger.models import Event, RuntimeFlag, Student
from release import gate
from release.policy import ReleasePolicy
from tests.release.builders import audits, place, shadowed

POLICY = ReleasePolicy()


@pytest.fixture
def tick(student, clock):
    return lambda: gate.tick(student.pk, clock=clock, policy=POLICY)


def freeze(clock, name="releases_frozen", value="on"):
    RuntimeFlag.objects.create(name=name, value=value, updated_at=clock.now(), updated_by="ops")


@pytest.mark.req("FR-6.4", "FR-6.5")
def test_evidence_takes_a_shadow_to_live_and_retires_the_old_one(make_version, tick, log):
    old, new = make_version("live", 1), make_version("shadow", 2, stage=1)
    shadowed(new, 60, 50, 50, n_live_answered=60, n_live_served=50)
    assert tick() == []
    shadowed(new, 60, 50, 49, "other", n_live_answered=60, n_live_served=50, n_unarbitrated=1)
    to_canary = (
        "v2: canary 10%: shadow: 99 of 100 would-serve answers agree (99.0%) "
        "(1 unarbitrated counted as disagreements); coverage 83.3% of 120 requests, live 83.3%"
    )
    assert tick() == [to_canary]
    new.refresh_from_db()
    audits(new, 20, 20)
    assert tick() == ["v2: canary 50%: 20 of 20 audits agree (100.0%) at 10%"]
    assert tick() == []
    new.refresh_from_db()
    audits(new, 12, 12)
    audits(new, 7, 8, "other")
    assert tick() == ["v2: live: 19 of 20 audits agree (95.0%) at 50%"]
    assert (place(old), place(new)) == (("retired", 0, 4), ("live", 100, 4))
    assert log() == [
        ("canary", to_canary),
        ("canary", "v2: canary 50%: 20 of 20 audits agree (100.0%) at 10%"),
        ("live_retired", "v1: retired, v2 takes over"),
        ("live", "v2: live: 19 of 20 audits agree (95.0%) at 50%"),
    ]


@pytest.mark.req("FR-6.4")
def test_a_shadow_that_disagrees_is_rejected(make_version, tick, log):
    version = make_version("shadow")
    shadowed(version, 100, 100, 94)
    tick()
    assert place(version) == ("rejected", 0, 4)
    assert log() == [("rejected", "v1: rejected: shadow: 94 of 100 would-serve answers agree (94.0%), below 95.0%")]


@pytest.mark.req("FR-6.6")
def test_a_bad_canary_gives_its_traffic_back_to_the_live_version(make_version, tick, log):
    live, canary = make_version("live", 1), make_version("canary", 2)
    audits(canary, 16, 20)
    tick()
    assert (place(live), place(canary)) == (("live", 100, 3), ("rolled_back", 0, 4))
    assert log() == [
        (
            "rollback",
            "v2: rolled back: 16 of 20 audits agree (80.0%); Wilson upper bound 91.9% is under the 92.0% floor; "
            "traffic back to v1",
        )
    ]


@pytest.mark.req("FR-6.6")
def test_a_bad_first_canary_gives_its_traffic_back_to_the_teacher(make_version, tick, log):
    canary = make_version("canary")
    audits(canary, 10, 20)
    tick()
    assert place(canary) == ("rolled_back", 0, 4)
    ((kind, detail),) = log()
    assert kind == "rollback"
    assert detail.endswith("; traffic back to the teacher")


@pytest.mark.req("FR-6.5", "FR-6.6")
def test_weak_evidence_holds_however_often_it_is_looked_at(make_version, tick):
    canary = make_version("canary")
    audits(canary, 18, 20)
    assert [tick() for _ in range(3)] == [[], [], []]
    assert place(canary) == ("canary", 10, 3)
    audits(canary, 38, 40)
    tick()
    assert place(canary) == ("canary", 50, 4)


@pytest.mark.req("FR-6.5")
def test_evidence_of_an_earlier_stage_does_not_count(make_version, tick):
    canary = make_version("canary")
    audits(canary, 100, 100)
    tick()
    assert [tick() for _ in range(3)] == [[], [], []]
    assert place(canary) == ("canary", 50, 4)


@pytest.mark.req("FR-6.7", "INV-26")
def test_a_live_version_under_the_floor_is_alerted_on_once_and_never_moved(make_version, tick, log, student, clock):
    live = make_version("live")
    audits(live, 17, 20)
    assert tick() == []
    audits(live, 16, 20)
    alert = "v1: live precision: 16 of 20 audits agree (80.0%); Wilson upper bound 91.9% is under the 92.0% floor"
    assert tick() == [alert]
    audits(live, 10, 40)
    assert gate.tick_all(clock=clock, policy=POLICY) == []
    assert log() == [("alert", alert)]
    assert place(live) == ("live", 100, 3)


@pytest.mark.req("FR-6.7")
def test_failures_as_a_canary_do_not_count_against_the_live_version(make_version, tick):
    version = make_version("canary", traffic_pct=50)
    audits(version, 96, 100)
    tick()
    version.refresh_from_db()
    assert version.state == "live"
    audits(version, 18, 20)
    assert tick() == []


@pytest.mark.req("FR-12.1")
def test_a_freeze_holds_promotions_but_no_rollback_and_no_alert(make_version, tick, clock, log):
    live, canary = make_version("live", 1), make_version("canary", 2)
    freeze(clock)
    audits(canary, 20, 20)
    audits(live, 10, 20)
    (alert,) = tick()
    assert alert.startswith("v1: live precision: 10 of 20")
    assert place(canary) == ("canary", 10, 3)
    audits(canary, 10, 20)
    tick()
    assert place(canary) == ("rolled_back", 0, 4)
    assert [kind for kind, _ in log()] == ["alert", "rollback"]


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize(("name", "value"), [("releases_frozen", "on"), ("audit_rate", "0")])
def test_a_held_shadow_waits_and_is_promoted_on_its_evidence_afterwards(make_version, tick, clock, name, value):
    shadow = make_version("shadow")
    freeze(clock, name, value)
    shadowed(shadow, 100, 100, 100)
    assert tick() == []
    assert place(shadow) == ("shadow", 0, 3)
    RuntimeFlag.objects.all().delete()
    tick()
    assert place(shadow) == ("canary", 10, 4)


@pytest.mark.req("FR-12.1")
def test_a_frozen_shadow_is_still_rejected(make_version, tick, clock):
    shadow = make_version("shadow")
    freeze(clock)
    shadowed(shadow, 100, 100, 90)
    tick()
    assert place(shadow) == ("rejected", 0, 4)


@pytest.mark.req("FR-6.5")
def test_every_student_is_ticked_and_an_unreadable_policy_stops_no_other(make_version, clock, caplog):
    broken = Student.objects.create(
        name="broken", base_model="b", backend="x", trainer="x", created_at=clock.now(), policy={"min_audits": 0}
    )
    lenient = Student.objects.create(
        name="lenient", base_model="b", backend="x", trainer="x", created_at=clock.now(), policy={"min_audits": 5}
    )
    stuck, quick = make_version("canary", 1, student=broken), make_version("canary", 1, student=lenient)
    waiting = make_version("canary", 1)
    for version in (stuck, quick, waiting):
        audits(version, 5, 5)
    with caplog.at_level(logging.ERROR, logger="release.gate"):
        happened = gate.tick_all(clock=clock, policy=POLICY)
    assert happened == ["v1: canary 50%: 5 of 5 audits agree (100.0%) at 10%"]
    assert [place(version)[1] for version in (stuck, quick, waiting)] == [10, 50, 10]
    assert [record.getMessage() for record in caplog.records] == [
        f"release tick of student {broken.pk}: student broken: RATCHET_MIN_AUDITS: must be 1 or more"
    ]


@pytest.mark.req("INV-26")
def test_a_tick_without_versions_does_nothing(tick):
    assert tick() == []
    assert not Event.objects.exists()


@pytest.mark.req("NFR-1")
@pytest.mark.parametrize("n_tasks", [1, 30])
def test_a_tick_that_moves_nothing_costs_five_reads_whatever_the_evidence(make_version, tick, n_tasks):
    live, canary = make_version("live", 1), make_version("canary", 2)
    for number in range(n_tasks):
        audits(live, 2, 2, f"task-{number}")
        audits(canary, 0, 0, f"task-{number}")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert tick() == []
    assert len(queries) == 5
    assert all(query["sql"].startswith("SELECT") for query in queries)
