"""The gateway's settings, one typed object built once from the environment and passed down. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from common.money import Price
from receipts.licences import Licence


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """An OpenAI-compatible endpoint and how patient we are with it."""

    base_url: str = ""
    api_key: str = field(default="", repr=False)
    model: str = ""
    price: Price = Price(0, 0)
    timeout_s: float = 120.0
    connect_timeout_s: float = 5.0
    retries: int = 2
    deadline_s: float = 180.0
    breaker_failures: int = 5
    breaker_cooldown_s: float = 30.0


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What serving needs to know."""

    teacher: EndpointSettings = EndpointSettings()
    teacher_licence: Licence | None = None
    declared_licences: Mapping[str, Licence] = field(default_factory=dict)
    """Teachers that the operator declared, also former ones whose answers may still train (model id, lower case)."""
    teacher_backend: str = "gateway.upstream.teacher.OpenAITeacher"
    """Dotted path of the teacher client's class; the simulator plugs its mock teacher in here."""
    student: EndpointSettings = EndpointSettings(timeout_s=15.0, connect_timeout_s=2.0, retries=0, deadline_s=20.0)
    student_backends: Mapping[str, str] = field(default_factory=dict)
    """Backend key to dotted path; adding a kind of student is one entry here (and one trainer)."""
    confidence_threshold: float = 0.80
    audit_rate: float = 0.05
    canary_audit_rate: float | None = None
    reasoning_tokens: int = 300
    golden_fraction: float = 0.10
    unknown_tasks: str = "distill"
    stores_examples: bool = True
    redacts: bool = True
    api_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    """SHA-256 of each bootstrap key to its name (INV-13)."""
    max_body_bytes: int = 1_048_576
    max_messages: int = 256
    max_input_chars: int = 120_000
    max_n: int = 4
    max_inflight: int = 256
    max_queue: int = 4096
    snapshot_poll_s: float = 0.04
    artefact_dir: str = "var/data/adapters"
    spool_dir: str = "var/spool"
    checks: str = "celery"
    """``celery``: drawn checks are settled off the path; ``inline``: at once (the simulator)."""
    check_lease_s: int = 120
    check_max_attempts: int = 5
    data_key: str = field(default="", repr=False)
    """Secret that unsettled checks are encrypted under."""
