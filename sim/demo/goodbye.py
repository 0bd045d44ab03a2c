"""What the demo leaves people with: the addresses, the admin user and a snippet for the official OpenAI SDK."""

import asyncio
from collections.abc import Sequence

from sim.demo.client import post, session
from sim.demo.tasks import TASKS

TASK = TASKS["question-routing"]
PLAIN_QUESTIONS = (
    "Who wrote Hamlet ?",
    "Who is the inventor of the telephone ?",
    "How many people live in Canada ?",
    "What city hosted the 1936 Olympics ?",
    "How far is it from Rome to Paris ?",
)
ODD_QUESTIONS = (
    "Colourless green ideas sleep furiously ?",
    "Xyzzy plugh ?",
    "Does it, or is it that they would ?",
    "Is this the kind of thing one asks ?",
)

SNIPPET = """\
from openai import OpenAI

client = OpenAI(base_url="{base_url}", api_key="not-needed-on-this-machine")
for text in {texts!r}:
    answer = client.chat.completions.create(
        model="ratchet",
        messages=[
            {{"role": "system", "content": {instructions!r}}},
            {{"role": "user", "content": text}},
        ],
        temperature=0,
        extra_headers={{"X-Ratchet-Task": "{task}"}},
    )
    print(text, answer.choices[0].message.content, answer.model_extra["ratchet"]["served_by"])
"""


def example_questions(base_url: str) -> tuple[str, str]:
    """Return a question that the student answers now and one that goes to the teacher, by asking."""
    return asyncio.run(_examples(base_url))


async def _examples(base_url: str) -> tuple[str, str]:
    async def first_served_by(who: str, texts: Sequence[str]) -> str:
        for text in texts:
            if (await post(http, TASK.name, text))["ratchet"]["served_by"] == who:
                return text
        return texts[0]

    async with session(base_url) as http:
        plain = await first_served_by("student", PLAIN_QUESTIONS)
        return plain, await first_served_by("teacher", ODD_QUESTIONS)


def snippet(base_url: str, texts: tuple[str, str]) -> str:
    """Return Python code that asks ``texts`` with the OpenAI SDK."""
    return SNIPPET.format(base_url=base_url, texts=texts, instructions=TASK.instructions, task=TASK.name)
