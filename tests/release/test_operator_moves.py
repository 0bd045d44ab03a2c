"""Moving versions by hand: the transition table, the audit row and the event of every change, and refusals."""

import pytest

from common.errors import Refused
from ledger.models import AdminAction, Event, RuntimeFlag, Version
from release import operator
from tests.release.builders import place

WHY = "checked by hand (ops)"


def actions() -> list[tuple[object, ...]]:
    rows = AdminAction.objects.order_by("pk")
    return list(rows.values_list("actor", "action", "target", "reason", "before", "after"))


def at(state: str, traffic_pct: int, stage: int) -> dict[str, object]:
    return {"state": state, "traffic_pct": traffic_pct, "stage": stage}


def refuse(act, message: str) -> None:
    """Assert that ``act`` is refused with exactly this text, and that nothing changed or was recorded."""
    before = list(Version.objects.order_by("pk").values())
    with pytest.raises(Refused) as refusal:
        act()
    assert str(refusal.value) == message
    assert list(Version.objects.order_by("pk").values()) == before
    assert not AdminAction.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.req("FR-12.1")
def test_a_rollback_leaves_the_move_an_audit_row_and_an_event(make_version, clock, intent, log):
    live, canary = make_version("live", 1), make_version("canary", 2)
    change = operator.rollback(canary.pk, intent, clock=clock)
    assert change == operator.Change(True, "default v2: canary 10% -> rolled back")
    assert (place(live), place(canary)) == (("live", 100, 3), ("rolled_back", 0, 4))
    before, after = {"v2": at("canary", 10, 3)}, {"v2": at("rolled_back", 0, 4)}
    assert actions() == [("ops", "rollback", "default v2", "checked by hand", before, after)]
    assert AdminAction.objects.get().at == clock.now()
    assert log() == [("admin", f"v2: rollback by hand, canary 10% -> rolled back: {WHY}")]


@pytest.mark.req("FR-12.1")
def test_a_second_rollback_is_refused_and_writes_nothing(make_version, clock, intent):
    version = make_version("rolled_back")
    refuse(
        lambda: operator.rollback(version.pk, intent, clock=clock), "v1 is rolled back: there is nothing to roll back"
    )


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize("state", ["live", "shadow"])
def test_a_rollback_of_what_is_no_canary_names_the_better_move(make_version, clock, intent, state):
    version = make_version(state)
    message = f"v1 is {state}, and only a canary is rolled back: retire it instead"
    refuse(lambda: operator.rollback(version.pk, intent, clock=clock), message)


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize(("state", "shown"), [("live", "live"), ("canary", "canary 10%"), ("shadow", "shadow")])
def test_what_serves_or_waits_can_be_retired(make_version, clock, intent, state, shown):
    version = make_version(state)
    change = operator.retire(version.pk, intent, clock=clock)
    assert change == operator.Change(True, f"default v1: {shown} -> retired")
    assert place(version) == ("retired", 0, 4)
    assert [row[1] for row in actions()] == ["retire"]


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize("state", ["candidate", "rejected", "retired", "rolled_back"])
def test_what_serves_nothing_cannot_be_retired(make_version, clock, intent, state):
    version = make_version(state)
    message = f"v1 is {state.replace('_', ' ')}: it serves nothing that could be retired"
    refuse(lambda: operator.retire(version.pk, intent, clock=clock), message)


@pytest.mark.req("FR-12.1")
def test_promotions_take_the_next_step_by_default(make_version, clock, intent):
    shadow = make_version("shadow")
    for share, stage in ((10, 4), (50, 5)):
        assert operator.promote(shadow.pk, "canary", intent, clock=clock).is_change
        assert place(shadow) == ("canary", share, stage)
    with pytest.raises(Refused, match=r"^v1 is at its last canary step, 50%: promote it to live$"):
        operator.promote(shadow.pk, "canary", intent, clock=clock)
    assert operator.promote(shadow.pk, "live", intent, clock=clock).is_change
    assert place(shadow) == ("live", 100, 6)


@pytest.mark.req("FR-12.1", "INV-5")
def test_a_promotion_to_live_retires_the_old_one_and_records_both(make_version, clock, intent, log):
    old, canary = make_version("live", 1), make_version("canary", 2)
    operator.promote(canary.pk, "live", intent, clock=clock)
    assert (place(old), place(canary)) == (("retired", 0, 4), ("live", 100, 4))
    before = {"v1": at("live", 100, 3), "v2": at("canary", 10, 3)}
    after = {"v1": at("retired", 0, 4), "v2": at("live", 100, 4)}
    assert actions() == [("ops", "promote", "default v2", "checked by hand", before, after)]
    assert log() == [
        ("admin", "v1: retired, v2 takes over"),
        ("admin", f"v2: promote by hand, canary 10% -> live: {WHY}"),
    ]


