"""Reasons and actors, pins and switches."""

import pytest

from common.errors import Refused
from ledger.models import AdminAction, Event, RuntimeFlag, StateEpoch, Task
from ledger.switches import Switches, parse_switches, read_switches
from release import operator
from release.operator import Change, Intent

WHY = "checked by hand (ops)"
REASON = "a reason is needed: one line of 3 to 500 characters"
ACTOR = "the actor must be a user name, or api: or cli: and a name"


@pytest.fixture
def task(student, clock) -> Task:
    return Task.objects.create(
        name="tickets",
        student=student,
        spec={"fields": {}, "pinned": False},
        spec_hash="a" * 64,
        source="api",
        created_at=clock.now(),
        updated_at=clock.now(),
    )


def recorded() -> list[tuple[object, ...]]:
    return list(AdminAction.objects.order_by("pk").values_list("action", "target", "before", "after"))


def nothing_written() -> bool:
    return not AdminAction.objects.exists() and not Event.objects.exists()


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize(
    "reason", ["", "  ", "ab", " ab ", "x" * 501, "one\ntwo", "one\ttwo", "nul\x00byte", "a\u2028b"]
)
def test_a_reason_is_one_line_of_3_to_500_characters(reason):
    with pytest.raises(Refused, match=f"^{REASON}$"):
        Intent("ops", reason)


@pytest.mark.req("FR-12.1", "INV-13")
@pytest.mark.parametrize("actor", ["", "two words", "api:", "root:x", "api:a b", "x" * 81, "a\nb", "cli:" + "x" * 77])
def test_a_malformed_actor_is_refused_and_not_repeated(actor):
    with pytest.raises(Refused, match=f"^{ACTOR}$"):
        Intent(actor, "a reason")


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize("actor", ["ops", "jo.doe@example.org", "api:ops", "cli:root", "x" * 80])
def test_people_keys_and_shell_users_can_act(actor):
    assert Intent(actor, "  because  ").reason == "because"


@pytest.mark.req("FR-12.1", "INV-12")
def test_a_reason_is_redacted_before_anything_sees_it(task, clock):
    operator.pin_task("tickets", Intent("ops", "asked by jane@example.org"), clock=clock)
    task.refresh_from_db()
    assert task.pin_reason == "asked by [EMAIL]"
    assert AdminAction.objects.get().reason == "asked by [EMAIL]"
    assert Event.objects.get().detail == "task tickets pinned to the teacher: asked by [EMAIL] (ops)"


@pytest.mark.req("INV-10", "FR-12.1")
def test_a_pin_is_set_once_and_taken_off_once(task, clock, intent, log):
    epoch = StateEpoch.objects.get().value
    assert operator.pin_task("tickets", intent, clock=clock) == Change(True, "task tickets pinned to the teacher")
    assert StateEpoch.objects.get().value > epoch
    task.refresh_from_db()
    assert (task.is_runtime_pinned, task.pin_reason, task.spec_hash) == (True, "checked by hand", "a" * 64)
    assert operator.pin_task("tickets", intent, clock=clock) == Change(False, "tickets is pinned already")
    assert operator.unpin_task("tickets", intent, clock=clock) == Change(True, "task tickets unpinned")
    assert operator.unpin_task("tickets", intent, clock=clock) == Change(False, "tickets is not pinned")
    task.refresh_from_db()
    assert (task.is_runtime_pinned, task.pin_reason) == (False, "")
    free = {"is_runtime_pinned": False, "pin_reason": ""}
    pinned = {"is_runtime_pinned": True, "pin_reason": "checked by hand"}
    assert recorded() == [("pin_task", "tickets", free, pinned), ("unpin_task", "tickets", pinned, free)]
    assert log() == [
        ("admin", f"task tickets pinned to the teacher: {WHY}"),
        ("admin", f"task tickets unpinned: {WHY}"),
    ]


