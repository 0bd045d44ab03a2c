"""Token counts: what an answer reports, how it is shared among its choices, and what is estimated instead. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from gateway.cascade.types import Completion, Message

CHARS_PER_TOKEN = 4
MAX_TOKENS = 10**9


class Usage(NamedTuple):
    """The counts of one call; 0 stands for a count that is missing or junk."""

    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    cached: int = 0


def read_usage(document: Any) -> Usage:
    """Read an OpenAI ``usage`` object; whatever is not a plausible count is 0."""
    if not isinstance(document, dict):
        return Usage()
    return Usage(
        prompt=_count(document, "prompt_tokens"),
        completion=_count(document, "completion_tokens"),
        reasoning=_count(document.get("completion_tokens_details"), "reasoning_tokens"),
        cached=_count(document.get("prompt_tokens_details"), "cached_tokens"),
    )


def share_usage(usage: Usage, choices: Sequence[Completion], messages: Sequence[Message]) -> None:
    """Write ``usage`` into the choices of one call.

    Every choice carries the prompt, which a bill counts once. Output tokens add up to the reported total: as many as a
    choice has log-probabilities, in proportion when those do not add up, evenly when a choice has none. Counts that
    were not reported are estimated at four characters a token. Details never exceed their totals.
    """
    prompt = usage.prompt or estimated_tokens(_dumped(messages))
    outputs = _outputs(usage.completion, choices)
    reasoning = split_evenly(usage.reasoning, len(choices))
    for choice, out_tokens, reasoning_tokens in zip(choices, outputs, reasoning, strict=True):
        choice.in_tokens = prompt
        choice.cached_tokens = min(usage.cached, prompt)
        choice.out_tokens = out_tokens
        choice.reasoning_tokens = min(reasoning_tokens, out_tokens)


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of ``text``, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def split_evenly(total: int, n: int) -> list[int]:
    """Split ``total`` into ``n`` parts that differ by at most one, the larger ones first."""
    share, rest = divmod(total, n)
    return [share + (index < rest) for index in range(n)]


def split_in_proportion(total: int, weights: Sequence[int]) -> list[int]:
    """Split ``total`` in proportion to positive ``weights``, exactly (largest remainder, the first of equals)."""
    whole = sum(weights)
    parts = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda index: -(total * weights[index] % whole))
    for index in by_remainder[: total - sum(parts)]:
        parts[index] += 1
    return parts


def _outputs(total: int, choices: Sequence[Completion]) -> list[int]:
    if len(choices) == 1 and total:
        return [total]
    counts = [len(choice.logprobs or ()) for choice in choices]
    if not total:
        return [count or _estimated_output(choice) for count, choice in zip(counts, choices, strict=True)]
    return split_in_proportion(total, counts) if all(counts) else split_evenly(total, len(choices))


def _estimated_output(choice: Completion) -> int:
    calls = _dumped(choice.tool_calls) if choice.tool_calls else ""
    return estimated_tokens(choice.text + calls)


def _dumped(value: Any) -> str:
    return orjson.dumps(value, default=dict).decode()


def _count(document: Mapping[str, Any] | Any, name: str) -> int:
    value = document.get(name) if isinstance(document, dict) else None
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else 0
