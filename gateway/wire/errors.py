"""OpenAI's error envelope and the refusals of this gateway in it. Pure."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from gateway.upstream.base import UpstreamError

TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
NO_RETRY = {"X-Should-Retry": "false"}
HOPELESS_STATUSES = frozenset({400, 413, 422})
OUR_MISTAKES = {
    401: ("upstream_auth_error", "The teacher refused this gateway's credentials."),
    403: ("upstream_auth_error", "The teacher refused this gateway's credentials."),
    404: ("upstream_not_found", "The teacher's model or address was not found."),
}
MAX_UPSTREAM_MESSAGE = 500
MAX_LISTED_TASKS = 20


class APIError(Exception):
    """A refusal as the client sees it: HTTP status, message, code, the field at fault, and extra headers.

    The message never quotes what the client sent (INV-12). ``type`` follows from the status unless it is given.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None,
        param: str | None = None,
        type: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.type = type or _type_of(status)
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body of the response."""
        return error_body(self.message, type=self.type, param=self.param, code=self.code)


def _type_of(status: int) -> str:
    return TYPES.get(status) or ("api_error" if status >= 500 else "invalid_request_error")


def error_body(message: str, *, type: str, param: str | None, code: str | None) -> dict[str, Any]:
    """Return OpenAI's error envelope."""
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


def invalid_request(message: str, *, code: str, param: str | None = None) -> APIError:
    """400: the request itself is wrong, so repeating it cannot help."""
    return APIError(400, message, code=code, param=param, headers=NO_RETRY)


def unknown_task(param: str, registered: Sequence[str]) -> APIError:
    """400: the task is not registered, and unregistered ones are rejected; ``param`` is where it was named."""
    names = ", ".join(registered[:MAX_LISTED_TASKS]) + (", ..." if len(registered) > MAX_LISTED_TASKS else "")
    return invalid_request(
        f"The task is not registered. Register it in the admin, or send one of these: {names}.",
        code="unknown_task",
        param=param,
    )


def invalid_api_key() -> APIError:
    """401: the key is missing or not known."""
    return APIError(
        401,
        "Missing or incorrect API key. Send it as 'Authorization: Bearer <key>'.",
        code="invalid_api_key",
        headers={"WWW-Authenticate": "Bearer", **NO_RETRY},
    )


def forbidden(message: str, *, code: str, param: str | None = None) -> APIError:
    """403: the key is known but may not do this."""
    return APIError(403, message, code=code, param=param, headers=NO_RETRY)


def unknown_url(method: str, path: str) -> APIError:
    """404: no such endpoint."""
    return APIError(404, f"Unknown request URL: {method} {path}.", code="unknown_url", headers=NO_RETRY)


def model_not_found() -> APIError:
    """404: no such model."""
    return APIError(404, "The model does not exist.", code="model_not_found", param="model", headers=NO_RETRY)


def method_not_allowed(method: str, allowed: str) -> APIError:
    """405; ``allowed`` lists the methods the endpoint has."""
    return APIError(
        405, f"{method} is not allowed here.", code="method_not_allowed", headers={"Allow": allowed, **NO_RETRY}
    )


def body_too_slow(limit_s: float) -> APIError:
    """408: the body did not arrive in time."""
    return APIError(408, f"The request body did not arrive within {limit_s:g} seconds.", code="request_timeout")


def unreadable_head() -> APIError:
    """400: the query string or the ``Content-Type`` header cannot be read."""
    return invalid_request(
        "The query string or the Content-Type header could not be read. Send 'Content-Type: application/json'.",
        code="invalid_header",
        param="Content-Type",
    )


def body_too_large(limit_bytes: int) -> APIError:
    """413: the body is over the limit."""
    return APIError(
        413, f"The request body is larger than {limit_bytes} bytes.", code="request_too_large", headers=NO_RETRY
    )


def rate_limited(message: str, *, retry_after_s: float, code: str = "rate_limit_exceeded") -> APIError:
    """429: too fast; the same request succeeds after the wait."""
    return APIError(429, message, code=code, headers=_retry_after(retry_after_s))


def quota_exhausted(message: str, *, retry_after_s: float, code: str = "insufficient_quota") -> APIError:
    """429 for a used-up quota or budget: clients must not retry by themselves."""
    return APIError(
        429, message, code=code, type="insufficient_quota", headers={**_retry_after(retry_after_s), **NO_RETRY}
    )


def overloaded(message: str, *, code: str = "overloaded", retry_after_s: float = 1.0) -> APIError:
    """503: this gateway cannot take the request now."""
    return APIError(503, message, code=code, headers=_retry_after(retry_after_s))


def internal_error() -> APIError:
    """500: a fault of ours, whose details stay with us."""
    return APIError(500, "The server had an error while processing the request.", code="internal_error")


def upstream_to_api_error(error: UpstreamError) -> APIError:
    """Map the failure of a call that the request needed to what the client is told."""
    headers = _retry_after(error.retry_after_s)
    if error.is_breaker_open:
        return APIError(503, "The teacher is unavailable at the moment.", code="teacher_circuit_open", headers=headers)
    if error.is_timeout:
        return APIError(504, "The teacher did not answer in time.", code="teacher_timeout", headers=headers)
    if error.status in HOPELESS_STATUSES:
        message = error.message[:MAX_UPSTREAM_MESSAGE] or "The teacher refused the request."
        return invalid_request(message, code=error.code or "invalid_request", param=error.param)
    if error.status == 429:
        return _upstream_rate_limit(error, headers)
    if error.status in OUR_MISTAKES:
        code, message = OUR_MISTAKES[error.status]
        return APIError(502, message, code=code, headers=NO_RETRY)
    return APIError(502, "The teacher is unavailable.", code="teacher_unavailable", headers=headers)


def _upstream_rate_limit(error: UpstreamError, headers: dict[str, str]) -> APIError:
    if error.code == "insufficient_quota":
        return APIError(
            429, "The teacher's quota is used up.", code="insufficient_quota", headers={**headers, **NO_RETRY}
        )
    return APIError(429, "The teacher's rate limit was reached.", code="rate_limit_exceeded", headers=headers)


def _retry_after(seconds: float | None) -> dict[str, str]:
    return {} if seconds is None else {"Retry-After": str(max(1, ceil(seconds)))}
