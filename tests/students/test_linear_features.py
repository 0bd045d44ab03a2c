"""What the classifier reads of a request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from gateway.students.linear.features import MAX_CHARS, characters, fold, n_chars, user_text, words


@pytest.mark.req("INV-6")
def test_only_user_turns_are_read() -> None:
    messages = [
        {"role": "system", "content": "Sort it."},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "noise"},
        {"role": "user", "content": [{"type": "text", "text": "second"}, {"type": "text", "text": "third"}]},
    ]
    assert user_text(messages) == "first\nsecond\nthird"
    assert n_chars(messages) == len("Sort it.") + len("first") + len("noise") + len("second\nthird")


@pytest.mark.req("INV-7")
@pytest.mark.parametrize("content", [None, "", 3, [], [None], [{"type": "image_url"}], [{"text": 3}]])
def test_a_turn_without_text_is_empty(content: object) -> None:
    assert user_text([{"role": "user", "content": content}, {"content": "no role"}]) == ""


@pytest.mark.req("INV-6", "INV-12")
def test_a_live_text_reads_like_its_redacted_stored_form() -> None:
    live = user_text([{"role": "user", "content": "Call me on +44 20 7946 0958 or at a.b@example.com"}])
    assert live == "Call me on [PHONE] or at [EMAIL]"
    assert user_text([{"role": "user", "content": live}]) == live


@pytest.mark.req("INV-6")
def test_a_long_text_is_clipped() -> None:
    assert user_text([{"role": "user", "content": "ab " * MAX_CHARS}]) == ("ab " * MAX_CHARS)[:MAX_CHARS]


@pytest.mark.req("INV-6")
def test_words_have_pairs_and_a_marked_opening() -> None:
    assert words(fold("How many, 42?")) == [
        *["how", "many", ",", "00", "?"],
        *["how many", "many ,", ", 00", "00 ?"],
        *["^ how", "^ how many", "^ how many ,"],
    ]
    assert words("") == []


@pytest.mark.req("INV-6")
@given(st.text(max_size=60))
def test_characters_are_those_of_the_reference_analyser(text: str) -> None:
    reference = CountVectorizer(analyzer="char_wb", ngram_range=(4, 4), lowercase=False).build_analyzer()
    assert sorted(characters(text)) == sorted(reference(text))
