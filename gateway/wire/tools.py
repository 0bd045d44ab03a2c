"""Tool definitions, the choice among them, and tool calls in a conversation; the legacy function fields too. Pure."""

import re
from typing import Any

import orjson

from gateway.wire.checks import array, boolean, invalid_value, mapping, missing, one_of, required_text, text, wrong_type
from gateway.wire.errors import invalid_request
from gateway.wire.json_body import nesting

MAX_TOOLS = 128
MAX_SCHEMA_BYTES = 65_536
MAX_SCHEMA_NESTING = 32
"""Containers; a nested object costs two (itself and its ``properties``), so 16 levels of objects."""
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def name_of(owner: dict[str, Any], param: str) -> str:
    """Return the name of a function or schema: 1 to 64 letters, digits, underscores and dashes."""
    name = required_text(owner, "name", param)
    if not NAME.fullmatch(name):
        raise invalid_value(f"{param}.name", "use 1 to 64 letters, digits, underscores and dashes")
    return name


def schema(value: Any, param: str) -> dict[str, Any]:
    """Accept a JSON schema object of bounded size and depth."""
    mapping(value, param)
    if nesting(value) > MAX_SCHEMA_NESTING:
        raise invalid_value(param, "the schema is nested too deeply")
    if len(orjson.dumps(value)) > MAX_SCHEMA_BYTES:
        raise invalid_value(param, f"the schema is larger than {MAX_SCHEMA_BYTES} bytes")
    return value


def function(value: Any, param: str) -> dict[str, Any]:
    """Accept a function definition: name, description, parameters, strict."""
    definition = mapping(value, param)
    name_of(definition, param)
    for key, check in (("description", text), ("parameters", schema), ("strict", boolean)):
        if definition.get(key) is not None:
            check(definition[key], f"{param}.{key}")
    return definition


def tools(value: Any, param: str) -> list[dict[str, Any]]:
    """Accept the offered tools, all of type ``function``."""
    for index, tool in enumerate(array(value, param, most=MAX_TOOLS)):
        path = f"{param}[{index}]"
        _require_function_type(mapping(tool, path), path)
        if "function" not in tool:
            raise missing(f"{path}.function")
        function(tool["function"], f"{path}.function")
    return value


def functions(value: Any, param: str) -> list[dict[str, Any]]:
    """Accept legacy function definitions, returned as tools."""
    listed = array(value, param, most=MAX_TOOLS)
    return [{"type": "function", "function": function(item, f"{param}[{index}]")} for index, item in enumerate(listed)]


def tool_choice(value: Any, param: str) -> str | dict[str, Any]:
    """Accept ``none``, ``auto``, ``required`` or a named function."""
    if type(value) is str:
        return one_of(value, param, ("none", "auto", "required"))
    if type(value) is not dict:
        raise wrong_type(param, "a string or an object", value)
    _require_function_type(value, param)
    if "function" not in value:
        raise missing(f"{param}.function")
    name_of(mapping(value["function"], f"{param}.function"), f"{param}.function")
    return value


def function_call(value: Any, param: str) -> str | dict[str, Any]:
    """Accept a legacy function choice, returned as a tool choice."""
    if type(value) is str:
        return one_of(value, param, ("none", "auto"))
    if type(value) is not dict:
        raise wrong_type(param, "a string or an object", value)
    return {"type": "function", "function": {"name": name_of(value, param)}}


def require_consistent(values: dict[str, Any], *, choice_param: str) -> None:
    """Refuse a choice without tools, or of a tool that is not offered."""
    offered = values.get("tools")
    if offered is None:
        for key, param in (("tool_choice", choice_param), ("parallel_tool_calls", "parallel_tool_calls")):
            if key in values:
                raise invalid_value(param, "it is only allowed when tools are specified")
        return
    choice = values.get("tool_choice")
    if isinstance(choice, dict):
        name = choice["function"]["name"]
        if all(tool["function"]["name"] != name for tool in offered):
            raise invalid_value(choice_param, "the function is not among the offered ones")


def tool_calls(value: Any, param: str) -> list[dict[str, Any]]:
    """Accept the tool calls of an assistant turn, cut to their documented fields."""
    if type(value) is not list:
        raise wrong_type(param, "an array", value)
    return [_tool_call(call, f"{param}[{index}]") for index, call in enumerate(value)]


def _tool_call(value: Any, param: str) -> dict[str, Any]:
    call = mapping(value, param)
    call_id = required_text(call, "id", param)
    _require_function_type(call, param)
    if "function" not in call:
        raise missing(f"{param}.function")
    return {"id": call_id, "type": "function", "function": called_function(call["function"], f"{param}.function")}


def called_function(value: Any, param: str) -> dict[str, str]:
    """Accept the name and arguments of a call; the arguments are a string, whatever they hold."""
    called = mapping(value, param)
    name = required_text(called, "name", param)
    if "arguments" not in called:
        raise missing(f"{param}.arguments")
    return {"name": name, "arguments": text(called["arguments"], f"{param}.arguments")}


def _require_function_type(owner: dict[str, Any], param: str) -> None:
    kind = required_text(owner, "type", param)
    if kind != "function":
        raise invalid_request(
            f"Unsupported value for '{param}.type': only 'function' is supported.",
            code="unsupported_value",
            param=f"{param}.type",
        )
