"""The load of the benchmark: kept-alive connections that each send the next request when their answer has come.

Run as ``python -m tests.benchmarks.load PORT CONNECTIONS SECONDS LIMIT KEY FIRST``: it stops sending after ``SECONDS``
or ``LIMIT`` requests, waits for the answers that are still due, and prints one JSON line. Every request has a text of
its own, numbered from ``FIRST``.
"""

import asyncio
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator

import uvloop

from tests.benchmarks.upstream import message_length

BODY = (
    b'{"model": "ratchet", "messages": [{"role": "system", "content": "Classify the ticket. Answer with JSON."},'
    b' {"role": "user", "content": "Ticket %d: I was charged twice for my invoice, please refund one of them."}],'
    b' "temperature": 0, "max_tokens": 64}'
)
HEAD = (
    "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {key}\r\n"
    "content-type: application/json\r\ncontent-length: "
)
PATIENCE_S = 30


class Load:
    """What the connections share: the next request, when to stop, and the statuses that came back."""

    def __init__(self, head: bytes, numbers: Iterator[int], until: float) -> None:
        self._head, self._numbers, self._until = head, numbers, until
        self.statuses: Counter[int] = Counter()

    def next_request(self) -> bytes | None:
        """Return the next request, or None when the time or the numbers have run out."""
        number = next(self._numbers, None) if time.perf_counter() < self._until else None
        if number is None:
            return None
        body = BODY % number
        return self._head + b"%d\r\n\r\n%s" % (len(body), body)


class Connection(asyncio.Protocol):
    """One connection; ``done`` ends with its last answer, or with the error that cut it off."""

    def __init__(self, load: Load) -> None:
        self._load, self._received = load, b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        """Count a complete answer and send the next request."""
        self._received += data
        length = message_length(self._received)
        if length is not None and len(self._received) >= length:
            self._load.statuses[int(self._received[9:12])] += 1
            self._received = self._received[length:]
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        """Report a server that hung up on a request."""
        if not self.done.done():
            self.done.set_exception(error or ConnectionResetError("the server closed a connection in use"))

    def _send(self) -> None:
        request = self._load.next_request()
        if request is not None:
            self._transport.write(request)  # type: ignore[attr-defined]
        else:
            self.done.set_result(None)
            self._transport.close()


async def run(port: int, n_connections: int, duration_s: float, limit: int, key: str, first: int) -> dict[str, object]:
    """Return the answers by status and the seconds from the first connection to the last answer."""
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    numbers = itertools.islice(itertools.count(first), limit)
    load = Load(HEAD.format(port=port, key=key).encode(), numbers, started + duration_s)
    opened = [loop.create_connection(lambda: Connection(load), "127.0.0.1", port) for _ in range(n_connections)]
    connections = [protocol for _, protocol in await asyncio.gather(*opened)]
    async with asyncio.timeout(duration_s + PATIENCE_S):
        await asyncio.gather(*(connection.done for connection in connections))
    return {"statuses": load.statuses, "seconds": time.perf_counter() - started}


if __name__ == "__main__":
    port_, n_connections_, seconds_, limit_, key_, first_ = sys.argv[1:]
    result = uvloop.run(run(int(port_), int(n_connections_), float(seconds_), int(limit_), key_, int(first_)))
    sys.stdout.write(json.dumps(result) + "\n")
