"""Confidence from samples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cascade.confidence import majority_choices, score
from ledger.taskspec import parse_spec
from tests.cascade.conftest import BILLING, TECHNICAL, TRIAGE
from tests.fakes import completion

AMOUNT = parse_spec("amount", {"fields": {"amount": {"type": "number", "abs_tol": 1}}})


@pytest.mark.req("FR-2.2")
def test_confidence_weighs_agreement_and_the_best_samples_probability():
    samples = [completion(BILLING, probability=0.5), completion(BILLING, probability=0.9), completion(TECHNICAL)]
    scored = score(TRIAGE, samples)
    assert scored.best is samples[1]
    assert scored.agreement == pytest.approx(2 / 3)
    assert scored.confidence == pytest.approx(0.4 * 0.9 + 0.6 * 2 / 3)


@pytest.mark.req("FR-2.2")
def test_without_log_probabilities_confidence_is_the_agreement_alone():
    assert score(TRIAGE, [completion(BILLING)] * 3).confidence == 1.0


@pytest.mark.req("FR-2.2", "INV-16")
def test_cut_off_empty_and_invalid_samples_have_no_vote():
    samples = [
        completion(BILLING, probability=0.9, finish="length"),
        completion("", probability=0.9),
        completion('{"category": "weather"}', probability=0.9),
    ]
    assert score(TRIAGE, samples).confidence == 0.0
    assert score(TRIAGE, [*samples, completion(BILLING)]).agreement == 0.25


@pytest.mark.req("FR-2.2", "FR-2.14")
def test_a_tolerance_lets_the_middle_sample_win_with_three_votes():
    samples = [completion(f'{{"amount": {value}}}', probability=p) for value, p in ((0, 0.9), (0.6, 0.5), (1.2, 0.9))]
    scored = score(AMOUNT, samples)
    assert scored.best is samples[1]
    assert scored.agreement == 1.0


@pytest.mark.req("FR-1.14")
def test_majority_choices_are_the_best_sample_then_those_that_agree_with_it():
    samples = [
        completion(TECHNICAL, probability=0.99),
        completion(BILLING, probability=0.6),
        completion(BILLING, probability=0.7),
    ]
    scored = score(TRIAGE, samples)
    assert majority_choices(TRIAGE, scored, samples, 2) == [samples[2], samples[1]]
    assert majority_choices(TRIAGE, scored, samples, 3) is None


@pytest.mark.req("FR-2.2", "INV-7")
@given(
    st.lists(
        st.builds(
            completion,
            st.sampled_from([BILLING, TECHNICAL, "", "{", "[]", '{"category": null}']),
            probability=st.none() | st.floats(0.01, 1.0),
            finish=st.sampled_from(["stop", "length", "unknown"]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_a_score_is_a_probability_and_the_answer_served_is_always_valid(samples):
    scored = score(TRIAGE, samples)
    assert 0.0 <= scored.confidence <= 1.0
    assert scored.is_valid == (scored.best is not None)
    if scored.best is not None:
        assert scored.best.is_complete
        assert TRIAGE.key(scored.answer) == scored.key