@pytest.mark.req("INV-10", "FR-12.1")
def test_a_pin_in_the_spec_is_not_an_operators_to_remove(task, clock, intent):
    Task.objects.filter(pk=task.pk).update(spec={"fields": {}, "pinned": True})
    assert operator.pin_task("tickets", intent, clock=clock) == Change(False, "tickets is pinned already")
    with pytest.raises(Refused, match=r"^tickets is pinned by its spec: change the spec instead$"):
        operator.unpin_task("tickets", intent, clock=clock)
    assert nothing_written()


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize("act", [operator.pin_task, operator.unpin_task])
def test_an_unknown_task_is_refused_without_repeating_its_name(student, clock, intent, act):
    with pytest.raises(Refused, match=r"^there is no task of that name$"):
        act("nope", intent, clock=clock)
    assert nothing_written()


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize("name", ["student_disabled", "releases_frozen", "training_paused"])
def test_a_switch_goes_on_and_off_and_says_who(student, clock, intent, log, name):
    assert operator.set_flag(name, "off", intent, clock=clock) == Change(False, f"{name} is off already")
    assert operator.set_flag(name, "on", intent, clock=clock) == Change(True, f"{name}: off -> on")
    row = RuntimeFlag.objects.get()
    assert (row.name, row.value, row.updated_by, row.updated_at) == (name, "on", "ops", clock.now())
    assert getattr(read_switches(), name) is True
    assert operator.set_flag(name, "on", intent, clock=clock) == Change(False, f"{name} is on already")
    operator.set_flag(name, "off", intent, clock=clock)
    assert read_switches() == Switches()
    off, on = {"value": "off"}, {"value": "on"}
    assert recorded() == [("set_flag", name, off, on), ("set_flag", name, on, off)]
    assert log() == [("admin", f"{name}: off -> on: {WHY}"), ("admin", f"{name}: on -> off: {WHY}")]


@pytest.mark.req("FR-12.1")
def test_the_audit_rate_takes_a_share_or_the_default(student, clock, intent):
    assert operator.set_flag("audit_rate", "0.250", intent, clock=clock) == Change(True, "audit_rate: default -> 0.25")
    assert read_switches() == Switches(audit_rate=0.25)
    assert operator.set_flag("audit_rate", "1", intent, clock=clock) == Change(True, "audit_rate: 0.25 -> 1")
    assert operator.set_flag("audit_rate", "1.0", intent, clock=clock) == Change(False, "audit_rate is 1 already")
    assert operator.set_flag("audit_rate", "default", intent, clock=clock) == Change(True, "audit_rate: 1 -> default")
    assert not RuntimeFlag.objects.exists()


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("student_disabled", "true", "student_disabled must be on or off"),
        ("student_disabled", "", "student_disabled must be on or off"),
        ("audit_rate", "on", "audit_rate must be a number from 0 to 1, or default"),
        ("audit_rate", "nan", "audit_rate must be a number from 0 to 1, or default"),
        ("audit_rate", "2", "audit_rate must be a number from 0 to 1, or default"),
        ("audit_rate", "-0.1", "audit_rate must be a number from 0 to 1, or default"),
        (
            "secret",
            "on",
            "there is no such switch; there are student_disabled, releases_frozen, training_paused, audit_rate",
        ),
    ],
)
def test_unknown_switches_and_values_are_refused(student, clock, intent, name, value, message):
    with pytest.raises(Refused) as refusal:
        operator.set_flag(name, value, intent, clock=clock)
    assert str(refusal.value) == message
    assert nothing_written()
    assert not RuntimeFlag.objects.exists()


@pytest.mark.req("FR-12.1")
def test_turning_audits_off_during_a_canary_needs_force(make_version, clock, intent):
    make_version("canary")
    with pytest.raises(Refused) as refusal:
        operator.set_flag("audit_rate", "0", intent, clock=clock)
    assert str(refusal.value) == (
        "default v1 is a canary: without audits it could neither advance nor be rolled back (or use force)"
    )
    assert nothing_written()
    assert operator.set_flag("audit_rate", "0", intent, clock=clock, force=True).is_change
    assert not read_switches().may_start_canary


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize("value", ["ON", "1", "true", "", "nan", "2", "-1", "x"])
def test_switches_written_by_hand_that_cannot_be_read_are_their_defaults(value):
    names = ("student_disabled", "releases_frozen", "training_paused", "unknown")
    switches = parse_switches(dict.fromkeys(names, value))
    assert switches == Switches()
    assert switches.may_start_canary
    assert parse_switches({"audit_rate": value}).audit_rate == (1.0 if value == "1" else None)
