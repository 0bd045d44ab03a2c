"""The shadow rule, the canary rule and the live alert, at their boundaries."""

import pytest

from ledger.vocabulary import VersionState
from release.policy import ReleasePolicy
from release.rules import LEGAL_MOVES, AuditEvidence, Decision, ShadowEvidence, canary_rule, live_alert, shadow_rule

POLICY = ReleasePolicy()


def shadowed(n: int, serves: int, agree: int, *, open: int = 0, answered: int = 0, live: int = 0) -> ShadowEvidence:
    return ShadowEvidence(n, serves, agree, open, answered, live)


@pytest.mark.req("FR-6.4")
@pytest.mark.parametrize(("n", "serves"), [(0, 0), (99, 99), (150, 75), (1000, 99)])
def test_a_shadow_waits_for_a_hundred_would_serve_answers(n, serves):
    decision = shadow_rule(shadowed(n, serves, serves), POLICY)
    assert decision == Decision(None, 0, f"{serves} of 100 would-serve answers")
    assert decision.is_hold
    assert not decision.is_promotion


@pytest.mark.req("FR-6.4")
def test_a_shadow_at_the_floor_takes_the_first_traffic():
    decision = shadow_rule(shadowed(200, 100, 95, answered=180, live=90), POLICY)
    reason = "shadow: 95 of 100 would-serve answers agree (95.0%); coverage 50.0% of 200 requests, live 50.0%"
    assert decision == Decision("canary", 10, reason)
    assert decision.is_promotion


@pytest.mark.req("FR-6.4")
def test_a_shadow_without_a_live_student_is_held_to_its_precision_alone():
    reason = "shadow: 100 of 100 would-serve answers agree (100.0%); coverage 10.0% of 1000 requests"
    assert shadow_rule(shadowed(1000, 100, 100), POLICY) == Decision("canary", 10, reason)


@pytest.mark.req("FR-6.4")
def test_a_shadow_under_the_floor_is_rejected():
    reason = "shadow: 94 of 100 would-serve answers agree (94.0%), below 95.0%"
    assert shadow_rule(shadowed(100, 100, 94), POLICY) == Decision("rejected", 0, reason)


@pytest.mark.req("FR-6.4")
def test_a_shadow_that_covers_less_than_live_is_rejected():
    decision = shadow_rule(shadowed(200, 100, 100, answered=200, live=200), POLICY)
    reason = (
        "shadow: coverage 50.0% of 200 requests, live 100.0%: more than 2.0% less; "
        "100 of 100 would-serve answers agree (100.0%)"
    )
    assert decision == Decision("rejected", 0, reason)


@pytest.mark.req("FR-6.4")
@pytest.mark.parametrize(("serves", "to"), [(480, "canary"), (479, "rejected")])
def test_shadow_coverage_may_be_the_tolerance_under_lives(serves, to):
    assert shadow_rule(shadowed(1000, serves, serves, answered=1000, live=500), POLICY).to_state == to


@pytest.mark.req("FR-6.4", "FR-2.11")
def test_requests_the_live_student_never_answered_say_nothing_about_its_coverage():
    assert shadow_rule(shadowed(200, 100, 100, answered=100, live=100), POLICY).to_state == "rejected"
    assert shadow_rule(shadowed(200, 100, 100, answered=200, live=100), POLICY).to_state == "canary"


@pytest.mark.req("FR-6.4", "FR-2.10", "INV-15")
def test_unarbitrated_disagreements_count_against_the_candidate():
    rejected = shadow_rule(shadowed(100, 100, 90, open=10), POLICY)
    assert rejected == Decision(
        "rejected",
        0,
        "shadow: 90 of 100 would-serve answers agree (90.0%) (10 unarbitrated counted as disagreements), below 95.0%",
    )
    promoted = shadow_rule(shadowed(100, 100, 98, open=2), POLICY)
    assert promoted == Decision(
        "canary",
        10,
        "shadow: 98 of 100 would-serve answers agree (98.0%) (2 unarbitrated counted as disagreements); "
        "coverage 100.0% of 100 requests",
    )


@pytest.mark.req("FR-6.5")
@pytest.mark.parametrize("n", [0, 1, 19])
def test_a_canary_waits_for_twenty_audits_however_they_went(n):
    assert canary_rule(AuditEvidence(n, 0), POLICY, 10) == Decision(None, 0, f"{n} of 20 audits at 10%")
    assert canary_rule(AuditEvidence(n, n), POLICY, 10).is_hold


@pytest.mark.req("FR-6.6")
def test_sixteen_of_twenty_rolls_back_and_seventeen_and_eighteen_hold():
    assert canary_rule(AuditEvidence(20, 16), POLICY, 10) == Decision(
        "rolled_back", 0, "16 of 20 audits agree (80.0%); Wilson upper bound 91.9% is under the 92.0% floor"
    )
    held = "audits agree ({}%): under the 92.0% floor, but not by strong evidence"
    assert canary_rule(AuditEvidence(20, 17), POLICY, 10) == Decision(None, 0, f"17 of 20 {held.format('85.0')}")
    assert canary_rule(AuditEvidence(20, 18), POLICY, 10) == Decision(None, 0, f"18 of 20 {held.format('90.0')}")


@pytest.mark.req("FR-6.5")
@pytest.mark.parametrize(
    ("pct", "to", "to_pct"),
    [(10, "canary", 50), (25, "canary", 50), (5, "canary", 10), (50, "live", 100), (60, "live", 100)],
)
def test_a_canary_at_the_floor_takes_the_next_step(pct, to, to_pct):
    assert canary_rule(AuditEvidence(25, 23), POLICY, pct) == Decision(
        to, to_pct, f"23 of 25 audits agree (92.0%) at {pct}%"
    )


@pytest.mark.req("FR-6.5")
def test_a_students_own_policy_decides():
    policy = POLICY.with_overrides({"min_audits": 15, "live_floor": 0.8})
    assert canary_rule(AuditEvidence(15, 12), policy, 10).to_pct == 50
    assert canary_rule(AuditEvidence(14, 14), policy, 10).is_hold


@pytest.mark.req("FR-6.7")
def test_the_live_alert_needs_audits_and_strong_evidence():
    assert live_alert(AuditEvidence(0, 0), POLICY) is None
    assert live_alert(AuditEvidence(19, 0), POLICY) is None
    assert live_alert(AuditEvidence(20, 17), POLICY) is None
    assert live_alert(AuditEvidence(20, 16), POLICY) == (
        "live precision: 16 of 20 audits agree (80.0%); Wilson upper bound 91.9% is under the 92.0% floor"
    )


@pytest.mark.req("FR-12.9")
def test_legal_moves_speak_of_every_state_and_lead_to_known_ones():
    assert set(LEGAL_MOVES) == set(VersionState.values)
    assert frozenset().union(*LEGAL_MOVES.values()) <= set(VersionState.values) - {"candidate"}
