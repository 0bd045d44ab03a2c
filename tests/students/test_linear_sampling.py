"""Samples drawn from the classifier's probabilities."""

import random
from collections import Counter
from math import exp

import pytest

from gateway.cascade.confidence import score
from gateway.students.linear.sampling import draw, sharpen
from ledger.taskspec import TaskSpec, parse_spec
from tests.students.conftest import toy_model

MESSAGES = [{"role": "system", "content": "Sort."}, {"role": "user", "content": "A text."}]
MODEL = toy_model({"red": 0.2, "blue": 0.7, "green": 0.1})


def spec(values: list[str], name: str = "triage", field: str = "topic") -> TaskSpec:
    return parse_spec(name, {"fields": {field: {"type": "label", "values": values}}})


COLOURS = spec(["red", "blue", "green"])


@pytest.mark.req("FR-2.1", "INV-6")
def test_draws_follow_the_distribution_sharpened_at_the_temperature() -> None:
    samples = draw(MODEL, COLOURS, MESSAGES, n=20_000, temperature=0.7, rng=random.Random(5))
    counts = Counter(sample.text for sample in samples)
    powers = {label: p ** (1 / 0.7) for label, p in (("red", 0.2), ("blue", 0.7), ("green", 0.1))}
    for label, power in powers.items():
        share = counts[f'{{"topic": "{label}"}}'] / 20_000
        assert share == pytest.approx(power / sum(powers.values()), abs=0.01)


@pytest.mark.req("FR-2.2")
def test_each_field_reports_its_calibrated_probability_whatever_the_temperature() -> None:
    for temperature in (0.0, 0.7, 1.0, 2.0):
        for sample in draw(MODEL, COLOURS, MESSAGES, n=20, temperature=temperature, rng=random.Random(1)):
            label = sample.text.split('"')[3]
            assert sample.logprobs is not None
            assert [exp(value) for value in sample.logprobs] == pytest.approx(
                [{"red": 0.2, "blue": 0.7, "green": 0.1}[label]], rel=1e-6
            )


@pytest.mark.req("FR-2.1")
@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_without_a_temperature_to_divide_by_the_likeliest_label_is_drawn(temperature: float) -> None:
    samples = draw(MODEL, COLOURS, MESSAGES, n=50, temperature=temperature, rng=random.Random(1))
    assert {sample.text for sample in samples} == {'{"topic": "blue"}'}


@pytest.mark.req("FR-2.1")
def test_no_temperature_is_one() -> None:
    by_default = draw(MODEL, COLOURS, MESSAGES, n=30, temperature=None, rng=random.Random(9))
    assert by_default == draw(MODEL, COLOURS, MESSAGES, n=30, temperature=1.0, rng=random.Random(9))


@pytest.mark.req("FR-2.1")
def test_sharpening_survives_extreme_probabilities() -> None:
    assert sharpen([1.0, 0.0], 0.01) == [1.0, 0.0]
    assert sharpen([1e-300, 1e-308], 0.001) == [1.0, 0.0]
    assert sharpen([0.5, 0.5], 0.0) == [1.0, 0.0]


@pytest.mark.req("FR-2.2")
def test_a_sample_is_a_complete_valid_answer_with_estimated_tokens() -> None:
    (sample,) = draw(MODEL, COLOURS, MESSAGES, n=1, temperature=0.0, rng=random.Random(1))
    assert (sample.text, sample.is_complete) == ('{"topic": "blue"}', True)
    assert COLOURS.key(COLOURS.clean(sample.text)) == ("blue",)
    assert (sample.in_tokens, sample.out_tokens) == (3, 5)  # 12 and 17 characters


@pytest.mark.req("FR-2.2", "INV-16")
@pytest.mark.parametrize(
    "task",
    [
        spec(["red", "blue"], name="another"),
        spec(["red", "blue"], field="renamed"),
        TaskSpec("triage"),
        parse_spec("triage", {"fields": {"topic": {"type": "label", "values": ["red"]}, "note": {"type": "text"}}}),
    ],
    ids=["unknown task", "other fields", "no fields", "a text field"],
)
def test_a_task_it_was_not_trained_on_gets_invalid_answers_and_escalates(task: TaskSpec) -> None:
    samples = draw(MODEL, task, MESSAGES, n=3, temperature=0.7, rng=random.Random(1))
    assert [sample.text for sample in samples] == ["", "", ""]
    assert score(task, samples).is_valid is False


@pytest.mark.req("INV-16")
def test_a_label_that_left_the_vocabulary_is_an_invalid_answer() -> None:
    narrowed = spec(["red", "green"])
    samples = draw(MODEL, narrowed, MESSAGES, n=3, temperature=0.0, rng=random.Random(1))
    assert [sample.text for sample in samples] == ['{"topic": "blue"}'] * 3
    assert score(narrowed, samples).is_valid is False


@pytest.mark.req("FR-2.2")
def test_unanimous_samples_are_ordered_by_their_calibrated_probability() -> None:
    confidences = []
    for likely in (0.6, 0.9, 0.99):
        model = toy_model({"red": 1 - likely, "blue": likely})
        samples = draw(model, COLOURS, MESSAGES, n=3, temperature=0.0, rng=random.Random(1))
        confidences.append(score(COLOURS, samples).confidence)
    assert confidences == pytest.approx([0.84, 0.96, 0.996])
