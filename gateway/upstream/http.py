"""What both HTTP clients send and refuse alike: the address, the headers and how an answer is judged."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from gateway.upstream.failures import http_failure

# Under the 5 s after which uvicorn, and so vLLM, closes an idle connection: a request sent into that close is lost.
KEEPALIVE_S: Final = 4.0


def chat_url(base_url: str) -> str:
    """Return the address of the endpoint's chat completions."""
    return base_url.rstrip("/") + "/chat/completions"


def request_headers(api_key: str) -> dict[str, str]:
    """Return the headers of every request; without a key, none is sent."""
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    return headers


def checked(base_url: str, api_key: str, status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return the body of a success; anything else, redirects included, raises ``UpstreamError``."""
    if 200 <= status < 300:
        return body
    raise http_failure(status, headers, body, (api_key, base_url, urlsplit(base_url).netloc))
