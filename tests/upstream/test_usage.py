"""Token counts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cascade.types import Completion
from gateway.upstream.usage import (
    Usage,
    estimated_tokens,
    read_usage,
    share_usage,
    split_evenly,
    split_in_proportion,
)
from tests.upstream.fakes import MESSAGES

PROMPT_ESTIMATE = 12
"""``[{"role":"user","content":"Who wrote Hamlet?"}]`` has 47 characters."""


def shared(usage: Usage, *n_logprobs: int) -> list[Completion]:
    choices = [Completion("12345678", logprobs=[-0.1] * n or None) for n in n_logprobs]
    share_usage(usage, choices, MESSAGES)
    return choices


def outputs(usage: Usage, *n_logprobs: int) -> list[int]:
    return [choice.out_tokens for choice in shared(usage, *n_logprobs)]


@pytest.mark.req("FR-2.13", "FR-1.11", "NFR-7")
@pytest.mark.parametrize(
    "total, n_logprobs, parts",
    [
        (9, (3, 3, 3), [3, 3, 3]),
        (9, (2, 3, 4), [2, 3, 4]),
        (18, (2, 3, 4), [4, 6, 8]),
        (10, (1, 1, 1), [4, 3, 3]),
        (10, (3, 0, 3), [4, 3, 3]),
        (11, (0, 0), [6, 5]),
        (500, (7,), [500]),
        (500, (0,), [500]),
    ],
)
def test_output_tokens_follow_the_logprobs_and_add_up(
    total: int, n_logprobs: tuple[int, ...], parts: list[int]
) -> None:
    assert outputs(Usage(prompt=1, completion=total), *n_logprobs) == parts


@pytest.mark.req("FR-1.12")
def test_unreported_counts_are_estimated() -> None:
    choices = shared(Usage(), 3, 0)
    assert [choice.out_tokens for choice in choices] == [3, 2]
    assert [choice.in_tokens for choice in choices] == [PROMPT_ESTIMATE, PROMPT_ESTIMATE]


@pytest.mark.req("FR-1.41", "FR-1.12")
def test_an_estimate_includes_tool_calls() -> None:
    choice = Completion("", tool_calls=[{"id": "call_1"}])
    share_usage(Usage(prompt=5), [choice], MESSAGES)
    assert choice.out_tokens == estimated_tokens('[{"id":"call_1"}]') == 5


@pytest.mark.req("FR-2.13", "FR-1.12")
def test_details_are_shared_and_never_exceed_their_totals() -> None:
    first, second = shared(Usage(prompt=10, completion=6, reasoning=5, cached=50), 3, 3)
    assert (first.reasoning_tokens, second.reasoning_tokens) == (3, 2)
    assert (first.cached_tokens, second.cached_tokens) == (10, 10)
    assert shared(Usage(prompt=1, completion=2, reasoning=9), 0)[0].reasoning_tokens == 2


@pytest.mark.req("FR-1.12", "FR-1.11")
def test_usage_is_read() -> None:
    document = {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "completion_tokens_details": {"reasoning_tokens": 3},
        "prompt_tokens_details": {"cached_tokens": 2},
    }
    assert read_usage(document) == Usage(10, 4, 3, 2)


@pytest.mark.req("FR-1.12", "FR-1.11")
@pytest.mark.parametrize("junk", [None, "12", -1, True, 1.5, [], {}, 10**12])
def test_junk_counts_are_nothing(junk: Any) -> None:
    details = {"reasoning_tokens": junk, "cached_tokens": junk}
    document = {
        "prompt_tokens": junk,
        "completion_tokens": junk,
        "completion_tokens_details": details,
        "prompt_tokens_details": details,
    }
    assert read_usage(document) == read_usage(junk) == Usage(0, 0, 0, 0)


@given(total=st.integers(0, 10**6), weights=st.lists(st.integers(1, 500), min_size=1, max_size=16))
def test_splits_are_exact(total: int, weights: list[int]) -> None:
    parts = split_in_proportion(total, weights)
    assert sum(parts) == total
    assert all(abs(part - total * weight / sum(weights)) < 1 for part, weight in zip(parts, weights, strict=True))
    even = split_evenly(total, len(weights))
    assert sum(even) == total and max(even) - min(even) <= 1 and even == sorted(even, reverse=True)
