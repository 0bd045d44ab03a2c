"""What the slim handler notes of a request before its view runs. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID


class Arrival(NamedTuple):
    """What is known of a request before its view runs. Header names are in lower case."""

    id: UUID
    at: datetime
    body: bytes
    headers: Mapping[str, str]
    client_host: str

    @classmethod
    def of(cls, scope: Mapping[str, Any], request_id: UUID, at: datetime, body: bytes) -> "Arrival":
        """Read the ASGI scope once; Django's own header mappings cost more than the rest of the request."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        return cls(request_id, at, body, headers, (scope.get("client") or ("",))[0])
