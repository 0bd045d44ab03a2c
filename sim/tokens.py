"""How the mock models count tokens and stop: four characters to a token."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.cascade.types import Completion

CHARS_PER_TOKEN = 4


def approx_tokens(text: str) -> int:
    """Return the approximate number of tokens of ``text``, at least 1."""
    return max(1, -(-len(text) // CHARS_PER_TOKEN))


def prompt_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return the approximate number of tokens of a conversation."""
    chars = sum(len(content) for message in messages if isinstance(content := message.get("content"), str))
    return max(1, -(-chars // CHARS_PER_TOKEN))


def completion(
    text: str, in_tokens: int, params: Mapping[str, Any], *, reasoning: int = 0, logprobs: Sequence[float] | None = None
) -> Completion:
    """Return ``text`` as a choice, cut at ``max_tokens`` and ended at the first stop string, as an endpoint would."""
    finish = "stop"
    stops = params.get("stop")
    for stop in [stops] if isinstance(stops, str) else stops or ():
        text = text.partition(stop)[0]
    limit = params.get("max_tokens")
    if limit is not None and len(text) > limit * CHARS_PER_TOKEN:
        text, finish = text[: limit * CHARS_PER_TOKEN], "length"
    return Completion(
        text=text,
        finish_reason=finish,
        in_tokens=in_tokens,
        out_tokens=approx_tokens(text) + reasoning,
        reasoning_tokens=reasoning,
        logprobs=logprobs,
    )
