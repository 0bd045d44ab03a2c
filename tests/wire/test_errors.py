"""OpenAI's error envelope and the mapping of upstream failures."""

import pytest

from gateway.upstream.base import UpstreamError
from gateway.wire import errors
from gateway.wire.errors import APIError, upstream_to_api_error

NO_RETRY = {"X-Should-Retry": "false"}


@pytest.mark.req("FR-1.10")
def test_the_envelope_has_openais_four_fields() -> None:
    error = errors.invalid_request("No.", code="invalid_value", param="messages[0].content")
    assert error.body == {
        "error": {
            "message": "No.",
            "type": "invalid_request_error",
            "param": "messages[0].content",
            "code": "invalid_value",
        }
    }
    assert str(error) == "400 invalid_value"


@pytest.mark.req("FR-1.5", "FR-1.10")
@pytest.mark.parametrize(
    ("error", "status", "type_", "code", "headers"),
    [
        (
            errors.invalid_api_key(),
            401,
            "authentication_error",
            "invalid_api_key",
            {"WWW-Authenticate": "Bearer", **NO_RETRY},
        ),
        (errors.forbidden("No.", code="task_not_allowed"), 403, "permission_error", "task_not_allowed", NO_RETRY),
        (errors.unknown_url("GET", "/v1/x"), 404, "not_found_error", "unknown_url", NO_RETRY),
        (errors.model_not_found(), 404, "not_found_error", "model_not_found", NO_RETRY),
        (
            errors.method_not_allowed("GET", "POST"),
            405,
            "invalid_request_error",
            "method_not_allowed",
            {"Allow": "POST", **NO_RETRY},
        ),
        (errors.body_too_large(1000), 413, "invalid_request_error", "request_too_large", NO_RETRY),
        (
            errors.rate_limited("Slow down.", retry_after_s=0.2),
            429,
            "rate_limit_error",
            "rate_limit_exceeded",
            {"Retry-After": "1"},
        ),
        (
            errors.quota_exhausted("Used up.", retry_after_s=60),
            429,
            "insufficient_quota",
            "insufficient_quota",
            {"Retry-After": "60", **NO_RETRY},
        ),
        (errors.overloaded("Busy."), 503, "api_error", "overloaded", {"Retry-After": "1"}),
        (errors.internal_error(), 500, "api_error", "internal_error", {}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_each_refusal_has_its_status_type_code_and_headers(
    error: APIError, status: int, type_: str, code: str, headers: dict[str, str]
) -> None:
    assert (error.status, error.type, error.code, error.headers) == (status, type_, code, headers)


@pytest.mark.req("INV-7", "FR-1.8")
@pytest.mark.parametrize(
    ("failure", "status", "code", "headers"),
    [
        (
            UpstreamError("HTTP 400", status=400, message="bad", code="context_length_exceeded"),
            400,
            "context_length_exceeded",
            NO_RETRY,
        ),
        (UpstreamError("HTTP 413", status=413), 400, "invalid_request", NO_RETRY),
        (UpstreamError("HTTP 422", status=422, message="x"), 400, "invalid_request", NO_RETRY),
        (UpstreamError("HTTP 429", status=429, retry_after_s=2.1), 429, "rate_limit_exceeded", {"Retry-After": "3"}),
        (UpstreamError("HTTP 429", status=429), 429, "rate_limit_exceeded", {}),
        (UpstreamError("HTTP 429", status=429, code="insufficient_quota"), 429, "insufficient_quota", NO_RETRY),
        (UpstreamError("timeout", is_timeout=True), 504, "teacher_timeout", {}),
        (UpstreamError("HTTP 401", status=401, message="sk-secret"), 502, "upstream_auth_error", NO_RETRY),
        (UpstreamError("HTTP 403", status=403), 502, "upstream_auth_error", NO_RETRY),
        (UpstreamError("HTTP 404", status=404), 502, "upstream_not_found", NO_RETRY),
        (
            UpstreamError("open", is_breaker_open=True, retry_after_s=17.5),
            503,
            "teacher_circuit_open",
            {"Retry-After": "18"},
        ),
        (UpstreamError("HTTP 500", status=500, message="trace"), 502, "teacher_unavailable", {}),
        (UpstreamError("connect"), 502, "teacher_unavailable", {}),
    ],
    ids=lambda value: str(value)[:24],
)
def test_an_upstream_failure_is_mapped_by_its_cause(
    failure: UpstreamError, status: int, code: str, headers: dict[str, str]
) -> None:
    error = upstream_to_api_error(failure)
    assert (error.status, error.code, error.headers) == (status, code, headers)


@pytest.mark.req("INV-7", "INV-13")
def test_the_teachers_words_are_passed_on_clipped_and_only_when_they_are_about_the_request() -> None:
    refused = upstream_to_api_error(UpstreamError("HTTP 400", status=400, message="m" * 900, param="messages"))
    assert (refused.message, refused.param) == ("m" * 500, "messages")
    assert "sk-" not in upstream_to_api_error(UpstreamError("HTTP 401", status=401, message="bad sk-1")).message
    assert "trace" not in upstream_to_api_error(UpstreamError("HTTP 500", status=500, message="trace")).message
