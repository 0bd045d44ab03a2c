"""The tickets workload and the registry that knows what each ticket means."""

import json
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.taskspec import parse_spec
from sim.ticket_templates import CATEGORIES, LAUNCH_TEMPLATES, PRIORITIES, TEMPLATES
from sim.tickets import ANSWERS, LABELS, draw_tickets, labels_of, recognise, task_spec, ticket_text, write_ticket

ALL = (*TEMPLATES, *LAUNCH_TEMPLATES)


@pytest.mark.req("FR-9.4")
def test_twenty_templates_cover_six_categories_and_four_priorities_with_six_hard_ones():
    assert len(TEMPLATES) == 20
    assert {template.category for template in TEMPLATES} == set(CATEGORIES)
    assert {template.priority for template in TEMPLATES} == set(PRIORITIES)
    assert sum(template.is_hard for template in TEMPLATES) == 6
    assert len(LAUNCH_TEMPLATES) == 3
    assert sum(template.is_hard for template in LAUNCH_TEMPLATES) == 1
    assert len({template.key for template in ALL}) == 23


@pytest.mark.req("FR-9.4")
def test_the_same_seed_draws_the_same_traffic_and_another_seed_does_not():
    def texts(seed: int) -> list[str]:
        return [ticket.text for ticket in draw_tickets(random.Random(seed), 50, has_launched=True)]

    assert texts(7) == texts(7)
    assert texts(7) != texts(8)


@pytest.mark.req("FR-9.4")
def test_a_fifth_of_the_traffic_is_about_the_new_product_once_it_has_launched():
    before = list(draw_tickets(random.Random(1), 5_000, has_launched=False))
    after = list(draw_tickets(random.Random(1), 5_000, has_launched=True))
    assert not any(ticket.template in LAUNCH_TEMPLATES for ticket in before)
    assert {ticket.template for ticket in after} == set(ALL)
    share = sum(ticket.template in LAUNCH_TEMPLATES for ticket in after) / 5_000
    assert abs(share - 0.20) < 0.02
    assert all("Ratchet Watch" in ticket.text for ticket in after if ticket.template in LAUNCH_TEMPLATES)


@pytest.mark.req("FR-9.4")
def test_some_templates_make_many_texts_and_some_very_few():
    rng = random.Random(3)
    distinct = {template.key: len({write_ticket(rng, template).text for _ in range(400)}) for template in ALL}
    assert distinct["change_card"] == 1
    assert distinct["pairing_help"] == 10
    assert distinct["double_charge"] > 390


@pytest.mark.req("FR-9.2")
@given(st.randoms(use_true_random=False), st.sampled_from(ALL))
def test_every_ticket_is_recognised_as_the_template_it_was_made_from(rng, template):
    ticket = write_ticket(rng, template)
    assert recognise(ticket.text) is template
    assert "{" not in ticket.text
    assert recognise(ticket.text + "!") is None


@pytest.mark.req("FR-9.2")
@settings(max_examples=50)
@given(st.text())
def test_any_other_text_is_not_a_ticket(text):
    assert recognise(text) is None


@pytest.mark.req("FR-9.2")
@pytest.mark.parametrize("messages", [[], [{}], [{"role": "user", "content": None}], [{"content": [{"type": "text"}]}]])
def test_messages_without_a_plain_text_have_no_ticket(messages):
    assert ticket_text(messages) == ""


@pytest.mark.req("FR-9.2")
def test_every_answer_is_valid_under_the_spec_and_no_two_agree():
    spec = task_spec()
    assert spec.is_label_task
    assert parse_spec(spec.name, spec.document) == spec
    keys = {labels: spec.key(spec.clean(ANSWERS[labels])) for labels in LABELS}
    assert all(keys[labels] == labels for labels in LABELS)
    assert all(set(json.loads(answer)) == {"category", "priority", "reply"} for answer in ANSWERS.values())


@pytest.mark.req("FR-9.2")
def test_messages_are_the_fixed_system_prompt_and_the_customers_text():
    ticket = next(draw_tickets(random.Random(0), 1, has_launched=False))
    assert [message["role"] for message in ticket.messages] == ["system", "user"]
    assert ticket_text(ticket.messages) == ticket.text
    prompt = ticket.messages[0]["content"]
    assert all(word in prompt for word in (*CATEGORIES, *PRIORITIES))


@pytest.mark.req("FR-9.4")
def test_templates_are_equally_likely():
    counts = Counter(ticket.template.key for ticket in draw_tickets(random.Random(5), 20_000, has_launched=False))
    assert set(counts) == {template.key for template in TEMPLATES}
    assert all(abs(count - 1_000) < 130 for count in counts.values())


@pytest.mark.req("FR-9.2")
def test_labels_of_a_template_are_its_category_and_priority():
    assert [labels_of(template) for template in ALL] == [(t.category, t.priority) for t in ALL]
