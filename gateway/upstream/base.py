"""The interface of a teacher, and the one error type of every upstream."""

from typing import Protocol

from gateway.cascade.types import Answer, Call


class UpstreamError(Exception):
    """An upstream call that failed, after its retries. Holds no URL, no key and no request text.

    ``kind`` is one of the kinds of ``gateway.upstream.failures`` or ``http_<status>``; ``status`` is the HTTP status
    (``None``: no answer); ``error_type``, ``code`` and ``param`` are the endpoint's OpenAI error fields, ``message`` is
    its clipped message, ``retry_after_s`` its wait, ``is_timeout`` a read or connect timeout.
    """

    def __init__(
        self,
        kind: str,
        *,
        status: int | None = None,
        message: str = "",
        error_type: str = "",
        code: str = "",
        param: str | None = None,
        retry_after_s: float | None = None,
        is_timeout: bool = False,
        is_breaker_open: bool = False,
    ) -> None:
        super().__init__(kind)
        self.kind = kind
        self.status = status
        self.message = message
        self.error_type = error_type
        self.code = code
        self.param = param
        self.retry_after_s = retry_after_s
        self.is_timeout = is_timeout
        self.is_breaker_open = is_breaker_open


class Teacher(Protocol):
    """Answers calls of role TEACHER. Built once per process with the gateway's settings."""

    async def complete(self, call: Call) -> Answer:
        """Answer on the event loop; raises ``UpstreamError``."""
        ...

    def complete_sync(self, call: Call) -> Answer:
        """Answer from synchronous code; raises ``UpstreamError``."""
        ...

    async def aclose(self) -> None:
        """Close the connections of the event loop it served."""
        ...
