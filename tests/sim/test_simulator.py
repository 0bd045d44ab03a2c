"""Simulated days through the real cascade, ledger, nights and gate."""

import random
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import pytest
from django.db.models import Count, Q, Sum

import sim.simulator
from ledger.dayrow import DayRow
from ledger.models import Check, Example, Night, Request, Version
from ledger.vocabulary import NightState
from privacy.redaction import redact, redact_messages
from sim.private_ledger import private_ledger
from sim.results import SimulatedEvent, bad_version_outcome, day_line, results
from sim.scenario import Scenario
from sim.simulator import simulate
from sim.ticket_templates import LAUNCH_TEMPLATES, TEMPLATES
from sim.tickets import ANSWERS, SYSTEM_PROMPT, recognise, ticket_text, write_ticket

AUDITED = Q(audit__in=["agree", "disagree"])
SEED = 4
QUICK = Scenario(days=4, requests=600, audit_rate=0.5, drift_day=4, bad_deploy_version=2)


def run(scenario: Scenario, seed: int = 7) -> dict[str, Any]:
    """The results of a run in a ledger of its own."""
    with private_ledger() as folder:
        list(simulate(scenario, seed, str(folder)))
        return results(scenario, seed)


@dataclass(frozen=True)
class Finished:
    """What one quick run left behind."""

    days: list[int]
    results: dict[str, Any]
    sums: dict[str, int]
    student_served: list[int]
    checks: int
    nights: list[str]
    live: list[int]
    launch_seen: dict[int, set[str]]


@pytest.fixture(scope="module")
def finished(django_db_blocker) -> Finished:
    """One quick run, shared by the tests that only look at it."""
    with django_db_blocker.unblock(), private_ledger() as folder:
        days = list(simulate(QUICK, SEED, str(folder)))
        seen: dict[int, set[str]] = {day: set() for day in days}
        for at, messages in Example.objects.values_list("first_seen_at", "messages"):
            seen[at.day].add(recognise(ticket_text(messages)).key)
        return Finished(
            days,
            results(QUICK, SEED),
            Request.objects.aggregate(
                cost=Sum("cost_nusd"), baseline=Sum("baseline_nusd"), n=Count("*"), audits=Count("pk", filter=AUDITED)
            ),
            [Request.objects.filter(on=date(2001, 1, day), served_by="student").count() for day in days],
            Check.objects.count(),
            list(Night.objects.order_by("on").values_list("state", flat=True)),
            list(Version.objects.filter(state="live").values_list("number", flat=True)),
            seen,
        )


@pytest.mark.req("FR-9.4", "INV-27")
def test_totals_are_exactly_the_sums_of_the_rows(finished):
    found = finished.results
    assert (found["requests"], found["cost_nusd"], found["all_teacher_nusd"]) == (
        finished.sums["n"],
        finished.sums["cost"],
        finished.sums["baseline"],
    )
    assert finished.sums["n"] == 2_400
    assert found["total_savings"] == (finished.sums["baseline"] - finished.sums["cost"]) / finished.sums["baseline"]
    assert [day["student_served"] for day in found["days"]] == finished.student_served
    assert sum(day["audited"] for day in found["days"]) == finished.sums["audits"]
    assert sum(day["cost_nusd"] for day in found["days"]) == finished.sums["cost"]


@pytest.mark.req("FR-9.4")
def test_the_first_day_is_a_cold_start_and_a_student_takes_over(finished):
    found = finished.results
    assert finished.days == [1, 2, 3, 4]
    assert finished.student_served[0] == 0
    assert found["days"][0]["cost_nusd"] == found["days"][0]["all_teacher_nusd"]
    assert found["days"][0]["audited_agreement"] is None
    assert found["final_student_share"] == finished.student_served[-1] / 600 > 0.5
    assert found["final_day_savings"] > 0.3
    assert [event["kind"] for event in found["versions"][0]["history"]][:4] == ["trained", "canary", "canary", "live"]
    assert finished.live == [1]


