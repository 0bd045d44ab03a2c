"""The mock students and their trainer: the skill model and the sample behaviour, checked by seeded statistics."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.cascade.confidence import score
from gateway.cascade.types import Purpose
from gateway.models import Models
from gateway.settings import GatewaySettings
from gateway.students.base import StudentUnavailable
from nightschool.settings import NightSettings
from nightschool.trainers.base import TrainingFailed
from sim.mock_students import FRAGILE_CATEGORIES, other_labels
from sim.mock_trainer import MockTrainer
from sim.skill import draws_for, skill
from sim.ticket_templates import TEMPLATES
from sim.tickets import LABELS, Ticket, draw_tickets, labels_of, task_spec, write_ticket
from tests.sim.conftest import make_call, make_row

SPEC = task_spec()
BY_KEY = {template.key: template for template in TEMPLATES}
EASY, HARD = BY_KEY["double_charge"], BY_KEY["half_delivery"]


def tickets(template, n: int, seed: int = 0) -> list[Ticket]:
    """``n`` tickets of one template with distinct texts."""
    rng, found = random.Random(seed), {}
    while len(found) < n:
        ticket = write_ticket(rng, template)
        found[ticket.text] = ticket
    return list(found.values())


def keys(answer):
    return [SPEC.key(SPEC.clean(choice.text)) for choice in answer.completions]


@pytest.mark.req("FR-9.3")
@pytest.mark.parametrize(
    ("template", "n", "trained", "expected"),
    [
        (EASY, 0, False, 0.35),
        (EASY, 6, False, 0.985 * (1 - 0.36787944117144233)),
        (EASY, 1_000, False, 0.985),
        (HARD, 1_000, False, 0.86),
        (HARD, 1, True, 0.985),
        (EASY, 1, True, 0.985),
    ],
)
def test_skill_follows_the_methodology(template, n, trained, expected):
    assert skill(template, n, is_trained_text=trained) == pytest.approx(expected, abs=1e-12)


@pytest.mark.req("FR-9.3")
def test_draws_are_fixed_per_version_and_text_and_uniform():
    assert draws_for("student-v1", "a") == draws_for("student-v1", "a")
    assert draws_for("student-v1", "a") != draws_for("student-v2", "a")
    drawn = [draws_for("student-v1", str(i)) for i in range(4_000)]
    for name in ("knows", "confidence", "wrong_labels"):
        values = [getattr(draw, name) for draw in drawn]
        assert min(values) >= 0.0 and max(values) < 1.0
        assert abs(sum(values) / 4_000 - 0.5) < 0.02


@pytest.mark.req("FR-9.3")
def test_wrong_labels_are_every_pair_but_the_true_one():
    for truth in LABELS:
        assert {other_labels(truth, (i + 0.5) / 23) for i in range(23)} == set(LABELS) - {truth}
    assert other_labels(LABELS[0], 0.999999999) == LABELS[-1]


@pytest.mark.req("FR-9.3")
def test_a_trained_text_is_known_more_often_than_a_new_one_of_a_hard_template(school, ask):
    trained, new = tickets(HARD, 200)[:100], tickets(HARD, 200)[100:]
    version, students = school.train(1, trained), school.students()

    def right(sample: list[Ticket]) -> float:
        agreeing = [all(key == labels_of(HARD) for key in keys(ask(students, version, t))) for t in sample]
        return sum(agreeing) / len(agreeing)

    known = 0.97**3
    assert right(trained) == pytest.approx(0.985 * known, abs=0.08)
    assert right(new) == pytest.approx(0.86 * known, abs=0.10)


@pytest.mark.req("FR-9.3")
def test_what_a_version_knows_of_a_text_does_not_change_between_calls(school, ask):
    version, students = school.train(1, tickets(EASY, 1)), school.students()
    for ticket in tickets(BY_KEY["late_refund"], 60):
        rates = [
            sum(key == labels_of(ticket.template) for key in keys(ask(students, version, ticket))) for _ in range(20)
        ]
        assert sum(rates) <= 15 or sum(rates) >= 50


@pytest.mark.req("FR-9.3")
def test_samples_of_an_untaught_template_split_into_known_certain_errors_and_guesses(school, ask):
    version, students = school.train(1, tickets(HARD, 30)), school.students()
    n, known, certain, guesses = 3_000, 0, 0, 0
    for ticket in tickets(EASY, n):
        answer = ask(students, version, ticket)
        found, truth = keys(answer), labels_of(EASY)
        probabilities = [choice.mean_probability for choice in answer.completions]
        if found.count(truth) >= 2:
            known += 1
            assert all(0.35 <= p <= 0.97 for p in probabilities)
        elif len(set(found)) == 1:
            certain += 1
            assert all(0.62 <= p <= 0.92 or 0.35 <= p <= 0.65 for p in probabilities)
        else:
            guesses += 1
    assert known / n == pytest.approx(0.35, abs=0.03)
    assert certain / n == pytest.approx(0.65 * 0.15, abs=0.02)
    assert guesses / n == pytest.approx(0.65 * 0.85, abs=0.03)


@pytest.mark.req("FR-9.3")
def test_confidence_cannot_separate_certain_errors_from_right_answers(school, ask):
    version, students = school.train(1, tickets(HARD, 30)), school.students()
    right, wrong = [], []
    for ticket in tickets(EASY, 1_500):
        scored = score(SPEC, ask(students, version, ticket).completions)
        (right if scored.key == labels_of(EASY) else wrong).append(scored.confidence)
    assert max(wrong) > sorted(right)[len(right) // 2] - 0.05
    assert sum(right) / len(right) > sum(wrong) / len(wrong) + 0.25


@pytest.mark.req("FR-9.4")
def test_a_corrupted_version_is_sound_on_staging_and_surely_wrong_on_fragile_tickets_for_clients(school, ask):
    sample = list(draw_tickets(random.Random(4), 400, has_launched=False))
    version = school.train(3, sample)
    students = school.students()
    students.deploy_corrupted(3)

    def share_right(purpose: Purpose, *, is_fragile: bool, of=version) -> float:
        asked = [t for t in sample if (t.template.category in FRAGILE_CATEGORIES) is is_fragile]
        return sum(
            score(SPEC, ask(students, of, t, purpose).completions).key == labels_of(t.template) for t in asked
        ) / len(asked)

    assert share_right(Purpose.SHADOW, is_fragile=True) > 0.95
    assert share_right(Purpose.SAMPLE, is_fragile=True) == 0.0
    assert share_right(Purpose.SAMPLE, is_fragile=False) > 0.95
    assert share_right(Purpose.SAMPLE, is_fragile=True, of=replace(version, number=4)) > 0.95
    answer = ask(students, version, next(t for t in sample if t.template.category == "refund"))
    assert len(set(keys(answer))) == 1
    assert score(SPEC, answer.completions).confidence >= 0.6 + 0.4 * 0.62


@pytest.mark.req("FR-9.3")
def test_the_same_generator_draws_the_same_samples_and_the_event_loop_draws_alike(school, ask):
    ticket = tickets(EASY, 1)[0]
    version = school.train(1, [ticket])
    assert ask(school.students(9), version, ticket) == ask(school.students(9), version, ticket)
    call = replace(make_call(ticket.messages), version=version)
    assert asyncio.run(school.students(9).sample(call)) == ask(school.students(9), version, ticket)


@pytest.mark.req("FR-9.3")
def test_the_artefact_is_the_same_file_when_a_night_trains_again(school, tmp_path):
    first = school.train(1, tickets(EASY, 5))
    data = (tmp_path / first.artefact["file"]).read_bytes()
    assert school.train(1, tickets(EASY, 5)) == first
    assert (tmp_path / first.artefact["file"]).read_bytes() == data
    assert b"charged" not in data


@pytest.mark.req("FR-9.3", "INV-7")
def test_a_changed_a_missing_or_a_foreign_artefact_and_an_unknown_text_are_unavailable(school, ask, tmp_path):
    ticket = tickets(EASY, 1)[0]
    version = school.train(1, [ticket])
    path = Path(tmp_path / version.artefact["file"])
    path.write_text(path.read_text().replace("double_charge", "single_charge"))
    for broken in (version, replace(version, artefact={**version.artefact, "file": "x/mock.json"})):
        with pytest.raises(StudentUnavailable) as caught:
            ask(school.students(), broken, ticket)
        assert (caught.value.kind, caught.value.is_adapter_missing) == ("ArtefactError", True)
    with pytest.raises(StudentUnavailable, match="ArtefactError"):
        ask(school.students(), replace(version, artefact={}), ticket)
    with pytest.raises(StudentUnavailable, match="UnknownTicket"):
        ask(school.students(), version, Ticket("hello", EASY))
    with pytest.raises(StudentUnavailable, match="UnknownTicket"):
        ask(school.students(), None, ticket)


@pytest.mark.req("FR-9.3")
def test_training_counts_distinct_tickets_reports_progress_and_skips_other_rows(tmp_path):
    gateway = GatewaySettings(artefact_dir=str(tmp_path))
    rows = [make_row(ticket) for ticket in [*tickets(EASY, 3), *tickets(EASY, 2), *tickets(HARD, 4)]]
    rows.append(make_row(Ticket("hello", EASY)))
    seen: list[tuple[int, int]] = []
    trained = MockTrainer(NightSettings(), gateway).train(
        "student-v1", "mock", rows, {}, lambda done, total, _: seen.append((done, total))
    )
    assert trained.adapter == "student-v1"
    assert trained.notes == "mock student: 7 distinct tickets"
    assert seen == [(0, 10), (10, 10)]
    with pytest.raises(TrainingFailed):
        MockTrainer(NightSettings(), gateway).train("v2", "mock", rows[-1:], {}, lambda *_: None)


@pytest.mark.req("FR-9.3")
def test_the_fleet_plugs_in_by_dotted_path(school):
    ticket = tickets(EASY, 1)[0]
    settings = replace(
        school.settings,
        teacher_backend="sim.mock_teacher.MockTeacher",
        student_backends={"mock": "sim.mock_students.MockStudents"},
    )
    call = replace(make_call(ticket.messages), version=school.train(1, [ticket]))
    assert len(Models(settings, random.Random(1)).ask_sync(call).completions) == 3
