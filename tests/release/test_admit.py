"""Admitting a candidate: one transaction from its evaluation to its first stage."""

import pytest

from common.errors import Refused
from ledger.models import Event, RuntimeFlag, Student, Version
from release import gate
from release.moves import Moved
from release.policy import ReleasePolicy
from tests.release.builders import GOOD, place

POLICY = ReleasePolicy()
BAD = {**GOOD, "precision": 0.9}
SUMMARY = "golden precision 100.0% (40 of 40 rows), coverage 80.0%"


def record(right: int, answered: int) -> dict[str, object]:
    return {
        "spec_hash": "a",
        "threshold": 0.7,
        "precision": right / answered,
        "coverage": 1.0,
        "test_n": answered,
        "golden_n": 2 * answered,
        "agreement": 0.9,
        "calibrated": True,
        "target_precision": 0.97,
    }


@pytest.mark.req("FR-6.1")
def test_the_first_student_starts_as_a_canary(make_version, clock, log):
    version = make_version("candidate")
    admitted = gate.admit(version.pk, clock=clock, policy=POLICY)
    assert admitted == Moved(True, f"v1: canary 10%: first student; {SUMMARY}")
    assert place(version) == ("canary", 10, 1)
    assert log() == [("canary", admitted.detail)]


@pytest.mark.req("FR-6.1")
def test_beside_a_live_version_a_candidate_starts_as_a_shadow(make_version, clock, log):
    live, version = make_version("live", 1), make_version("candidate", 2)
    admitted = gate.admit(version.pk, clock=clock, policy=POLICY)
    assert admitted == Moved(True, f"v2: shadow: {SUMMARY}")
    assert (place(live), place(version)) == (("live", 100, 3), ("shadow", 0, 1))
    assert log() == [("shadow", admitted.detail)]


@pytest.mark.req("FR-6.1", "INV-5")
def test_a_rejected_candidate_leaves_what_is_in_flight_alone(make_version, clock, log):
    shadow, version = make_version("shadow", 1), make_version("candidate", 2, evaluation=BAD)
    admitted = gate.admit(version.pk, clock=clock, policy=POLICY)
    assert admitted == Moved(True, "v2: rejected: golden precision 90.0% (36 of 40 rows) is below 95.0%")
    assert (place(shadow), place(version)) == (("shadow", 0, 3), ("rejected", 0, 1))
    assert log() == [("rejected", admitted.detail)]


@pytest.mark.req("FR-6.1", "INV-5")
@pytest.mark.parametrize("state", ["shadow", "canary"])
def test_an_admitted_candidate_retires_what_is_in_flight(make_version, clock, log, state):
    older, version = make_version(state, 1), make_version("candidate", 2)
    admitted = gate.admit(version.pk, clock=clock, policy=POLICY)
    assert (place(older), place(version)) == (("retired", 0, 4), ("canary", 10, 1))
    assert log() == [("retired", "v1: retired, v2 was admitted"), ("canary", admitted.detail)]


@pytest.mark.req("INV-4")
def test_the_candidate_is_held_to_the_live_versions_newest_numbers(make_version, clock):
    live, version = make_version("live", 1), make_version("candidate", 2, evaluation={**GOOD, "precision": 0.96})
    assert gate.golden_gate(version.evaluation, live.evaluation, POLICY).to_state == "rejected"
    Version.objects.filter(pk=live.pk).update(evaluation={**GOOD, "precision": 0.97})
    assert gate.admit(version.pk, clock=clock, policy=POLICY).is_done
    assert place(version) == ("shadow", 0, 1)


@pytest.mark.req("FR-14.1", "FR-6.1")
def test_a_failing_task_is_disabled_on_the_version_and_the_rest_ships(make_version, clock, log):
    evaluation = {**GOOD, "tasks": {"good": record(50, 50), "bad": record(35, 50)}}
    version = make_version("candidate", evaluation=evaluation)
    admitted = gate.admit(version.pk, clock=clock, policy=POLICY)
    reason = "golden precision 70.0% (35 of 50 rows) is below 95.0%"
    assert Version.objects.get().evaluation == {
        **GOOD,
        "tasks": {"good": record(50, 50), "bad": {**record(35, 50), "threshold": 1.01, "disabled": reason}},
    }
    assert log() == [
        ("task_disabled", f"v1: task bad stays with the teacher: {reason}"),
        ("canary", admitted.detail),
    ]


