"""The generation parameters of a chat request: one check a field, then the rules between fields. Pure."""

from collections.abc import Mapping
from typing import Any

from gateway.settings import GatewaySettings
from gateway.wire import tools
from gateway.wire.checks import (
    INT64,
    Check,
    array,
    boolean,
    filled_text,
    integer,
    invalid_value,
    mapping,
    missing,
    number,
    one_of,
    text,
    wrong_type,
)
from gateway.wire.errors import invalid_request

MAX_STOPS = 4
MAX_BIASES = 1024

_bias = number(-100, 100)


def stop(value: Any, param: str) -> list[str]:
    """Accept a stop string or 1 to 4 of them; returned as a list."""
    if type(value) is str:
        return [filled_text(value, param)]
    if type(value) is not list:
        raise wrong_type(param, "a string or an array of strings", value)
    return [filled_text(item, f"{param}[{index}]") for index, item in enumerate(array(value, param, most=MAX_STOPS))]


def logit_bias(value: Any, param: str) -> dict[str, float]:
    """Accept token ids mapped to biases from -100 to 100."""
    biases = mapping(value, param)
    if len(biases) > MAX_BIASES:
        raise invalid_value(param, f"give at most {MAX_BIASES} tokens")
    for token, bias in biases.items():
        if not (token.isascii() and token.isdigit() and len(token) <= 10):
            raise invalid_value(param, "keys must be token ids")
        _bias(bias, f"{param}.{token}")
    return biases


def response_format(value: Any, param: str) -> dict[str, Any] | None:
    """Accept a response format; plain text is the default and the same as none."""
    chosen = mapping(value, param)
    if "type" not in chosen:
        raise missing(f"{param}.type")
    kind = one_of(chosen["type"], f"{param}.type", ("text", "json_object", "json_schema"))
    if kind == "json_schema":
        _json_schema(chosen, param)
    return None if kind == "text" else chosen


def _json_schema(chosen: dict[str, Any], param: str) -> None:
    path = f"{param}.json_schema"
    if "json_schema" not in chosen:
        raise missing(path)
    wrapper = mapping(chosen["json_schema"], path)
    tools.name_of(wrapper, path)
    for key, check in (("description", text), ("schema", tools.schema), ("strict", boolean)):
        if wrapper.get(key) is not None:
            check(wrapper[key], f"{path}.{key}")


CHECKS: Mapping[str, Check] = {
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "max_tokens": integer(1, INT64 - 1),
    "max_completion_tokens": integer(1, INT64 - 1),
    "stop": stop,
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "seed": integer(-INT64, INT64 - 1),
    "logit_bias": logit_bias,
    "logprobs": boolean,
    "top_logprobs": integer(0, 20),
    "response_format": response_format,
    "tools": tools.tools,
    "tool_choice": tools.tool_choice,
    "functions": tools.functions,
    "function_call": tools.function_call,
    "parallel_tool_calls": boolean,
}


def read_n(value: Any, settings: GatewaySettings) -> int:
    """Check the number of choices against the configured most."""
    n: int = integer(1, INT64)(value, "n")
    if n > settings.max_n:
        raise invalid_request(
            f"Unsupported value for 'n': at most {settings.max_n} choices are supported.",
            code="unsupported_value",
            param="n",
        )
    return n


def require_consistent(values: dict[str, Any]) -> None:
    """Apply the rules between parameters, merging each legacy name into the current one, in place."""
    _merge_max_tokens(values)
    if "top_logprobs" in values and not values.get("logprobs"):
        raise invalid_value("top_logprobs", "it is only allowed when logprobs is true")
    choice_param = _merge_functions(values)
    tools.require_consistent(values, choice_param=choice_param)


def _merge_max_tokens(values: dict[str, Any]) -> None:
    newer = values.pop("max_completion_tokens", None)
    if newer is None:
        return
    if values.setdefault("max_tokens", newer) != newer:
        raise invalid_value("max_tokens", "it differs from max_completion_tokens; set only one")


def _merge_functions(values: dict[str, Any]) -> str:
    """Turn ``functions`` and ``function_call`` into tools; return the name of the choice's field."""
    choice_param = "tool_choice"
    for legacy, current in (("functions", "tools"), ("function_call", "tool_choice")):
        if legacy not in values:
            continue
        if current in values:
            raise invalid_value(legacy, f"it cannot be used together with {current}")
        values[current] = values.pop(legacy)
        choice_param = "function_call"
    return choice_param
