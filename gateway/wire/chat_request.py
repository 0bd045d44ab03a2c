"""A chat request as the gateway understands it, parsed and validated from the body. Pure."""

from dataclasses import dataclass
from typing import Any

from gateway.cascade.types import Params
from gateway.settings import GatewaySettings
from gateway.wire.checks import boolean, invalid_value, mapping, missing, one_of, required_text
from gateway.wire.json_body import parse_object
from gateway.wire.messages import Message, read_messages
from gateway.wire.metadata import read_end_users, read_metadata, read_store, read_task
from gateway.wire.parameters import CHECKS, read_n, require_consistent

SERVICE_TIERS = ("auto", "default", "flex", "scale", "priority", "fast")
OTHER_FIELDS = frozenset(
    {
        *("model", "messages", "n", "stream", "stream_options"),
        *("user", "safety_identifier", "store", "metadata", "service_tier"),
    }
)


@dataclass(slots=True)
class ChatRequest:
    """A valid request.

    ``messages`` are normalised, ``params`` hold what may be sent to a model, ``store`` is ``False`` for an opt-out,
    ``end_user`` and ``secondary_end_user`` are raw identifiers to hash at once (INV-23), ``extra`` names the fields
    we do not know, which go nowhere.
    """

    model: str
    messages: list[Message]
    params: Params
    stream: bool
    include_usage: bool
    task: str | None
    is_multimodal: bool
    uses_tools: bool
    uses_legacy_functions: bool
    end_user: str | None
    secondary_end_user: str | None
    store: bool | None
    metadata: dict[str, str]
    extra: tuple[str, ...]


def parse_chat_request(body: bytes, settings: GatewaySettings) -> ChatRequest:
    """Parse the body of ``POST /v1/chat/completions``.

    Raises ``APIError`` 400 with OpenAI's code and the path of the field at fault, and nothing else, whatever the bytes.
    """
    document = parse_object(body)
    if "messages" not in document:
        raise missing("messages")
    conversation = read_messages(document["messages"], settings)
    model = required_text(document, "model", "")
    values, extra = _read_values(document)
    uses_legacy_functions = "functions" in values
    require_consistent(values)
    stream, include_usage = _read_stream(document)
    metadata = read_metadata(document["metadata"]) if document.get("metadata") is not None else {}
    if document.get("service_tier") is not None:
        one_of(document["service_tier"], "service_tier", SERVICE_TIERS)
    end_user, secondary_end_user = read_end_users(document)
    return ChatRequest(
        model=model,
        messages=conversation.messages,
        params=Params(values, read_n(document["n"], settings) if document.get("n") is not None else 1),
        stream=stream,
        include_usage=include_usage,
        task=read_task(metadata),
        is_multimodal=conversation.is_multimodal,
        uses_tools=conversation.uses_tools or "tools" in values,
        uses_legacy_functions=uses_legacy_functions,
        end_user=end_user,
        secondary_end_user=secondary_end_user,
        store=read_store(document, metadata),
        metadata=metadata,
        extra=extra,
    )


def _read_values(document: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the checked generation parameters, unset ones absent, and the names of unknown fields."""
    values: dict[str, Any] = {}
    extra = []
    for name, value in document.items():
        if name in OTHER_FIELDS:
            continue
        check = CHECKS.get(name)
        if check is None:
            extra.append(name)
        elif value is not None and (checked := check(value, name)) is not None:
            values[name] = checked
    return values, tuple(extra)


def _read_stream(document: dict[str, Any]) -> tuple[bool, bool]:
    """Return whether to stream, and whether the stream ends with its usage."""
    stream = document.get("stream") is not None and boolean(document["stream"], "stream")
    options = document.get("stream_options")
    if options is None:
        return stream, False
    wish = mapping(options, "stream_options").get("include_usage")
    if not stream:
        raise invalid_value("stream_options", "it is only allowed when stream is true")
    return stream, wish is not None and boolean(wish, "stream_options.include_usage")
