"""Which of the client's generation parameters each model gets."""

from collections.abc import Mapping
from typing import Any

from gateway.cascade.types import Params

STUDENT_FIELDS = frozenset({"max_tokens", "stop", "seed", "response_format", "logit_bias"})
SAMPLING_FIELDS = frozenset(
    {"temperature", "top_p", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs"}
)
CONDITION_FIELDS = ("response_format", "stop", "tools", "tool_choice")
STUDENT_MAX_TOKENS = 1024
TEACHER_MAX_TOKENS = 8192
CHOICES_TEMPERATURE = 0.7


def student_params(params: Params) -> dict[str, Any]:
    """The student's: never the client's temperature, n or logprobs, since the threshold was calibrated without them."""
    chosen = {name: value for name, value in params.values.items() if name in STUDENT_FIELDS}
    chosen["max_tokens"] = min(chosen.get("max_tokens", STUDENT_MAX_TOKENS), STUDENT_MAX_TOKENS)
    return chosen


def teacher_params(params: Params) -> dict[str, Any]:
    """The serving teacher's: everything the client sent, under our output cap."""
    chosen = {name: value for name, value in params.values.items() if name != "temperature"}
    chosen["max_tokens"] = min(chosen.get("max_tokens", TEACHER_MAX_TOKENS), TEACHER_MAX_TOKENS)
    return chosen


def teacher_temperature(params: Params) -> float:
    """The client's temperature, or 0; or 0.7 for several choices, which would otherwise be equal."""
    temperature = params.values.get("temperature")
    if temperature is not None:
        return float(temperature)
    return CHOICES_TEMPERATURE if params.n > 1 else 0.0


def audit_params(params: Params) -> dict[str, Any]:
    """The audit's and arbitration's: one deterministic answer, without anything that lets the client choose it."""
    chosen = {name: value for name, value in teacher_params(params).items() if name not in SAMPLING_FIELDS}
    chosen["max_tokens"] = TEACHER_MAX_TOKENS if "max_tokens" not in params.values else chosen["max_tokens"]
    return chosen


def conditions(params: Params) -> dict[str, Any] | None:
    """The conditions that define the target and are stored with an example; ``None`` when there are none."""
    chosen = {name: params.values[name] for name in CONDITION_FIELDS if name in params.values}
    return chosen or None


def label_altering(values: Mapping[str, Any]) -> str | None:
    """Name the parameter that lets the client choose the answer, so that it must not become a label; or ``None``."""
    if values.get("logit_bias"):
        return "client logit_bias"
    for name in ("presence_penalty", "frequency_penalty"):
        if values.get(name):
            return f"client {name}"
    if (values.get("temperature") or 0) > 1:
        return "client temperature"
    return None


def is_deterministic(params: Params) -> bool:
    """Whether the serving teacher answered as an audit would: one choice, temperature 0, no sampling parameters."""
    return params.n == 1 and not any(params.values.get(name) for name in SAMPLING_FIELDS - {"logprobs", "top_logprobs"})
