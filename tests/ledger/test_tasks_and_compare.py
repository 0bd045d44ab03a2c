"""Task specs and comparing answers."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.compare import clean_answer, comparator_from, parse_object
from ledger.models import Task
from ledger.tasks import save_task
from ledger.taskspec import TaskSpec, parse_spec

TRIAGE = {
    "fields": {
        "category": {"type": "label", "values": ["Billing", "Technical"]},
        "amount": {"type": "number", "abs_tol": 0.5},
        "city": {"type": "text"},
    }
}


@pytest.mark.req("FR-2.7", "FR-2.13")
@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('<think>hm</think>\n{"a": 1}', '{"a": 1}'),
        ('reasoning without an opening tag</think>{"a": 1}', '{"a": 1}'),
        ('<THINK>one</THINK><think>two</think>{"a": 1}', '{"a": 1}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('{"reply": "close it with </think>"}', '{"reply": "close it with </think>"}'),
        ("<think>cut off while reasoning", ""),
        # Some letters are longer in lower case.
        ('İİİ think</think>{"a": 1}', '{"a": 1}'),
        ('<think>İ</think>İ</THINK>{"a": 1}', '{"a": 1}'),
    ],
)
def test_a_structured_answer_is_the_json_without_reasoning_or_fence(output: str, answer: str):
    assert clean_answer(output, is_json=True) == answer


@pytest.mark.req("FR-2.7")
@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("```python\nprint(1)\n```", "```python\nprint(1)\n```"),
        ("<think>a</think> The tag is <think>.", "The tag is <think>."),
        ("  text  ", "text"),
    ],
)
def test_free_text_keeps_its_fences_and_the_tags_it_mentions(output: str, answer: str):
    assert clean_answer(output, is_json=False) == answer


@pytest.mark.req("FR-2.7", "NFR-1")
@pytest.mark.parametrize(
    "text", ["<think>" * 20_000, " " * 100_000, "{" * 100_000, "```" + " " * 50_000, "</think><think>" * 9_000]
)
def test_adversarial_answers_are_cleaned_without_blowing_up(text: str):
    assert parse_object(clean_answer(text, is_json=True)) is None


@pytest.mark.req("FR-2.14", "FR-2.6")
def test_each_field_is_compared_by_its_own_rule():
    task = parse_spec("t", TRIAGE)
    key = task.key('{"category": " billing", "amount": 10, "city": "New  York"}')
    assert key == ("Billing", 10.0, "new york")
    other = task.key('{"city": "new york", "amount": 10.4, "category": "BILLING", "extra": true}')
    assert other is not None
    assert task.matches(key, other)
    assert not task.matches(key, ("Billing", 10.6, "new york"))


@pytest.mark.req("FR-2.14", "INV-16", "INV-12")
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "empty answer"),
        ("billing", "invalid answer"),
        ("[1]", "invalid answer"),
        ('{"category": "refunds", "amount": 1, "city": "x"}', "invalid field category"),
        ('{"category": "billing", "city": "x"}', "invalid field amount"),
        ('{"category": "billing", "amount": true, "city": "x"}', "invalid field amount"),
        ('{"category": "billing", "amount": 1e999, "city": "x"}', "invalid answer"),
        ('{"category": "billing", "amount": 1, "city": " "}', "invalid field city"),
        ("[" * 5000, "invalid answer"),
    ],
)
def test_an_invalid_answer_is_named_by_its_field_never_quoted(answer: str, problem: str):
    task = parse_spec("t", TRIAGE)
    assert task.problem(answer) == problem
    assert task.key(answer) is None


@pytest.mark.req("FR-2.2")
def test_a_task_without_fields_compares_json_canonically_and_text_without_case_and_spacing():
    task = TaskSpec("free")
    assert task.key('{"b": 1, "a": 2}') == task.key('{"a":2,"b":1}')
    assert task.key("Hello   World") == task.key(" hello world ")
    assert task.key("[1, 2]") != task.key("[2, 1]")
    assert not task.is_label_task


@pytest.mark.req("FR-2.2", "FR-2.6")
@pytest.mark.parametrize(
    ("left", "right", "agree"),
    [
        ('{"a": 1}', '{"a":1.0}', True),
        ('{"a": [1e2, -0.0]}', '{"a": [100, 0]}', True),
        ('{"a": 1}', '{"a": 1.5}', False),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": 1}', '{"a": "1"}', False),
        ("[1,2]", "[1, 2.0]", True),
        ("[1, 2]", "[2, 1]", False),
        ("```json\n[1]\n```", "[1]", True),
        ("cafe\u0301 \uff21", "CAF\u00c9 A", True),
        ('{"a": "cafe\u0301"}', '{"A": "caf\u00e9"}', True),
    ],
)
def test_whole_answers_agree_when_they_say_the_same(left: str, right: str, agree: bool):
    task = TaskSpec("free")
    assert (task.key(left) == task.key(right)) is agree


@pytest.mark.req("FR-2.2", "INV-7")
@pytest.mark.parametrize("depth", [90, 300, 990, 1020, 50_000])
@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ("[", "]")])
def test_deep_nesting_is_compared_as_text_and_never_raises(depth: int, opening: str, closing: str):
    task = TaskSpec("free")
    deep = opening * depth + "1" + closing * depth
    assert task.key(deep) == task.key(deep.upper())
    assert (task.key(deep) == task.key(deep.replace("1", "1.0"))) is (depth < 100)
    assert parse_spec("t", TRIAGE).problem(f'{{"category": "billing", "amount": 1, "city": "x", "more": {deep}}}') == (
        None if depth < 100 else "invalid answer"
    )


@pytest.mark.req("FR-2.14")
@pytest.mark.parametrize(
    ("tolerance", "left", "right", "agree"),
    [
        (0.1, "1.1", "1.0", True),
        (0.01, "1.01", "1", True),
        (0.01, "1234.51", "1234.5", True),
        (0.01, "1.0101", "1", False),
        (0, "0.3", "0.30000000000000004", False),
        (0, "9007199254740993", "9007199254740992", False),
        (0, "9007199254740993", "9007199254740993", True),
        (1, "9007199254740993", "9007199254740992", True),
        (1e-9, "1", "1.00000001", False),
    ],
)
def test_numbers_agree_within_the_tolerance_as_written(tolerance: float, left: str, right: str, agree: bool):
    task = parse_spec("t", {"fields": {"x": {"type": "number", "abs_tol": tolerance}}})
    keys = [task.key(f'{{"x": {number}}}') for number in (left, right)]
    assert keys[0] is not None
    assert keys[1] is not None
    assert task.matches(keys[0], keys[1]) is agree
    assert task.matches(keys[1], keys[0]) is agree


@pytest.mark.req("FR-2.14")
def test_labels_and_texts_agree_however_a_letter_is_encoded():
    task = parse_spec("t", {"fields": {"l": {"type": "label", "values": ["caf\u00e9"]}, "t": {"type": "text"}}})
    assert task.key('{"l": "CAFE\u0301", "t": "\uff21\u00a0b"}') == ("caf\u00e9", "a b")


@pytest.mark.req("FR-2.15")
def test_every_mistake_of_a_spec_is_listed_with_its_path():
    with pytest.raises(ValueError, match="must be an object") as raised:
        parse_spec(
            "t",
            {
                "fields": {
                    "a": {"type": "label", "values": []},
                    "b": {"type": "date"},
                    "c": 7,
                    "d": {"type": "number", "abs_tol": -1},
                    "e": {"type": "label", "values": ["x", " X "]},
                },
                "pinned": "yes",
                "policy": {"target_precision": 2, "speed": 1},
                "color": "red",
            },
        )
    paths = [line.split(":")[0] for line in str(raised.value).splitlines()]
    assert paths == [
        "t.color", "t.fields.a.values", "t.fields.b", "t.fields.c", "t.fields.d.abs_tol", "t.fields.e.values",
        "t.pinned", "t.policy.speed", "t.policy.target_precision",
    ]  # fmt: skip


@pytest.mark.req("FR-2.15")
def test_a_spec_hash_covers_the_rules_and_their_order_but_not_the_name():
    task = parse_spec("t", TRIAGE)
    assert parse_spec("another", TRIAGE).spec_hash == task.spec_hash
    turned = {"fields": dict(reversed(TRIAGE["fields"].items()))}
    assert parse_spec("t", turned).spec_hash != task.spec_hash
    assert parse_spec("t", {**TRIAGE, "pinned": True}).spec_hash != task.spec_hash
    assert parse_spec("t", task.document) == task


@pytest.mark.req("FR-2.15")
def test_the_ledger_keeps_the_order_of_the_fields_and_so_the_spec_hash(student, clock):
    document = {"fields": {name: {"type": "text"} for name in ("zebra", "a", "mm")}}
    saved = save_task("ordered", document, student, "api", clock)
    stored = Task.objects.get(name="ordered")
    assert list(stored.spec["fields"]) == ["zebra", "a", "mm"]
    assert parse_spec("ordered", stored.spec).spec_hash == stored.spec_hash == saved.spec_hash
    assert save_task("ordered", document, student, "api", clock).updated_at == stored.updated_at


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.req("INV-7", "FR-2.14")
@given(json_values, st.sampled_from([{"type": "number"}, {"type": "text"}, {"type": "label", "values": ["a", "b"]}]))
def test_comparators_never_raise_and_every_valid_value_matches_itself(value, document):
    comparator = comparator_from(document, "f")
    normal = comparator.normalise(value)
    if normal is not None:
        assert comparator.matches(normal, normal)


@pytest.mark.req("FR-2.15")
@given(json_values)
def test_any_document_is_a_spec_or_a_clear_error(document):
    try:
        assert parse_spec("t", document).spec_hash
    except ValueError as error:
        assert str(error).startswith("t")


@pytest.mark.req("INV-7")
@given(st.text() | json_values.map(lambda value: json.dumps(value)))
def test_judging_an_answer_never_raises(text: str):
    task = parse_spec("t", TRIAGE)
    cleaned = task.clean(text)
    assert (task.key(cleaned) is None) == (task.problem(cleaned) is not None)
