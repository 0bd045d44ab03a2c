"""The upstream of the benchmark: a minimal HTTP/1.1 server that gives every request the same OpenAI answer at once.

Run as ``python -m tests.benchmarks.upstream``; it prints its port on the first line.
"""

import asyncio
import json
import sys

import uvloop

ANSWER = {
    "id": "chatcmpl-benchmark",
    "object": "chat.completion",
    "created": 1_750_000_000,
    "model": "nvidia/nemotron-3-ultra",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": '{"label": "billing", "confidence": 0.93}', "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 42, "completion_tokens": 12, "total_tokens": 54},
}
BODY = json.dumps(ANSWER).encode()
RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)


def message_length(received: bytes) -> int | None:
    """Return the length of the first HTTP message, head and body; None while its head is not complete."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    _, _, rest = received[:end].lower().partition(b"content-length:")
    return end + 4 + int(rest.split(b"\r\n", 1)[0] or 0)


class Upstream(asyncio.Protocol):
    """One kept-alive connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start with an empty buffer."""
        self._transport, self._received = transport, b""

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._received += data
        while (length := message_length(self._received)) is not None and len(self._received) >= length:
            self._received = self._received[length:]
            self._transport.write(RESPONSE)  # type: ignore[attr-defined]


async def main() -> None:
    """Listen on a free port of the loopback interface until the process ends."""
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
