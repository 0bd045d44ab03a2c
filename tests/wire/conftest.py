"""Builders for wire tests: bodies, parsed requests, served answers."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import orjson
import pytest

from gateway.cascade.bill import Bill
from gateway.cascade.confidence import Scored
from gateway.cascade.serve import Served
from gateway.cascade.types import Completion, Role, Route, VersionRoute
from gateway.settings import GatewaySettings
from gateway.wire.chat_request import ChatRequest, parse_chat_request
from gateway.wire.envelope import Reply
from gateway.wire.errors import APIError

SETTINGS = GatewaySettings()
REQUEST_ID = UUID("0198c0de-0000-7000-8000-0000000000aa")


def body(**fields: Any) -> dict[str, Any]:
    """A valid request document with ``fields`` set; a field set to ``...`` is left out."""
    document = {"model": "ratchet", "messages": [{"role": "user", "content": "hi"}], **fields}
    return {name: value for name, value in document.items() if value is not ...}


def parse(settings: GatewaySettings = SETTINGS, **fields: Any) -> ChatRequest:
    """Parse a valid request document with ``fields`` set."""
    return parse_chat_request(orjson.dumps(body(**fields)), settings)


def refusal(raw: bytes | None = None, settings: GatewaySettings = SETTINGS, **fields: Any) -> APIError:
    """Return the error that a request gets."""
    with pytest.raises(APIError) as caught:
        parse_chat_request(orjson.dumps(body(**fields)) if raw is None else raw, settings)
    return caught.value


@pytest.fixture
def make_reply() -> Callable[..., Reply]:
    """Return a builder of replies: choices, request fields, and who served."""

    def build(
        choices: list[Completion],
        *,
        student: bool = True,
        is_stored: bool = False,
        audited: str | bool = False,
        **asked: Any,
    ) -> Reply:
        version = VersionRoute(id=1, number=4, adapter="student-v4", stage=2, threshold=0.7, fingerprint="fp_v4")
        bill = Bill(student_cost_nusd=1_200, baseline_nusd=90_000)
        served = Served(
            Route.STUDENT if student else Route.CONFIDENCE,
            Role.STUDENT if student else Role.TEACHER,
            choices,
            bill,
            model="student-v4" if student else "open/teacher",
            version=version,
            scored=Scored(confidence=0.93, agreement=1.0, is_valid=True),
            is_student_sampled=True,
            threshold=0.7,
        )
        return Reply(served, parse(**asked), REQUEST_ID, 1_790_000_000, "tickets", is_stored, audited)

    return build
