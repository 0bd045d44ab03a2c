"""What an upstream failure is: its kinds, what an error body says, and which ones speak against the endpoint. Pure."""

import re
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from math import isfinite
from typing import Any

import orjson

from gateway.upstream.base import UpstreamError

TIMEOUT = "timeout"
CONNECT_TIMEOUT = "connect_timeout"
UNREACHABLE = "unreachable"
DISCONNECTED = "disconnected"
BAD_RESPONSE = "bad_response"
CIRCUIT_OPEN = "circuit_open"
NOT_CONFIGURED = "not_configured"

MESSAGE_MAX_CHARS = 300
FIELD_MAX_CHARS = 100
BUSY_STATUSES = frozenset({408, 429})
_DOWN_KINDS = frozenset({TIMEOUT, CONNECT_TIMEOUT, UNREACHABLE, DISCONNECTED, BAD_RESPONSE})
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def endpoint_down(error: UpstreamError) -> bool:
    """Whether a failure means that the endpoint looks down, rather than that it refused this one request."""
    status = error.status
    return error.kind in _DOWN_KINDS or (status is not None and (status >= 500 or status in BUSY_STATUSES))


def bad_response(status: int | None = 200) -> UpstreamError:
    """Return the failure of a success whose body cannot be read as an answer."""
    return UpstreamError(BAD_RESPONSE, status=status)


def timed_out(kind: str = TIMEOUT) -> UpstreamError:
    """Return the failure of a call that got no answer in time."""
    return UpstreamError(kind, is_timeout=True)


def http_failure(status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str] = ()) -> UpstreamError:
    """Read an answer that is no success: OpenAI's error object, vLLM's and FastAPI's forms, or anything at all.

    ``headers`` must look names up case-insensitively; ``secrets`` (the key, the base URL) are blanked in the message.
    """
    message, error_type, code, param = _error_fields(_json(body))
    return UpstreamError(
        f"http_{status}",
        status=status,
        message=_clean(message, MESSAGE_MAX_CHARS, secrets) or _reason(status),
        error_type=_clean(error_type, FIELD_MAX_CHARS, secrets),
        code=_clean(code, FIELD_MAX_CHARS, secrets),
        param=_clean(param, FIELD_MAX_CHARS, secrets) or None,
        retry_after_s=retry_after_s(headers),
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the wait that the server asks for, in seconds; malformed, past, zero and endless ones are ``None``.

    ``Retry-After-Ms`` wins over ``Retry-After``; a date is read relative to the answer's own ``Date``.
    """
    milliseconds = _positive(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    return _positive(text) or _until(text, headers.get("date"))


def _positive(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if isfinite(number) and number > 0 else None


def _until(date: str | None, now: str | None) -> float | None:
    try:
        seconds = (parsedate_to_datetime(date or "") - parsedate_to_datetime(now or "")).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return seconds if seconds > 0 else None


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _error_fields(document: Any) -> tuple[Any, Any, Any, Any]:
    if not isinstance(document, dict):
        return None, None, None, None
    error = document.get("error")
    if isinstance(error, str):
        return error, None, None, None
    if isinstance(error, dict):
        document = error
    elif "detail" in document:
        return _fastapi_fields(document["detail"])
    return document.get("message"), document.get("type"), document.get("code"), document.get("param")


def _fastapi_fields(detail: Any) -> tuple[Any, Any, Any, Any]:
    problems = [problem for problem in detail if isinstance(problem, dict)] if isinstance(detail, list) else []
    if not problems:
        return detail, None, None, None
    message = "; ".join(str(problem.get("msg", "")) for problem in problems)
    place = problems[0].get("loc")
    param = ".".join(str(part) for part in place if part != "body") if isinstance(place, list) else None
    return message, problems[0].get("type"), None, param


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _clean(value: Any, max_chars: int, secrets: Iterable[str]) -> str:
    if not isinstance(value, str):
        return ""
    for secret in secrets:
        if secret:
            value = value.replace(secret, "***")
    return _UNPRINTABLE.sub(" ", value).strip()[:max_chars]
