"""The conversation of a chat request: checked, and rewritten only where models and ledger need one form. Pure.

``developer`` becomes ``system``, text parts become one string joined by newlines, and keys that a role does not use are
dropped. A plain message comes back as the same object, so equal conversations hash equally.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gateway.settings import GatewaySettings
from gateway.wire.checks import array, filled_text, mapping, missing, one_of, required_text, text, wrong_type
from gateway.wire.errors import APIError, invalid_request
from gateway.wire.parts import content_parts
from gateway.wire.tools import called_function, tool_calls

Message = dict[str, Any]

_PLAIN_ROLES = ("user", "system", "assistant")


@dataclass(slots=True)
class Conversation:
    """A checked conversation. ``n_chars`` counts everything a model would read."""

    messages: list[Message] = field(default_factory=list)
    n_chars: int = 0
    is_multimodal: bool = False
    uses_tools: bool = False
    _call_ids: set[str] = field(default_factory=set)
    _unanswered: dict[str, str] = field(default_factory=dict)

    def note_calls(self, calls: list[dict[str, Any]], param: str) -> None:
        """Remember calls that the next messages must answer."""
        self.uses_tools = True
        for index, call in enumerate(calls):
            self._call_ids.add(call["id"])
            self._unanswered[call["id"]] = f"{param}[{index}]"
            self.n_chars += len(call["function"]["name"]) + len(call["function"]["arguments"])

    def note_answer(self, call_id: str, param: str) -> None:
        """Match a tool's answer with its call."""
        if call_id not in self._call_ids:
            raise invalid_request(
                f"Invalid '{param}': a message with role 'tool' must answer a preceding tool call.",
                code="invalid_value",
                param=param,
            )
        self.uses_tools = True
        self._unanswered.pop(call_id, None)

    def require_answers(self) -> None:
        """Refuse to go on while a call is unanswered."""
        for param in self._unanswered.values():
            raise invalid_request(
                f"Invalid '{param}': a tool call must be followed by a message with role 'tool' that answers it.",
                code="invalid_value",
                param=param,
            )


def read_messages(value: Any, settings: GatewaySettings) -> Conversation:
    """Check and normalise the ``messages`` of a request. Raises ``APIError`` naming the path."""
    conversation = Conversation()
    rewritten = conversation.messages
    for index, message in enumerate(array(value, "messages", most=settings.max_messages)):
        if not (type(message) is dict and message.get("role") == "tool"):
            conversation.require_answers()
        content = message.get("content") if type(message) is dict and len(message) == 2 else None
        if type(content) is str and message.get("role") in _PLAIN_ROLES:
            conversation.n_chars += len(content)
            rewritten.append(message)
        else:
            rewritten.append(_read(message, f"messages[{index}]", conversation))
    conversation.require_answers()
    if settings.max_input_chars and conversation.n_chars > settings.max_input_chars:
        raise invalid_request(
            f"The messages are longer than {settings.max_input_chars} characters.",
            code="context_length_exceeded",
            param="messages",
        )
    return conversation


def _read(value: Any, param: str, conversation: Conversation) -> Message:
    message = mapping(value, param)
    if "role" not in message:
        raise missing(f"{param}.role")
    role = one_of(message["role"], f"{param}.role", _ROLES)
    return _ROLES[role](message, param, conversation)


def _instruction(message: Message, param: str, conversation: Conversation) -> Message:
    return _with_name(message, param, conversation, "system", _content(message, param, conversation, ("text",)))


def _user(message: Message, param: str, conversation: Conversation) -> Message:
    allowed = ("text", "image_url", "input_audio", "file")
    return _with_name(message, param, conversation, "user", _content(message, param, conversation, allowed))


def _assistant(message: Message, param: str, conversation: Conversation) -> Message:
    calls = tool_calls(message["tool_calls"], f"{param}.tool_calls") if message.get("tool_calls") is not None else []
    legacy = message.get("function_call")
    refusal = message.get("refusal")
    content = None
    if message.get("content") is not None:
        content = _content(message, param, conversation, ("text", "refusal"))
    elif not calls and legacy is None and refusal is None:
        raise _no_content(message, param)
    rewritten = _with_name(message, param, conversation, "assistant", content)
    if refusal is not None:
        rewritten["refusal"] = text(refusal, f"{param}.refusal")
        conversation.n_chars += len(refusal)
    if calls:
        rewritten["tool_calls"] = calls
        conversation.note_calls(calls, f"{param}.tool_calls")
    if legacy is not None:
        called = called_function(legacy, f"{param}.function_call")
        rewritten["function_call"] = called
        conversation.uses_tools = True
        conversation.n_chars += len(called["name"]) + len(called["arguments"])
    return rewritten


def _tool(message: Message, param: str, conversation: Conversation) -> Message:
    call_id = required_text(message, "tool_call_id", param)
    content = _content(message, param, conversation, ("text",))
    conversation.note_answer(call_id, f"{param}.tool_call_id")
    conversation.n_chars += len(call_id)
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _function(message: Message, param: str, conversation: Conversation) -> Message:
    name = required_text(message, "name", param)
    if "content" not in message:
        raise missing(f"{param}.content")
    content = message["content"]
    if content is not None:
        conversation.n_chars += len(text(content, f"{param}.content"))
    conversation.n_chars += len(name)
    conversation.uses_tools = True
    return {"role": "function", "name": name, "content": content}


def _content(message: Message, param: str, conversation: Conversation, allowed: tuple[str, ...]) -> Any:
    """Return a message's content: a string, or its parts when one of them is not text."""
    content = message.get("content")
    if type(content) is str:
        conversation.n_chars += len(content)
        return content
    if type(content) is not list:
        raise _no_content(message, param)
    joined, n_chars, is_multimodal = content_parts(content, f"{param}.content", allowed)
    conversation.n_chars += n_chars
    conversation.is_multimodal |= is_multimodal
    return joined


def _no_content(message: Message, param: str) -> APIError:
    path = f"{param}.content"
    if "content" not in message:
        return missing(path)
    return wrong_type(path, "a string or an array of content parts", message["content"])


def _with_name(message: Message, param: str, conversation: Conversation, role: str, content: Any) -> Message:
    rewritten = {"role": role, "content": content}
    if message.get("name") is not None:
        rewritten["name"] = filled_text(message["name"], f"{param}.name")
        conversation.n_chars += len(rewritten["name"])
    return rewritten


_ROLES: dict[str, Callable[[Message, str, Conversation], Message]] = {
    "system": _instruction,
    "developer": _instruction,
    "user": _user,
    "assistant": _assistant,
    "tool": _tool,
    "function": _function,
}
