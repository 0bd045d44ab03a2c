"""The OpenAI endpoints: parse, authorise, call ``Gateway.answer``, present."""

import re
from collections.abc import AsyncIterator, Iterator
from functools import cached_property
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from ninja import NinjaAPI

from common.ids import request_label
from gateway.access import authorise
from gateway.arrival import Arrival
from gateway.cascade.types import RequiredCallFailed
from gateway.incoming import Incoming, UnknownTask
from gateway.runtime import gateway
from gateway.serving import Gateway
from gateway.snapshot import KeyEntry, Snapshot
from gateway.upstream.base import UpstreamError
from gateway.wire.chat_request import ChatRequest, parse_chat_request
from gateway.wire.envelope import Reply, chat_completion, sse_chunks
from gateway.wire.errors import (
    APIError,
    model_not_found,
    overloaded,
    unknown_task,
    upstream_to_api_error,
)
from gateway.wire.metadata import TASK_KEY, opts_out, task_name
from ledger.vocabulary import DEFAULT_TASK
from ledger.writer.thread import QueueFull


class SlimAPI(NinjaAPI):
    """Our views return their own responses, so one unused response serves as every request's temporary one."""

    @cached_property
    def _unused(self) -> HttpResponse:
        return HttpResponse()

    def create_temporal_response(self, request: HttpRequest) -> HttpResponse:  # noqa: ARG002
        """Return the response that django-ninja makes for views that return plain values."""
        return self._unused


api = SlimAPI(
    title="Ratchet",
    version="1",
    description="OpenAI-compatible chat completions, answered by the student where the evidence allows it.",
    urls_namespace="v1",
    openapi_url=None,
    docs_url=None,
)

TASK_HEADER = "X-Ratchet-Task"
STORE_HEADER = "X-Ratchet-Store"
_CLIENT_REQUEST_ID = re.compile(r"\A[\x21-\x7e]{1,64}\Z")


def _arrival(request: HttpRequest) -> Arrival:
    arrival: Arrival = request.ratchet  # type: ignore[attr-defined]
    return arrival


@api.exception_handler(Exception)
def _pass_on(request: HttpRequest, error: Exception) -> HttpResponse:  # noqa: ARG001
    """Leave every error to the slim handler, which also answers those that happen before a view."""
    raise error


_HEADERS = {
    TASK_HEADER: "The task the request belongs to; without it, metadata.ratchet_task, else the default task.",
    STORE_HEADER: "'none', 'false' or '0' keeps the teacher's answers to this request out of training.",
}
_CHAT_DOCUMENT = {
    "parameters": [
        {"name": name, "in": "header", "required": False, "description": text, "schema": {"type": "string"}}
        for name, text in _HEADERS.items()
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["model", "messages"],
                    "description": "OpenAI's chat completion request.",
                }
            }
        },
    },
    "responses": {
        200: {"description": "OpenAI's chat.completion, or its chunks, with a ratchet block."},
        "4XX": {"description": "OpenAI's error envelope: the request, the key or a limit is at fault."},
        "5XX": {"description": "OpenAI's error envelope: the teacher or this gateway is at fault."},
    },
}


@api.post(
    "/chat/completions",
    summary="Create a chat completion",
    operation_id="createChatCompletion",
    openapi_extra=_CHAT_DOCUMENT,
)
async def chat_completions(request: HttpRequest) -> HttpResponseBase:
    """Answer an OpenAI chat request."""
    running, arrival = gateway(), _arrival(request)
    snapshot = await running.snapshots.current()
    key = authorise(arrival.headers, arrival.client_host, snapshot)
    if running.n_inflight >= running.settings.max_inflight:
        raise overloaded("Too many requests are in flight.")
    running.n_inflight += 1
    try:
        return await _complete(running, snapshot, key, arrival)
    finally:
        running.n_inflight -= 1


