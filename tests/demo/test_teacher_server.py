"""The demo's teacher answers with the data sets' labels and says what it is."""

import asyncio
import json

import pytest
from aiohttp.test_utils import TestClient, TestServer

from ledger.taskspec import parse_spec
from receipts.licences import declared_licences, require_distillable
from sim.demo.dataset import DemoMessage
from sim.demo.tasks import TASKS, is_right, request_body
from sim.demo.teacher_server import ABOUT, LICENCE, MODEL, REASONING_TOKENS, LabelTeacher, build_app, guess

ROUTING, SMS = TASKS["question-routing"], TASKS["sms-spam"]
TEACHER = LabelTeacher(
    {
        ROUTING.name: [DemoMessage(ROUTING.name, "Who wrote Hamlet ?", "HUM")],
        SMS.name: [DemoMessage(SMS.name, "Who wrote Hamlet ?", "spam")],
    }
)


def test_a_known_text_gets_the_label_of_the_task_that_asks():
    for task, label in ((ROUTING, "HUM"), (SMS, "spam")):
        answer = TEACHER.answer(request_body(task, "Who wrote Hamlet ?")["messages"])
        assert json.loads(answer) == {task.field: label}


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
@pytest.mark.parametrize("text", ["", "Xyzzy plugh ?", "How many ?", "WIN a free prize", "Where ?", "Who ?", "Why ?"])
def test_an_unknown_text_gets_an_answer_that_is_valid_for_its_task(task, text):
    answer = TEACHER.answer(request_body(task, text)["messages"])
    assert parse_spec(task.name, task.spec).problem(answer) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [("What does NASA stand for ?", "ABBR"), ("How many ?", "NUM"), ("Where is it ?", "LOC"), ("Hm", "ENTY")],
)
def test_guesses_follow_the_question_word(text, label):
    assert guess("question-routing", text) == label


def test_anything_else_gets_a_sentence_that_says_who_is_speaking():
    assert TEACHER.answer([{"role": "user", "content": "Write a poem"}]) == ABOUT
    assert "no language model" in ABOUT


@pytest.mark.req("INV-1")
def test_the_teacher_has_a_declared_licence_and_says_in_its_name_what_it_is():
    assert MODEL == "ratchet-demo/dataset-labels"
    assert require_distillable(MODEL, declared_licences(f"{MODEL}={LICENCE}")).name == "CC-BY-4.0"


def post(body, latency_s=0.0):
    async def run():
        async with TestClient(TestServer(build_app(TEACHER, latency_s))) as client:
            response = await client.post("/v1/chat/completions", json=body)
            return response.status, await response.json()

    return asyncio.run(run())


def test_the_server_speaks_openais_shape_and_bills_reasoning_tokens():
    body = request_body(ROUTING, "Who wrote Hamlet ?")
    status, document = post(body)
    prompt_tokens = -(-len(ROUTING.instructions) // 4) + 5
    assert status == 200
    assert document["model"] == MODEL
    assert document["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": '{"category": "HUM"}'}, "finish_reason": "stop"}
    ]
    assert document["usage"] == {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": 5 + REASONING_TOKENS,
        "total_tokens": prompt_tokens + 5 + REASONING_TOKENS,
        "completion_tokens_details": {"reasoning_tokens": REASONING_TOKENS},
    }


def test_n_choices_are_answered_and_billed():
    _, document = post({**request_body(ROUTING, "Who wrote Hamlet ?"), "n": 2})
    assert len(document["choices"]) == 2
    assert document["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2 * REASONING_TOKENS}


def test_the_specs_of_the_demo_are_label_tasks_that_a_classifier_can_learn():
    assert all(parse_spec(task.name, task.spec).is_label_task for task in TASKS.values())


@pytest.mark.parametrize(
    ("answer", "is_it"), [({"category": "HUM"}, True), ({"category": "LOC"}, False), ({}, False), (None, False)]
)
def test_an_answer_is_right_when_it_carries_the_data_sets_label(answer, is_it):
    assert is_right(DemoMessage("question-routing", "Who ?", "HUM"), answer) is is_it
