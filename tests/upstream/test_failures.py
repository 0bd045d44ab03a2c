"""Reading error bodies and Retry-After, and telling an outage from a refusal."""

from typing import Any

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.base import UpstreamError
from gateway.upstream.failures import bad_response, endpoint_down, http_failure, retry_after_s, timed_out
from tests.upstream.fakes import KEY

URL = "https://models.example/v1"
DATE = {"date": "Mon, 02 Nov 2026 12:00:00 GMT"}


def failure(document: Any, status: int = 400) -> UpstreamError:
    raw = document if isinstance(document, bytes) else orjson.dumps(document)
    return http_failure(status, httpx.Headers(), raw, (KEY, URL))


@pytest.mark.req("FR-1.11")
@pytest.mark.parametrize(
    "document, fields",
    [
        (
            {"error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded",
                       "param": "messages"}},
            ("too long", "invalid_request_error", "context_length_exceeded", "messages"),
        ),
        (
            {"object": "error", "message": "no such model", "type": "NotFoundError", "param": None, "code": 404},
            ("no such model", "NotFoundError", "", None),
        ),
        ({"error": "overloaded"}, ("overloaded", "", "", None)),
        ({"detail": "Not Found"}, ("Not Found", "", "", None)),
        (
            {"detail": [{"loc": ["body", "messages", 0], "msg": "field required", "type": "missing"}, {"msg": "bad"}]},
            ("field required; bad", "missing", "", "messages.0"),
        ),
        (b"<html><body>nginx</body></html>", ("Bad Request", "", "", None)),
        ({"error": {"message": {"deep": 1}, "code": True}}, ("Bad Request", "", "", None)),
        ([1], ("Bad Request", "", "", None)),
    ],
)  # fmt: skip
def test_error_bodies_are_read_in_every_dialect(document: Any, fields: tuple[Any, ...]) -> None:
    error = failure(document)
    assert (error.message, error.error_type, error.code, error.param) == fields
    assert (error.kind, error.status, error.is_timeout, error.is_breaker_open) == ("http_400", 400, False, False)


@pytest.mark.req("FR-1.11", "INV-12", "INV-13")
def test_messages_are_clipped_and_hold_neither_key_nor_url_nor_control_characters() -> None:
    error = failure({"error": {"message": f"key {KEY} at {URL}/x\x00\r\n" + "é" * 400}})
    assert error.message.startswith("key *** at ***/x éé")
    assert len(error.message) == 300
    assert str(error) == error.kind == "http_400"
    assert KEY not in repr(vars(error)) and URL not in repr(vars(error))


def test_an_unknown_status_has_no_reason() -> None:
    assert failure(b"", 599).message == ""


@pytest.mark.req("FR-1.11")
@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({"Retry-After": "2"}, 2.0),
        ({"RETRY-AFTER": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Mon, 02 Nov 2026 12:00:07 GMT", **DATE}, 7.0),
        ({"retry-after": "Mon, 02 Nov 2026 11:59:00 GMT", **DATE}, None),
        ({"retry-after": "Mon, 02 Nov 2026 12:00:07 GMT"}, None),
        ({"retry-after": "Mon, 02 Nov 2026 12:00:07 -0000", **DATE}, None),
        ({}, None),
        *(({"retry-after": text, **DATE}, None) for text in ("", "0", "-1", "inf", "nan", "soon")),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(httpx.Headers(headers)) == seconds


@given(text=st.text(max_size=40), date=st.text(max_size=40))
def test_any_retry_after_is_a_positive_wait_or_none(text: str, date: str) -> None:
    seconds = retry_after_s({"retry-after": text, "date": date})
    assert seconds is None or 0 < seconds < float("inf")


@pytest.mark.req("FR-2.11", "FR-2.12")
@pytest.mark.parametrize(
    "error, is_down",
    [
        (timed_out(), True),
        (timed_out("connect_timeout"), True),
        (UpstreamError("unreachable"), True),
        (UpstreamError("disconnected"), True),
        (bad_response(), True),
        *((UpstreamError(f"http_{status}", status=status), True) for status in (408, 429, 500, 502, 503, 504)),
        *((UpstreamError(f"http_{status}", status=status), False) for status in (301, 400, 401, 404, 413, 422)),
        (UpstreamError("circuit_open", is_breaker_open=True), False),
        (UpstreamError("not_configured"), False),
    ],
)
def test_outages_are_told_from_refusals(error: UpstreamError, is_down: bool) -> None:
    assert endpoint_down(error) is is_down