async def _complete(running: Gateway, snapshot: Snapshot, key: KeyEntry, arrival: Arrival) -> HttpResponseBase:
    chat = parse_chat_request(arrival.body, running.settings)
    incoming = _incoming(chat, key, arrival)
    try:
        served, row = await running.answer(incoming, snapshot)
    except UnknownTask as error:
        param = f"metadata.{TASK_KEY}" if incoming.task == chat.task else TASK_HEADER
        raise unknown_task(param, sorted(snapshot.tasks)) from error
    except QueueFull as error:
        raise overloaded("The ledger cannot keep up.") from error
    except RequiredCallFailed as error:
        raise _teacher_failed(running, error, incoming) from error
    reply = Reply(
        served=served,
        request=chat,
        request_id=row.id,
        created=int(row.at.timestamp()),
        task=row.task,
        is_stored=row.stored,
        audited="pending" if row.audit == "pending" else False,
    )
    return _present(reply)


def _present(reply: Reply) -> HttpResponseBase:
    headers = {
        "X-Ratchet-Served-By": reply.served.served_by.value,
        "X-Ratchet-Request-Id": request_label(reply.request_id),
    }
    if reply.request.stream:
        chunks = _each(sse_chunks(reply))
        headers["Cache-Control"] = "no-store"
        return StreamingHttpResponse(chunks, content_type="text/event-stream", headers=headers)
    return _json(chat_completion(reply), headers=headers)


async def _each(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def _json(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
    return HttpResponse(orjson.dumps(document), status=status, content_type="application/json", headers=headers)


def _incoming(chat: ChatRequest, key: KeyEntry, arrival: Arrival) -> Incoming:
    headers = arrival.headers
    named, wish = headers.get("x-ratchet-task"), headers.get("x-ratchet-store")
    task = task_name(named, TASK_HEADER) if named else chat.task or DEFAULT_TASK
    client_id = headers.get("x-client-request-id") or headers.get("x-request-id") or ""
    return Incoming(
        id=arrival.id,
        at=arrival.at,
        messages=chat.messages,
        params=chat.params,
        task=task,
        client=key.name,
        key_may_store=key.may_store,
        store=False if wish and opts_out(wish, STORE_HEADER) else chat.store,
        uses_tools=chat.uses_tools,
        is_multimodal=chat.is_multimodal,
        end_users=tuple(value for value in (chat.end_user, chat.secondary_end_user) if value),
        client_request_id=client_id if _CLIENT_REQUEST_ID.match(client_id) else "",
    )


def _teacher_failed(running: Gateway, error: RequiredCallFailed, incoming: Incoming) -> APIError:
    cause = error.failure.error
    known = cause if isinstance(cause, UpstreamError) else UpstreamError(error.failure.kind)
    answer = upstream_to_api_error(known)
    running.failures.refused(
        "teacher_error",
        error.failure.kind,
        at=incoming.at,
        request_id=incoming.id,
        client=incoming.client,
        task=incoming.task,
        status=known.status,
        cost_nusd=error.spent_nusd,
    )
    return answer


@api.get("/models", summary="List models", operation_id="listModels")
async def list_models(request: HttpRequest) -> HttpResponse:
    """List the name to ask for, and what answers: the teacher, and each student's serving versions."""
    return _json({"object": "list", "data": list((await _models(request)).values())})


@api.get("/models/{path:model}", summary="Retrieve a model", operation_id="retrieveModel")
async def retrieve_model(request: HttpRequest, model: str) -> HttpResponse:
    """Describe one of the listed models. Its name may hold slashes."""
    listed = (await _models(request)).get(model)
    if listed is None:
        raise model_not_found()
    return _json(listed)


async def _models(request: HttpRequest) -> dict[str, dict[str, Any]]:
    running, arrival = gateway(), _arrival(request)
    snapshot = await running.snapshots.current()
    authorise(arrival.headers, arrival.client_host, snapshot)
    owners = {"ratchet": "ratchet"}
    if running.settings.teacher.model:
        owners[running.settings.teacher.model] = "ratchet-teacher"
    for student in snapshot.students.values():
        serving = (version for version in (student.live, student.canary) if version is not None)
        owners |= {version.adapter: "ratchet-student" for version in serving}
    return {name: {"id": name, "object": "model", "created": 0, "owned_by": owner} for name, owner in owners.items()}
