"""The one function that moves a version, and what the database itself refuses."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from common.errors import Refused
from ledger.models import Event, Version
from release.moves import Moved, Place, move
from tests.release.builders import place


@pytest.mark.req("FR-12.9", "INV-29")
def test_a_move_starts_a_stage_and_writes_its_event(make_version, clock, student):
    version = make_version("canary")
    clock.advance(timedelta(hours=2))
    moved = move(version, Place("canary", 50), kind="canary", detail="canary 50%: enough", clock=clock)
    assert moved == Moved(True, "v1: canary 50%: enough")
    assert place(version) == ("canary", 50, 4)
    assert Version.objects.get().stage_since_at == clock.now()
    event = Event.objects.get()
    assert (event.kind, event.detail, event.student, event.version) == ("canary", moved.detail, student, version)
    assert (event.at, event.on) == (clock.now(), clock.now().date())


@pytest.mark.req("FR-12.9", "INV-29")
@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"state": "rolled_back", "traffic_pct": 0, "stage": 4}, "rolled back"),
        ({"traffic_pct": 50, "stage": 4}, "canary 50%"),
    ],
)
def test_a_version_that_moved_since_it_was_seen_is_left_alone(make_version, clock, changes, where):
    seen = make_version("canary")
    Version.objects.update(**changes)
    before = place(seen)
    moved = move(seen, Place("canary", 50), kind="canary", detail="enough", clock=clock)
    assert moved == Moved(False, f"v1: moved meanwhile, now {where}")
    assert place(seen) == before
    assert not Event.objects.exists()


@pytest.mark.req("FR-12.9", "INV-29")
def test_the_same_place_in_a_later_stage_is_another_decision(make_version, clock):
    seen = make_version("canary")
    Version.objects.update(traffic_pct=50, stage=4)
    Version.objects.update(traffic_pct=10, stage=5)
    assert not move(seen, Place("canary", 50), kind="canary", detail="enough", clock=clock).is_done
    assert place(seen) == ("canary", 10, 5)


@pytest.mark.req("FR-12.9", "INV-29")
def test_the_same_decision_twice_is_made_once(make_version, clock):
    seen = make_version("canary")
    first, second = (move(seen, Place("canary", 50), kind="canary", detail="x", clock=clock) for _ in range(2))
    assert (first.is_done, second.is_done) == (True, False)
    assert Event.objects.count() == 1


@pytest.mark.req("FR-12.9", "INV-5")
def test_going_live_retires_the_old_live_version_first(make_version, clock, log):
    old, new = make_version("live", 1), make_version("canary", 2, traffic_pct=50)
    assert move(new, Place("live", 100), kind="live", detail="live: enough", clock=clock, live=old).is_done
    assert (place(old), place(new)) == (("retired", 0, 4), ("live", 100, 4))
    assert log() == [("live_retired", "v1: retired, v2 takes over"), ("live", "v2: live: enough")]


@pytest.mark.req("FR-12.9", "INV-5", "INV-29")
def test_going_live_is_lost_when_another_version_is_live_than_was_seen(make_version, clock):
    old, new = make_version("live", 1), make_version("canary", 2, traffic_pct=50)
    moved = move(new, Place("live", 100), kind="live", detail="x", clock=clock, live=None)
    assert moved == Moved(False, "v2: v1 is live by now")
    Version.objects.filter(pk=old.pk).update(state="retired", traffic_pct=0, stage=4)
    moved = move(new, Place("live", 100), kind="live", detail="x", clock=clock, live=old)
    assert moved == Moved(False, "v2: no version is live by now")
    assert place(new) == ("canary", 50, 3)
    assert not Event.objects.exists()


@pytest.mark.req("FR-12.9", "INV-5")
def test_a_lost_promotion_leaves_the_live_version_live(make_version, clock):
    old, new = make_version("live", 1), make_version("canary", 2, traffic_pct=50)
    Version.objects.filter(pk=new.pk).update(state="rolled_back", traffic_pct=0, stage=4)
    moved = move(new, Place("live", 100), kind="live", detail="x", clock=clock, live=old)
    assert moved == Moved(False, "v2: moved meanwhile, now rolled back")
    assert place(old) == ("live", 100, 3)
    assert not Event.objects.exists()


@pytest.mark.req("INV-5", "INV-29")
def test_a_second_version_in_flight_is_refused_by_the_database(make_version, clock):
    make_version("shadow", 1)
    second = make_version("candidate", 2)
    with pytest.raises(Refused, match=r"^v2 cannot become canary 10%: another version is in flight$"):
        move(second, Place("canary", 10), kind="canary", detail="x", clock=clock)
    assert place(second) == ("candidate", 0, 0)
    assert not Event.objects.exists()


@pytest.mark.req("INV-29")
def test_a_share_that_does_not_fit_its_state_is_refused_by_the_database(make_version, clock):
    version = make_version("canary")
    with pytest.raises(Refused, match=r"^v1 cannot become canary 0%: the database refuses it$"):
        move(version, Place("canary", 0), kind="canary", detail="x", clock=clock)
    assert place(version) == ("canary", 10, 3)


@pytest.mark.req("FR-12.9")
@pytest.mark.parametrize(
    ("state", "to"),
    [("shadow", "live"), ("candidate", "live"), ("live", "canary"), ("live", "rolled_back"), ("retired", "live"),
     ("rejected", "shadow"), ("shadow", "rolled_back"), ("canary", "shadow"), ("canary", "candidate")],
)  # fmt: skip
def test_a_move_no_rule_makes_is_refused(make_version, clock, state, to):
    version = make_version(state)
    before = place(version)
    with pytest.raises(Refused, match=f"^v1 is {state}: it cannot become {to}$"):
        move(version, Place(to), kind=to, detail="x", clock=clock)
    assert place(version) == before


@pytest.mark.req("INV-29")
def test_a_failure_after_a_move_takes_the_move_and_its_event_back(make_version, clock):
    version = make_version("shadow")
    with pytest.raises(RuntimeError), transaction.atomic():
        assert move(version, Place("retired"), kind="retired", detail="x", clock=clock).is_done
        raise RuntimeError
    assert place(version) == ("shadow", 0, 3)
    assert not Event.objects.exists()


def refused(sql: str, *params: object) -> None:
    with pytest.raises(DatabaseError) as raised, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, params)
    assert isinstance(raised.value, IntegrityError)


@pytest.mark.req("INV-5", "INV-29")
def test_hand_written_sql_cannot_break_the_rules_of_release(make_version, clock):
    live, canary, old = make_version("live", 1), make_version("canary", 2), make_version("retired", 3)
    update = "UPDATE ledger_version SET {} WHERE id = %s"
    refused(update.format("state = 'live', traffic_pct = 100, stage = stage + 1"), canary.pk)
    refused(update.format("state = 'shadow', stage = stage + 1"), old.pk)
    refused(update.format("state = 'retired', traffic_pct = 0"), live.pk)
    refused(update.format("state = 'candidate', traffic_pct = 0, stage = stage + 1"), canary.pk)
    refused(update.format("traffic_pct = 50"), canary.pk)
    refused(update.format("stage = stage + 1"), canary.pk)
    refused(update.format("number = 9"), canary.pk)
    refused(update.format("traffic_pct = 100, stage = stage + 1"), canary.pk)
    assert [place(version) for version in (live, canary, old)] == [
        ("live", 100, 3),
        ("canary", 10, 3),
        ("retired", 0, 3),
    ]


@pytest.mark.req("INV-17")
def test_the_release_log_cannot_be_rewritten(make_version, clock):
    version = make_version("shadow")
    move(version, Place("retired"), kind="retired", detail="x", clock=clock)
    refused("UPDATE ledger_event SET detail = 'y'")
    refused("DELETE FROM ledger_event")
    assert Event.objects.get().detail == "v1: x"
