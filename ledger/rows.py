"""Plain rows that the request path hands to the ledger writer. Pure: no Django, so the cascade can make them."""

from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any
from uuid import UUID


@dataclass(slots=True)
class RequestRow:
    """One served request; field names are the columns of ``ledger.models.Request`` (a test compares them)."""

    id: UUID
    at: datetime
    on: date
    student_id: int
    task: str
    route: str
    served_by: str
    client: str = ""
    version_id: int | None = None
    stage: int | None = None
    confidence: float | None = None
    threshold: float | None = None
    label_p: float | None = None
    escalated: bool = False
    audit: str = "none"
    shadow: str = "none"
    shadow_version_id: int | None = None
    shadow_stage: int | None = None
    student_agree: bool | None = None
    cost_nusd: int = 0
    student_cost_nusd: int = 0
    teacher_cost_nusd: int = 0
    baseline_nusd: int = 0
    baseline_est_nusd: int | None = None
    student_in_tokens: int = 0
    student_out_tokens: int = 0
    teacher_in_tokens: int = 0
    teacher_out_tokens: int = 0
    latency_ms: float = 0.0
    wall_ms: float = 0.0
    stored: bool = False
    store_opt_out: str = ""
    end_user: str = ""
    client_request_id: str = ""


@dataclass(slots=True)
class ExampleRow:
    """A teacher answer on its way to becoming, or counting toward, an example. Already redacted."""

    hash: str
    prompt_hash: str
    task: str
    messages: list[dict[str, Any]]
    completion: str
    params: dict[str, Any] | None
    teacher_model: str
    licence: str
    licence_url: str
    split: str
    redactions: int
    origin: str
    client: str
    end_user: str
    at: datetime


@dataclass(slots=True)
class CheckRow:
    """An audit or shadow that is owed on a request; ``payload`` is encrypted, None when storage is opted out."""

    wants_audit: bool
    version_id: int | None
    shadow_version_id: int | None
    payload: bytes | None
    holder: str = ""


@dataclass(slots=True)
class LedgerEntry:
    """Everything one request writes, in one transaction."""

    request: RequestRow
    examples: list[ExampleRow]
    check: CheckRow | None = None


REQUEST_COLUMNS = tuple(field.name for field in fields(RequestRow))
EXAMPLE_COLUMNS = tuple(field.name for field in fields(ExampleRow) if field.name != "at")
