"""The demo's teacher: a small OpenAI-shaped server that answers with the data sets' own labels. No model is called.

Run as ``python -m sim.demo.teacher_server --port 8100``. It needs neither Django nor a database. Its price is a setting
of the gateway; it bills the tokens that a reasoning model would (``REASONING_TOKENS`` an answer).
"""

import argparse
import asyncio
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from sim.demo import dataset
from sim.demo.dataset import DemoMessage
from sim.demo.tasks import TASKS, DemoTask

MODEL = "ratchet-demo/dataset-labels"
LICENCE = "CC-BY-4.0"
REASONING_TOKENS = 300
CHARS_PER_TOKEN = 4
ABOUT = (
    "I am the demo's teacher. I answer with the labels of the TREC questions and the SMS Spam Collection; "
    "there is no language model behind me, so this is all I can say."
)

_GUESSES: Mapping[str, Sequence[tuple[str, str]]] = {
    "question-routing": (
        (r"\b(stand for|abbreviation|acronym)\b", "ABBR"),
        (r"\b(how (many|much|far|long|old|tall)|when|what (year|date))\b", "NUM"),
        (r"\b(where|country|city|state)\b", "LOC"),
        (r"\b(who|whose|whom)\b", "HUM"),
        (r"\b(why|how|define|meaning|mean)\b", "DESC"),
        (r"", "ENTY"),
    ),
    "sms-spam": (
        (r"\b(free|prize|win|won|claim|urgent|cash|txt|https?:)", "spam"),
        (r"", "ham"),
    ),
}


class LabelTeacher:
    """Looks answers up by the user's text; guesses plainly for a text that no data set holds."""

    def __init__(self, messages: Mapping[str, Sequence[DemoMessage]]) -> None:
        self._labels = {(task, m.text): m.label for task, found in messages.items() for m in found}

    def answer(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the answer to a chat: JSON for a task of the demo, else a sentence that says who is speaking."""
        task = _task_of(messages)
        if task is None:
            return ABOUT
        text = _last_user_text(messages)
        label = self._labels.get((task.name, text)) or guess(task.name, text)
        return json.dumps({task.field: label})


def guess(task: str, text: str) -> str:
    """Return a plausible label by a few keywords."""
    return next(label for pattern, label in _GUESSES[task] if re.search(pattern, text, re.IGNORECASE))


def _task_of(messages: Sequence[Mapping[str, Any]]) -> DemoTask | None:
    asked = {str(message.get("content")) for message in messages if message.get("role") == "system"}
    return next((task for task in TASKS.values() if task.instructions in asked), None)


def _last_user_text(messages: Sequence[Mapping[str, Any]]) -> str:
    return next((str(m.get("content")).strip() for m in reversed(messages) if m.get("role") == "user"), "")


def completion(body: Mapping[str, Any], answer: str, created: int) -> dict[str, Any]:
    """Return an OpenAI ``chat.completion`` with the usage that a reasoning model would bill."""
    n = body.get("n") or 1
    prompt_tokens = sum(_tokens(str(message.get("content"))) for message in body["messages"])
    completion_tokens = n * (_tokens(answer) + REASONING_TOKENS)
    message = {"role": "assistant", "content": answer}
    return {
        "id": "chatcmpl-demo-teacher",
        "object": "chat.completion",
        "created": created,
        "model": MODEL,
        "choices": [{"index": index, "message": message, "finish_reason": "stop"} for index in range(n)],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "completion_tokens_details": {"reasoning_tokens": n * REASONING_TOKENS},
        },
    }


def _tokens(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)


def build_app(teacher: LabelTeacher, latency_s: float = 0.0) -> web.Application:
    """Return the server: ``POST /v1/chat/completions`` and ``GET /v1/models``."""

    async def complete(request: web.Request) -> web.Response:
        body = await request.json()
        if latency_s:
            await asyncio.sleep(latency_s)
        return web.json_response(completion(body, teacher.answer(body["messages"]), int(time.time())))

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "demo"}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    app.router.add_get("/v1/models", models)
    return app


def main() -> None:
    """Serve on the loopback interface until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--latency-ms", type=float, default=0.0, help="wait this long before each answer (default 0)")
    options = parser.parse_args()
    app = build_app(LabelTeacher(dataset.load()), options.latency_ms / 1000)
    web.run_app(app, host="127.0.0.1", port=options.port, print=None, access_log=None)


if __name__ == "__main__":
    main()
