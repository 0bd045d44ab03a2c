"""A scripted endpoint on a real port, a clock that waiting moves, and calls to make."""

import json
import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gateway.cascade.types import Call, Purpose, Role, StudentRoute, VersionRoute
from gateway.settings import EndpointSettings
from ledger.taskspec import TaskSpec

KEY = "sk-upstream-secret-key"
MESSAGES = [{"role": "user", "content": "Who wrote Hamlet?"}]


@dataclass
class Reply:
    """One scripted answer.

    ``act``: ``answer``, ``hang`` (until the server stops), ``reset``, ``truncate``, ``drip`` (a byte at a time, for at
    least 5 s) or ``endless`` (without a declared length, until the client hangs up).
    """

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    act: str = "answer"

    @property
    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


def completion(*texts: str, finish_reason: Any = "stop", **document: Any) -> dict[str, Any]:
    """An OpenAI chat completion."""
    choices = [
        {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
        for index, text in enumerate(texts)
    ]
    return {"id": "x", "object": "chat.completion", "model": "served-model", "choices": choices, **document}


def ok(*texts: str, **document: Any) -> Reply:
    """A good answer."""
    return Reply(body=completion(*(texts or ("Shakespeare",)), **document))


class Upstream:
    """An HTTP server that answers from a script; past its end, with the last reply for ever."""

    def __init__(self) -> None:
        self.script: list[Reply] = [ok()]
        self.seen: list[Seen] = []
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(poll_interval=0.02), daemon=True)
        self._thread.start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def replies(self, *replies: Reply) -> None:
        """Set the script."""
        self.script = list(replies)

    def wait_for(self, n_requests: int, patience_s: float = 30.0) -> None:
        """Wait until that many requests have been read: a client that hangs up may be done before its server is."""
        deadline = time.monotonic() + patience_s
        while len(self.seen) < n_requests and time.monotonic() < deadline:
            time.sleep(0.005)

    def stop(self) -> None:
        """Let hanging answers go and close the port."""
        self.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def next_reply(self, seen: Seen) -> Reply:
        """Record a request and take its reply."""
        with self._lock:
            self.seen.append(seen)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = json.loads(raw) if raw else None
                reply = upstream.next_reply(Seen(self.command, self.path, dict(self.headers), body))
                if reply.act == "hang":
                    upstream.stopping.wait()
                elif reply.act == "reset":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close_connection = True
                    self.rfile.close()
                    self.connection.close()
                elif reply.act == "endless":
                    self._answer_for_ever()
                else:
                    self._answer(reply)

            do_GET = do_POST

            def _answer(self, reply: Reply) -> None:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                missing = 10 if reply.act == "truncate" else 0
                self.send_header("Content-Length", str(len(reply.raw) + missing))
                self.end_headers()
                if reply.act == "drip":
                    self._drip(reply.raw)
                else:
                    self.wfile.write(reply.raw)
                self.close_connection = bool(missing)

            def _drip(self, raw: bytes) -> None:
                with suppress(OSError):
                    for byte in raw:
                        self.wfile.write(bytes([byte]))
                        upstream.stopping.wait(5 / len(raw))

            def _answer_for_ever(self) -> None:
                self.close_connection = True
                self.send_response(200)
                self.send_header("Connection", "close")
                self.end_headers()
                with suppress(OSError):
                    while not upstream.stopping.is_set():
                        self.wfile.write(b" " * 65_536)

            def date_time_string(self, timestamp: float | None = None) -> str:
                return "Mon, 02 Nov 2026 12:00:00 GMT"

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


class Waits:
    """A monotonic clock that only waiting moves; ``slept`` records the waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)


def settings(base_url: str, **changes: Any) -> EndpointSettings:
    """An endpoint's settings, with patience for a local test server."""
    values = {"base_url": base_url, "api_key": KEY, "model": "teacher-model", "timeout_s": 5.0, "deadline_s": 60.0}
    return EndpointSettings(**{**values, **changes})


def teacher_call(**changes: Any) -> Call:
    """A call to the teacher."""
    values: dict[str, Any] = {
        "role": Role.TEACHER,
        "purpose": Purpose.COLD_START,
        "messages": MESSAGES,
        "n": 1,
        "params": {"max_tokens": 100},
        "temperature": 0.0,
        "student": StudentRoute(1, "default", "openai", "base"),
        "task": TaskSpec("default"),
    }
    return Call(**{**values, **changes})


def student_call(*endpoints: str, **changes: Any) -> Call:
    """A call that samples an adapter three times."""
    values: dict[str, Any] = {
        "role": Role.STUDENT,
        "purpose": Purpose.SAMPLE,
        "n": 3,
        "temperature": 0.7,
        "student": StudentRoute(1, "default", "openai", "base", endpoints=endpoints),
        "version": VersionRoute(1, 1, "default-v1", 0, 0.8),
    }
    return teacher_call(**{**values, **changes})