@pytest.mark.req("FR-12.1")
def test_a_share_can_be_chosen_and_an_unchanged_one_writes_nothing(make_version, clock, intent):
    canary = make_version("canary")
    assert operator.promote(canary.pk, "canary", intent, clock=clock, traffic_pct=10) == operator.Change(
        False, "default v1 is at canary 10% already"
    )
    assert not AdminAction.objects.exists()
    assert not Event.objects.exists()
    operator.promote(canary.pk, "canary", intent, clock=clock, traffic_pct=25)
    assert place(canary) == ("canary", 25, 4)
    operator.promote(canary.pk, "canary", intent, clock=clock, traffic_pct=5)
    assert place(canary) == ("canary", 5, 5)


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize(
    ("state", "arguments", "message"),
    [
        ("rejected", {"to": "live"}, "v1 is rejected: only a canary becomes live"),
        ("rejected", {"to": "live", "force": True}, "v1 is rejected: only a canary becomes live"),
        ("shadow", {"to": "live"}, "v1 is shadow: only a canary becomes live"),
        ("rejected", {"to": "canary"}, "v1 is rejected: only force makes it a canary"),
        ("rolled_back", {"to": "canary"}, "v1 is rolled back: only force makes it a canary"),
        ("retired", {"to": "canary"}, "v1 is retired: only force makes it a canary"),
        ("candidate", {"to": "canary"}, "v1 is candidate: only force makes it a canary"),
        ("live", {"to": "canary", "force": True}, "v1 is live already"),
        ("live", {"to": "live"}, "v1 is live already"),
        ("canary", {"to": "canary", "traffic_pct": 100}, "a canary's share is 1 to 99"),
        ("canary", {"to": "canary", "traffic_pct": 0}, "a canary's share is 1 to 99"),
        ("canary", {"to": "live", "traffic_pct": 100}, "a live version takes all traffic: leave the share out"),
        ("canary", {"to": "shadow"}, "a version is promoted to canary or live"),
    ],
)
def test_refused_promotions_change_and_record_nothing(make_version, clock, intent, state, arguments, message):
    version = make_version(state)
    to = arguments.pop("to")
    refuse(lambda: operator.promote(version.pk, to, intent, clock=clock, **arguments), message)


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize("state", ["rejected", "rolled_back", "retired", "candidate"])
def test_force_brings_a_version_back_to_the_first_canary_step(make_version, clock, intent, state):
    version = make_version(state)
    stage = version.stage
    operator.promote(version.pk, "canary", intent, clock=clock, force=True)
    assert place(version) == ("canary", 10, stage + 1)


@pytest.mark.req("FR-12.1", "INV-5")
def test_force_does_not_put_a_second_version_in_flight(make_version, clock, intent):
    make_version("shadow", 1)
    version = make_version("retired", 2)
    message = "v1 is in shadow: wait for it, retire it or roll it back first"
    refuse(lambda: operator.promote(version.pk, "canary", intent, clock=clock, force=True), message)


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize("state", ["candidate", "shadow", "canary"])
@pytest.mark.parametrize("to", ["canary", "live"])
def test_a_version_without_a_golden_evaluation_is_never_promoted(make_version, clock, intent, state, to):
    version = make_version(state, evaluation={})
    message = "v1 has no golden evaluation, and is never promoted without one"
    refuse(lambda: operator.promote(version.pk, to, intent, clock=clock, force=True), message)


@pytest.mark.req("FR-12.1")
def test_a_new_canary_while_audits_are_off_needs_force(make_version, clock, intent):
    RuntimeFlag.objects.create(name="audit_rate", value="0", updated_at=clock.now(), updated_by="ops")
    version = make_version("shadow")
    message = "audits are off (audit_rate 0), so nothing would hold a canary to account: only force starts one"
    refuse(lambda: operator.promote(version.pk, "canary", intent, clock=clock), message)
    operator.promote(version.pk, "canary", intent, clock=clock, force=True)
    assert place(version) == ("canary", 10, 4)


@pytest.mark.req("FR-12.1")
def test_a_freeze_binds_the_gate_and_not_the_operator(make_version, clock, intent):
    RuntimeFlag.objects.create(name="releases_frozen", value="on", updated_at=clock.now(), updated_by="ops")
    version = make_version("shadow")
    operator.promote(version.pk, "canary", intent, clock=clock)
    assert place(version) == ("canary", 10, 4)


@pytest.mark.req("FR-12.1")
def test_an_unknown_version_is_refused(student, clock, intent):
    refuse(lambda: operator.retire(4711, intent, clock=clock), "there is no such version")