@pytest.mark.req("FR-14.1", "INV-5")
def test_nothing_is_disabled_on_a_candidate_that_is_rejected(make_version, clock, log):
    evaluation = {**GOOD, "tasks": {"good": record(5, 5), "bad": record(35, 50)}}
    version = make_version("candidate", evaluation=evaluation)
    assert gate.admit(version.pk, clock=clock, policy=POLICY).is_done
    assert Version.objects.get().evaluation == evaluation
    assert [kind for kind, _ in log()] == ["rejected"]


@pytest.mark.req("FR-12.9", "INV-29")
def test_a_candidate_an_operator_moved_is_left_alone(make_version, clock, log):
    version = make_version("canary", traffic_pct=25)
    admitted = gate.admit(version.pk, clock=clock, policy=POLICY)
    detail = "v1: left as it is (canary 25%): it was moved while it was being scored"
    assert admitted == Moved(False, detail)
    assert place(version) == ("canary", 25, 3)
    assert log() == [("conflict", detail)]


@pytest.mark.req("FR-12.9", "INV-29")
def test_admitting_twice_acts_once(make_version, clock):
    version = make_version("candidate")
    first, second = (gate.admit(version.pk, clock=clock, policy=POLICY) for _ in range(2))
    assert (first.is_done, second.is_done) == (True, False)
    assert place(version) == ("canary", 10, 1)


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize(("flag", "value"), [("releases_frozen", "on"), ("audit_rate", "0"), ("audit_rate", "0.0")])
def test_while_releases_are_held_the_first_student_shadows_the_teacher(make_version, clock, flag, value):
    RuntimeFlag.objects.create(name=flag, value=value, updated_at=clock.now(), updated_by="ops")
    version = make_version("candidate")
    gate.admit(version.pk, clock=clock, policy=POLICY)
    assert place(version) == ("shadow", 0, 1)


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize(
    ("flag", "value"), [("releases_frozen", "maybe"), ("audit_rate", "nan"), ("audit_rate", "-1"), ("unknown", "on")]
)
def test_a_switch_that_cannot_be_read_is_its_default(make_version, clock, flag, value):
    RuntimeFlag.objects.create(name=flag, value=value, updated_at=clock.now(), updated_by="ops")
    version = make_version("candidate")
    gate.admit(version.pk, clock=clock, policy=POLICY)
    assert place(version) == ("canary", 10, 1)


@pytest.mark.req("FR-6.1")
def test_a_students_own_policy_overrides_the_environments(make_version, clock):
    Student.objects.update(policy={"min_precision": 0.9})
    version = make_version("candidate", evaluation=BAD)
    gate.admit(version.pk, clock=clock, policy=POLICY)
    assert place(version) == ("canary", 10, 1)


@pytest.mark.req("FR-6.1")
@pytest.mark.parametrize("policy", [{"min_audit": 3}, {"live_floor": 2}, {"min_audits": "20"}, [1]])
def test_an_unreadable_policy_is_refused_by_name_and_nothing_moves(make_version, clock, policy):
    Student.objects.update(policy=policy)
    version = make_version("candidate")
    with pytest.raises(Refused, match=r"^student default: "):
        gate.admit(version.pk, clock=clock, policy=POLICY)
    assert place(version) == ("candidate", 0, 0)
    assert not Event.objects.exists()


@pytest.mark.req("INV-5")
def test_another_students_versions_are_none_of_its_business(make_version, clock):
    other = Student.objects.create(
        name="other", base_model="b", backend="x", trainer="x", created_at=clock.now(), policy={}
    )
    foreign_live, foreign_shadow = make_version("live", 1, student=other), make_version("shadow", 2, student=other)
    version = make_version("candidate", 1)
    gate.admit(version.pk, clock=clock, policy=POLICY)
    assert place(version) == ("canary", 10, 1)
    assert (place(foreign_live), place(foreign_shadow)) == (("live", 100, 3), ("shadow", 0, 3))
