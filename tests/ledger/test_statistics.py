"""Statistics, against published reference values."""

from statistics import NormalDist

import pytest

from ledger.statistics.wilson import wilson
from tests.vectors import needs_vectors, read_vectors


@needs_vectors
@pytest.mark.req("FR-6.6")
def test_wilson_bounds_equal_the_published_ones():
    rows = [row for row in read_vectors("stats", "binomial_intervals.json")["rows"] if "wilson_low" in row]
    assert len(rows) > 100
    for row in rows:
        z = NormalDist().inv_cdf(1 - float(row["alpha"]) / 2)
        expected = float(row["wilson_low"]), float(row["wilson_high"])
        assert wilson(row["k"], row["n"], z) == pytest.approx(expected, abs=1e-9), row


@pytest.mark.req("FR-6.6")
def test_without_trials_the_interval_says_nothing_and_impossible_counts_raise():
    assert wilson(0, 0) == (0.0, 1.0)
    for successes, trials in ((1, 0), (-1, 5), (6, 5), (0, -1)):
        with pytest.raises(ValueError, match="between 0 and trials"):
            wilson(successes, trials)


@pytest.mark.req("FR-6.6")
@pytest.mark.parametrize(("agree", "rolls_back"), [(16, True), (17, False), (19, False), (10, True)])
def test_the_rollback_boundary_of_twenty_audits_at_a_92_percent_floor(agree: int, rolls_back: bool):
    assert (wilson(agree, 20)[1] < 0.92) is rolls_back
