"""The dataset rules, on plain rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.taskspec import TaskSpec, parse_spec
from nightschool.rules import FREQUENT, Selection, StoredRow, dataset_sha256, held_out_prompts, leaf_value, select
from nightschool.trainers.base import Row

SPECS = {
    "triage": parse_spec("triage", {"fields": {"label": {"type": "label", "values": ["red", "blue"]}}}),
    "held": parse_spec("held", {"pinned": True}),
    "chat": TaskSpec("chat"),
}


def stored(
    name: str,
    *,
    prompt: str = "",
    split: str = "train",
    golden_only: bool = False,
    purged: bool = False,
    **values: object,
) -> StoredRow:
    row = {
        "hash": name,
        "task": "triage",
        "messages": [],
        "completion": "" if purged else '{"label":"red"}',
        "params": None,
        "seen": 1,
        "teacher_model": "open",
        "licence": "MIT",
    }
    return StoredRow(Row(**{**row, **values}), prompt or name, split, golden_only, purged)  # type: ignore[arg-type]


def selected(*rows: StoredRow) -> Selection:
    return select(rows, SPECS, lambda teacher, licence: teacher == "open" and licence == "MIT")


def hashes(rows: list[Row]) -> list[str]:
    return [row.hash for row in rows]


@pytest.mark.req("INV-3", "FR-4.3")
def test_rows_go_where_their_split_says_in_the_order_they_came() -> None:
    selection = selected(stored("c"), stored("b", split="golden"), stored("a"), stored("d", split="golden"))
    assert hashes(selection.train) == ["c", "a"]
    assert hashes(selection.golden) == ["b", "d"]
    assert selection.excluded == {}


@pytest.mark.req("INV-3", "FR-4.3")
@pytest.mark.parametrize(
    ("seen", "trains"), [(1, False), (FREQUENT - 1, False), (FREQUENT, True), (FREQUENT + 1, True)]
)
def test_a_golden_prompt_trains_only_when_it_occurred_three_times(seen: int, trains: bool) -> None:
    selection = selected(stored("a", split="golden", seen=seen))
    assert (hashes(selection.train), hashes(selection.golden)) == ((["a"], []) if trains else ([], ["a"]))


@pytest.mark.req("INV-3", "INV-6", "FR-1.13")
def test_frequency_counts_every_variant_of_a_prompt_and_moves_them_together() -> None:
    bare = stored("bare", prompt="p", split="golden")
    in_json = stored("json", prompt="p", split="golden", seen=2, params={"response_format": {"type": "json_object"}})
    other = stored("other", split="golden", seen=2)
    selection = selected(bare, in_json, other)
    assert hashes(selection.train) == ["bare", "json"]
    assert hashes(selection.golden) == ["other"]


@pytest.mark.req("INV-3", "FR-13.4")
def test_a_purged_variant_counts_toward_its_prompts_frequency_and_is_in_neither_set() -> None:
    bare = stored("bare", prompt="p", split="golden", seen=1)
    purged = stored("gone", prompt="p", split="golden", seen=2, purged=True)
    selection = selected(bare, purged)
    assert (hashes(selection.train), hashes(selection.golden)) == (["bare"], [])
    assert selection.excluded == {"purged": 1}


@pytest.mark.req("INV-3", "FR-4.50")
@pytest.mark.parametrize("purged", [False, True])
def test_a_golden_only_row_holds_out_every_variant_of_its_prompt_however_often_seen(purged: bool) -> None:
    for_good = stored("import", prompt="p", split="train", golden_only=True, purged=purged)
    variant = stored("json", prompt="p", split="train", seen=50, params={"response_format": {"type": "json_object"}})
    selection = selected(for_good, variant)
    assert selection.train == []
    assert hashes(selection.golden) == (["json"] if purged else ["import", "json"])


@pytest.mark.req("INV-3")
def test_a_prompt_stored_under_two_golden_fractions_is_held_out_as_a_whole() -> None:
    selection = selected(stored("a", prompt="p", split="train"), stored("b", prompt="p", split="golden"))
    assert (selection.train, hashes(selection.golden)) == ([], ["a", "b"])


@pytest.mark.req("INV-10", "FR-2.9")
def test_rows_of_a_pinned_task_are_in_neither_set() -> None:
    selection = selected(
        stored("a", task="held", completion="x"), stored("b", task="held", split="golden"), stored("c")
    )
    assert (hashes(selection.train), selection.golden) == (["c"], [])
    assert selection.excluded == {"pinned": 2}


@pytest.mark.req("INV-1", "FR-4.1")
def test_rows_that_may_not_be_distilled_are_in_neither_set() -> None:
    closed = stored("a", teacher_model="openai/gpt-4o")
    unlicensed = stored("b", split="golden", licence="")
    selection = selected(closed, unlicensed, stored("c"))
    assert (hashes(selection.train), selection.golden) == (["c"], [])
    assert selection.excluded == {"undistillable": 2}


@pytest.mark.req("INV-16", "FR-4.1")
def test_an_answer_invalid_under_the_current_spec_does_not_train_and_stays_golden() -> None:
    bad = '{"label":"green"}'
    selection = selected(stored("a", completion=bad), stored("b", completion=bad, split="golden"), stored("c"))
    assert (hashes(selection.train), hashes(selection.golden)) == (["c"], ["b"])
    assert selection.excluded == {"invalid": 1}


@pytest.mark.req("FR-8.42")
@pytest.mark.parametrize("text", ["say <think>", "</think> done", "quoting <THINK> here"])
def test_an_answer_with_a_literal_think_tag_does_not_train_and_stays_golden(text: str) -> None:
    rows = [stored("a", task="chat", completion=text), stored("b", task="chat", completion=text, split="golden")]
    selection = selected(*rows)
    assert (selection.train, hashes(selection.golden)) == ([], ["b"])
    assert selection.excluded == {"think_tag": 1}


@pytest.mark.req("INV-3", "FR-4.1", "FR-5.1")
def test_an_answer_cut_at_a_stop_does_not_train_and_stays_golden_with_its_stop() -> None:
    stop = {"stop": ["\n"]}
    in_json = {"response_format": {"type": "json_object"}}
    selection = selected(
        stored("a", params=stop), stored("b", params=stop, split="golden"), stored("c", params=in_json), stored("d")
    )
    assert hashes(selection.train) == ["c", "d"]
    assert [(row.hash, row.params) for row in selection.golden] == [("b", stop)]
    assert selection.excluded == {"stop": 1}


@pytest.mark.req("FR-4.1")
def test_a_row_is_counted_once_under_the_first_rule_that_keeps_it_out() -> None:
    selection = selected(
        stored("a", task="held", purged=True), stored("b", task="held", teacher_model="closed"),
        stored("c", teacher_model="closed", completion="not json"), stored("d", completion="<think>"),
    )  # fmt: skip
    assert selection.excluded == {"purged": 1, "pinned": 1, "undistillable": 1, "invalid": 1}


def test_a_task_without_a_spec_is_refused() -> None:
    with pytest.raises(KeyError):
        selected(stored("a", task="unknown"))


PROMPTS = st.sampled_from([f"p{n}" for n in range(6)])
ROWS = st.lists(
    st.builds(
        lambda number, prompt, split, only, purged, seen, params, task: stored(
            f"h{number}",
            prompt=prompt,
            split=split,
            golden_only=only,
            purged=purged,
            seen=seen,
            params=params,
            task=task,
        ),
        number=st.integers(0, 10**6),
        prompt=PROMPTS,
        split=st.sampled_from(["train", "golden"]),
        only=st.booleans(),
        purged=st.booleans(),
        seen=st.integers(1, 4),
        params=st.sampled_from([None, {"stop": "x"}, {"response_format": {}}]),
        task=st.sampled_from(["triage", "held", "chat"]),
    ),
    max_size=30,
)


@pytest.mark.req("INV-3", "INV-10")
@given(rows=ROWS)
def test_no_prompt_is_ever_in_both_sets(rows: list[StoredRow]) -> None:
    selection = selected(*rows)
    prompt_of = {id(stored_row.row): stored_row.prompt_hash for stored_row in rows}
    train = {prompt_of[id(row)] for row in selection.train}
    golden = {prompt_of[id(row)] for row in selection.golden}
    assert not train & golden
    assert len(selection.train) + len(selection.golden) + selection.excluded.total() == len(rows)
    assert {row.task for row in (*selection.train, *selection.golden)} <= {"triage", "chat"}


@pytest.mark.req("INV-3")
@given(rows=ROWS)
def test_a_golden_prompt_trains_only_with_three_occurrences_and_never_when_held_out_for_good(
    rows: list[StoredRow],
) -> None:
    held_out = held_out_prompts(rows)
    for prompt in {row.prompt_hash for row in rows}:
        variants = [row for row in rows if row.prompt_hash == prompt]
        occurred = sum(row.row.seen for row in variants)
        is_golden = any(row.split == "golden" for row in variants)
        must_be_held_out = any(row.is_golden_only for row in variants) or (is_golden and occurred < FREQUENT)
        assert (prompt in held_out) is must_be_held_out


@pytest.mark.req("FR-4.2", "INV-14")
def test_the_dataset_hash_is_of_the_sorted_row_hashes() -> None:
    assert dataset_sha256(["b", "a"]) == dataset_sha256(["a", "b"])
    # sha256 of the JSON text ["a","b"]
    assert dataset_sha256(["a", "b"]) == "0473ef2dc0d324ab659d3580c1134e9d812035905c4781fdd6d529b0c6860e13"
    assert dataset_sha256(["a"]) != dataset_sha256(["a", "b"])


@pytest.mark.req("INV-14")
@pytest.mark.parametrize(
    "change", [{"completion": "x"}, {"teacher_model": "other"}, {"licence": "Apache-2.0"}, {"redactions": 1}]
)
def test_a_leaf_commits_to_the_label_and_its_provenance(change: dict[str, object]) -> None:
    row = stored("a").row
    assert leaf_value(row) == leaf_value(stored("z", prompt="q", seen=9).row)
    assert leaf_value(row) != leaf_value(stored("a", **change).row)  # type: ignore[arg-type]
