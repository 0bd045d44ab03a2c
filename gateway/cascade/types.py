"""The values the cascade works on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import exp, fsum
from typing import Any, Protocol

from common.money import Price
from ledger.taskspec import TaskSpec

Message = Mapping[str, Any]
SERVE_NOTHING = 1.01


class Role(StrEnum):
    """Who is called."""

    STUDENT = "student"
    TEACHER = "teacher"


class Purpose(StrEnum):
    """Why a call is made; also the origin of an example stored from it."""

    SAMPLE = "sample"
    SHADOW = "shadow"
    COLD_START = "cold_start"
    ESCALATION = "escalation"
    PINNED = "pinned"
    AUDIT = "audit"
    ARBITRATION = "arbitration"


class Route(StrEnum):
    """How a request was served (``requests.route``)."""

    STUDENT = "student"
    CONFIDENCE = "confidence"
    COLD_START = "cold_start"
    PINNED = "pinned"
    TOOLS = "tools"
    MULTIMODAL = "multimodal"
    UNKNOWN_TASK = "unknown_task"
    STUDENT_DISABLED = "student_disabled"
    TASK_DISABLED = "task_disabled"
    STUDENT_ERROR = "student_error"
    STUDENT_BREAKER = "student_breaker"
    N_CHOICES = "n_choices"


TEACHER_ONLY_ROUTES = frozenset({Route.PINNED, Route.TOOLS, Route.MULTIMODAL, Route.UNKNOWN_TASK})


@dataclass(slots=True)
class Completion:
    """One choice of a model's answer. ``logprobs`` are the natural-log token probabilities, when reported."""

    text: str
    finish_reason: str = "stop"
    in_tokens: int = 0
    out_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    logprobs: Sequence[float] | None = None
    tool_calls: list[dict[str, Any]] | None = None
    refusal: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the model ended by itself, rather than being cut off."""
        return self.finish_reason in ("stop", "tool_calls")

    @property
    def mean_probability(self) -> float | None:
        """The geometric mean of its token probabilities."""
        return exp(fsum(self.logprobs) / len(self.logprobs)) if self.logprobs else None


@dataclass(frozen=True, slots=True)
class Params:
    """The client's generation parameters, as validated; unset ones are absent."""

    values: Mapping[str, Any] = field(default_factory=dict)
    n: int = 1

    @property
    def uses_tools(self) -> bool:
        """Whether tools are offered."""
        return bool(self.values.get("tools"))


@dataclass(frozen=True, slots=True)
class VersionRoute:
    """What serving needs to know of one version: who samples it and the thresholds its answers are held to."""

    id: int
    number: int
    adapter: str
    stage: int
    threshold: float
    task_thresholds: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    artefact: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""

    def threshold_for(self, task: TaskSpec) -> float:
        """Return the confidence an answer to ``task`` needs; a record made under another spec serves nothing."""
        record = self.task_thresholds.get(task.name)
        if record is None:
            return self.threshold
        spec_hash, threshold = record
        return threshold if spec_hash == task.spec_hash else SERVE_NOTHING


@dataclass(frozen=True, slots=True)
class StudentRoute:
    """One student's routing state at a moment: its live, canary and shadow versions."""

    id: int
    name: str
    backend: str
    base_model: str
    samples: int = 3
    temperature: float = 0.7
    endpoints: tuple[str, ...] = ()
    live: VersionRoute | None = None
    canary: VersionRoute | None = None
    canary_pct: int = 0
    shadow: VersionRoute | None = None


@dataclass(frozen=True, slots=True)
class CascadePolicy:
    """The settings that decide a request's way."""

    audit_rate: float = 0.05
    canary_audit_rate: float | None = None
    reasoning_tokens: int = 300
    teacher_price: Price = Price(0, 0)
    student_price: Price = Price(0, 0)
    teacher_model: str = "teacher"
    is_student_disabled: bool = False


@dataclass(frozen=True, slots=True)
class CascadeRequest:
    """A validated request on its way through the cascade."""

    task: TaskSpec
    student: StudentRoute
    messages: Sequence[Message]
    params: Params = Params()
    teacher_only: Route | None = None
    """Set when the teacher alone may answer: nothing is stored, no student sees the request (INV-10)."""


@dataclass(frozen=True, slots=True)
class Call:
    """A model call the cascade asks its driver to make."""

    role: Role
    purpose: Purpose
    messages: Sequence[Message]
    n: int
    params: Mapping[str, Any]
    temperature: float | None
    student: StudentRoute
    task: TaskSpec
    version: VersionRoute | None = None


@dataclass(slots=True)
class Answer:
    """The outcome of a call that succeeded."""

    completions: list[Completion]
    latency_ms: float = 0.0
    model: str = ""


@dataclass(frozen=True, slots=True)
class CallFailed:
    """The outcome of a call that failed. ``kind`` is the error's class and status, never a message.

    ``spent`` are the choices of an answer that came, cannot be used and is billed all the same.
    """

    kind: str
    is_breaker_open: bool = False
    error: Exception | None = None
    spent: Sequence[Completion] = ()


Outcome = Answer | CallFailed


class Draws(Protocol):
    """The injected generator of random draws (``random.Random`` is one)."""

    def random(self) -> float:
        """Return the next number in [0, 1)."""
        ...


class RequiredCallFailed(Exception):
    """The call whose answer the request needed failed; nothing else may fail a request (INV-7)."""

    def __init__(self, failure: CallFailed, spent_nusd: int, earlier: Sequence[CallFailed] = ()) -> None:
        super().__init__(failure.kind)
        self.failure = failure
        self.spent_nusd = spent_nusd
        self.earlier = earlier
        """The optional calls that had failed before."""
