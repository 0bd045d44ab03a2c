"""What both HTTP clients send and refuse alike: the address, the headers and how an answer is judged."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from gateway.upstream.failures import bad_response, http_failure

# Under the 5 s after which uvicorn, and so vLLM, closes an idle connection: a request sent into that close is lost.
KEEPALIVE_S: Final = 4.0
MAX_ANSWER_BYTES = 128 * 1024 * 1024
"""Above the longest answer there is: every choice at the output cap, with all log-probabilities. More is a fault."""


def chat_url(base_url: str) -> str:
    """Return the address of the endpoint's chat completions."""
    return base_url.rstrip("/") + "/chat/completions"


def request_headers(api_key: str) -> dict[str, str]:
    """Return the headers of every request; without a key, none is sent."""
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    return headers


class Received:
    """The body of an answer as it comes in, up to ``MAX_ANSWER_BYTES``."""

    def __init__(self, status: int) -> None:
        self._status = status
        self._chunks: list[bytes] = []
        self._size = 0

    def add(self, chunk: bytes) -> None:
        """Take the next part; raises ``UpstreamError`` when the whole is longer than any answer."""
        self._size += len(chunk)
        if self._size > MAX_ANSWER_BYTES:
            raise bad_response(self._status)
        self._chunks.append(chunk)

    @property
    def body(self) -> bytes:
        """What has come in."""
        return b"".join(self._chunks)


def checked(base_url: str, api_key: str, status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return the body of a success; anything else, redirects included, raises ``UpstreamError``."""
    if 200 <= status < 300:
        return body
    raise http_failure(status, headers, body, (api_key, base_url, urlsplit(base_url).netloc))