@pytest.mark.req("FR-9.4", "INV-28")
def test_nothing_is_left_open_every_check_settled_inline_and_every_night_ended(finished):
    assert finished.checks == 0
    assert len(finished.nights) == 4
    assert set(finished.nights) <= {NightState.DONE, NightState.SKIPPED}


@pytest.mark.req("FR-9.4")
def test_tickets_about_the_new_product_come_from_the_drift_day_on(finished):
    launched = {template.key for template in LAUNCH_TEMPLATES}
    assert not any(finished.launch_seen[day] & launched for day in (1, 2, 3))
    assert launched <= finished.launch_seen[4]


@pytest.mark.req("FR-9.4")
def test_a_version_deployed_corrupted_passes_staging_and_is_rolled_back_in_its_canary(finished):
    found = finished.results
    assert found["bad_version_outcome"] == "rolled back"
    version = found["versions"][1]
    assert version["state"] == "rolled_back"
    assert [event["kind"] for event in version["history"]] == ["trained", "shadow", "canary", "rollback"]


@pytest.mark.req("FR-9.4", "INV-20")
@pytest.mark.django_db
def test_the_same_scenario_and_seed_give_the_same_run_and_another_seed_another():
    quick = replace(QUICK, days=2, requests=200)
    first = run(quick)
    assert run(quick) == first
    assert run(quick, seed=8)["cost_nusd"] != first["cost_nusd"]
    assert first["notice"].startswith("Simulation: mock models")
    assert first["inputs"] == quick.inputs
    assert first["seed"] == 7


@pytest.mark.req("FR-9.4")
@pytest.mark.django_db
def test_the_gate_looks_ten_times_a_day(monkeypatch):
    looks = []
    monkeypatch.setattr(sim.simulator, "tick", lambda student_id, *, clock, policy: looks.append(clock.now()))
    with private_ledger() as folder:
        list(simulate(replace(QUICK, days=2, requests=37), 7, str(folder)))
    assert [sum(at.day == day for at in looks) for day in (1, 2)] == [10, 10]
    assert looks == sorted(looks)


@pytest.mark.req("FR-9.4")
@pytest.mark.parametrize(
    ("number", "state", "outcome"),
    [
        (0, None, None),
        (3, None, "never trained"),
        (3, "rejected", "rejected before deploy"),
        (3, "rolled_back", "rolled back"),
        (3, "retired", "retired before it was live"),
        (3, "canary", "still in canary"),
        (2, "retired", "live"),
    ],
)
def test_the_outcome_of_the_corrupted_version_is_where_it_ended_unless_it_was_ever_live(number, state, outcome):
    log = [SimulatedEvent(1, "canary", 3, ""), SimulatedEvent(2, "live", 2, "")]
    assert bad_version_outcome(number, state, log) == outcome


@pytest.mark.req("FR-9.2", "FR-3.1")
def test_redaction_is_a_no_op_on_every_ticket_and_answer():
    rng = random.Random(11)
    for template in (*TEMPLATES, *LAUNCH_TEMPLATES):
        for _ in range(20):
            messages = write_ticket(rng, template).messages
            assert redact_messages(messages) == (messages, 0)
    for text in (*ANSWERS.values(), SYSTEM_PROMPT):
        assert redact(text) == (text, 0)


@pytest.mark.req("FR-9.4")
def test_a_day_line_shows_shares_and_costs_and_a_dash_without_audits():
    row = DayRow(date(2001, 1, 1), 2000, 880, 20, 0, 0, 0, 1_350_000_000, 2_186_000_000)
    assert day_line(2, row) == "  2      44%      1%        -    0.675       1.093    38%"


@pytest.mark.slow
@pytest.mark.req("FR-9.4", "FR-9.4", "FR-9.5")
@pytest.mark.django_db
def test_ten_days_with_a_launch_and_a_corrupted_deploy():
    found = run(Scenario(days=10, requests=2000, drift_day=5, bad_deploy_version=3))
    assert found["final_student_share"] >= 0.97
    assert found["total_savings"] >= 0.65
    assert found["min_audited_agreement"] >= 0.92
    assert found["bad_version_outcome"] in ("rolled back", "rejected before deploy")
