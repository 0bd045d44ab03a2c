"""The mock teacher: right, priced, never sleeping."""

import asyncio
import random

import pytest

from gateway.cascade.types import Purpose, Role
from gateway.models import Models
from gateway.settings import EndpointSettings, GatewaySettings
from gateway.upstream.base import UpstreamError
from sim.mock_teacher import MockTeacher
from sim.ticket_templates import LAUNCH_TEMPLATES, TEMPLATES
from sim.tickets import labels_of, task_spec, write_ticket
from tests.sim.conftest import make_call

SETTINGS = GatewaySettings(
    teacher=EndpointSettings(model="some/teacher"), teacher_backend="sim.mock_teacher.MockTeacher"
)


def teacher_call(messages, n=1, **params):
    return make_call(messages, Role.TEACHER, Purpose.COLD_START, n, **params)


@pytest.mark.req("FR-9.2", "INV-16")
def test_it_is_always_right_on_the_labels_and_its_answers_are_complete():
    spec, rng, teacher = task_spec(), random.Random(2), MockTeacher(SETTINGS)
    for template in (*TEMPLATES, *LAUNCH_TEMPLATES):
        answer = teacher.complete_sync(teacher_call(write_ticket(rng, template).messages))
        (choice,) = answer.completions
        assert choice.is_complete
        assert spec.key(spec.clean(choice.text)) == labels_of(template)


@pytest.mark.req("FR-9.2")
def test_it_bills_four_characters_a_token_and_300_reasoning_tokens_and_reports_2_4_seconds():
    ticket = write_ticket(random.Random(2), TEMPLATES[0])
    answer = MockTeacher(SETTINGS).complete_sync(teacher_call(ticket.messages, n=2))
    chars = sum(len(message["content"]) for message in ticket.messages)
    assert len(answer.completions) == 2
    for choice in answer.completions:
        assert choice.in_tokens == -(-chars // 4)
        assert choice.out_tokens == -(-len(choice.text) // 4) + 300
        assert choice.reasoning_tokens == 300
    assert answer.latency_ms == 2_400.0
    assert answer.model == "some/teacher"


@pytest.mark.req("FR-9.2")
def test_it_answers_the_same_on_the_event_loop():
    call, teacher = teacher_call(write_ticket(random.Random(2), TEMPLATES[3]).messages), MockTeacher(SETTINGS)
    assert asyncio.run(teacher.complete(call)) == teacher.complete_sync(call)
    asyncio.run(teacher.aclose())


@pytest.mark.req("FR-9.2", "INV-12")
def test_a_text_no_template_made_is_a_400_that_does_not_quote_it():
    with pytest.raises(UpstreamError) as caught:
        MockTeacher(SETTINGS).complete_sync(teacher_call([{"role": "user", "content": "hello secret"}]))
    assert (caught.value.status, caught.value.code) == (400, "unknown_ticket")
    assert "secret" not in f"{caught.value} {caught.value.message}"


@pytest.mark.req("FR-1.13", "FR-9.2")
def test_max_tokens_cuts_the_answer_and_a_stop_string_ends_it():
    ticket, teacher = write_ticket(random.Random(2), TEMPLATES[0]), MockTeacher(SETTINGS)
    (cut,) = teacher.complete_sync(teacher_call(ticket.messages, max_tokens=3)).completions
    assert (len(cut.text), cut.finish_reason, cut.is_complete) == (12, "length", False)
    (ended,) = teacher.complete_sync(teacher_call(ticket.messages, stop=["priority"])).completions
    assert (ended.text, ended.finish_reason) == ('{"category":"billing","', "stop")
    (ended,) = teacher.complete_sync(teacher_call(ticket.messages, stop="category")).completions
    assert ended.text == '{"'


@pytest.mark.req("FR-9.2")
def test_it_plugs_in_by_dotted_path():
    models = Models(SETTINGS, random.Random(0))
    assert isinstance(models.teacher, MockTeacher)
    ticket = write_ticket(random.Random(2), TEMPLATES[0])
    assert models.ask_sync(teacher_call(ticket.messages)).completions[0].is_complete
    assert models.ask_sync(teacher_call([{"role": "user", "content": "hello"}])).kind == "MockTeacher 400"
