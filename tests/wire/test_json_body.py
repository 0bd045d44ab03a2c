"""Strict JSON at the edge: what a refusal says, and what it costs."""

import tracemalloc

import pytest

from gateway.wire.errors import APIError
from gateway.wire.json_body import MAX_PATH_CHARS, parse_object

KEY = "k" * 64


def refusal(raw: bytes) -> APIError:
    with pytest.raises(APIError) as caught:
        parse_object(raw)
    return caught.value


@pytest.mark.req("FR-1.10")
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b" \n", "it is empty"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"temperature": NaN}', "NaN or Infinity"),
        (b'{"temperature": -Infinity}', "NaN or Infinity"),
        (b'{"a": 1,\n "b": }', "line 2, column 7"),
        (b'{"a": 1e999}', "number out of range"),
        (b'{"a": ' + b"9" * 5000 + b', "b": "\\ud800"}', "number out of range"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
        (b"[" * 5000, "nested too deeply"),
        (b'{"a": "\\ud800"}', "unpaired surrogate"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_refusal_of_bad_json_says_what_is_wrong_with_it(raw: bytes, reason: str) -> None:
    assert reason in refusal(raw).message


def large(n_levels: int, bad: str) -> bytes:
    """A body of ``n_levels`` objects around an array of 60,000 numbers that ends in a bad string."""
    numbers = "1," * 60_000
    return (f'{{"{KEY}":' * n_levels + f'[{numbers}"{bad}"]' + "}" * n_levels).encode()


@pytest.mark.req("FR-1.10")
@pytest.mark.parametrize(("n_levels", "bad"), [(90, "\\u0000"), (90, "\\ud800"), (600, "\\ud800")])
def test_finding_a_bad_string_takes_no_more_memory_than_the_body(n_levels: int, bad: str) -> None:
    raw = large(n_levels, bad)
    tracemalloc.start()
    try:
        error = refusal(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.status == 400
    assert peak < 20 * len(raw)
    assert error.param is not None
    assert error.param.startswith(f"{KEY}.{KEY}")
    assert len(error.param) <= MAX_PATH_CHARS + len(KEY) + 1


@pytest.mark.req("FR-1.10")
def test_the_first_bad_string_in_the_order_of_the_body_is_named() -> None:
    raw = b'{"a": [{"x": "fine"}, {"y": ["\\u0000", "\\u0000"]}], "b": "\\u0000"}'
    assert refusal(raw).param == "a[1].y[0]"
    assert refusal(b'{"a": [1, {"\\u0000": 1}], "b": "\\u0000"}').param == "a[1]"
    assert refusal(b'{"a b": {"c": "\\u0000"}}').param == "c"
