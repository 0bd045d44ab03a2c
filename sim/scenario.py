"""What one simulation runs with, and the settings of the services that it stands for."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from common.money import Price, usd_to_nusd
from gateway.settings import EndpointSettings, GatewaySettings
from nightschool.settings import NightSettings
from receipts.licences import APACHE_2
from release.policy import ReleasePolicy
from sim.mock_teacher import MODEL, REASONING_TOKENS

FIRST_DAY = datetime(2001, 1, 1, tzinfo=UTC)
"""Day 1 on the simulation's own clock; far from today, so that nobody takes its rows for real ones."""
BACKEND = "mock"
TICKS_A_DAY = 10
WORKLOADS = ("tickets",)

_TEACHER_PRICE = Price(usd_to_nusd("1"), usd_to_nusd("3"))
_STUDENT_PRICE = Price(usd_to_nusd("0.06"), usd_to_nusd("0.24"))


@dataclass(frozen=True, slots=True)
class Scenario:
    """The inputs of a simulation. Raises ``ValueError`` naming the option that is out of range."""

    days: int = 8
    requests: int = 2000
    threshold: float = 0.80
    audit_rate: float = 0.10
    min_shadow: int = 100
    min_audits: int = 15
    min_new: int = 50
    drift_day: int = 5
    bad_deploy_version: int = 0
    workload: str = "tickets"

    def __post_init__(self) -> None:
        for name in ("days", "requests", "min_shadow", "min_audits", "min_new"):
            _require(name, getattr(self, name) >= 1, "1 or more")
        for name in ("drift_day", "bad_deploy_version"):
            _require(name, getattr(self, name) >= 0, "0 or more")
        for name in ("threshold", "audit_rate"):
            _require(name, 0.0 <= getattr(self, name) <= 1.0, "a number from 0 to 1")
        _require("workload", self.workload in WORKLOADS, f"one of {', '.join(WORKLOADS)}")

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs by name, as results record them."""
        return asdict(self)

    def has_launched(self, day: int) -> bool:
        """Whether the new product is out on ``day``."""
        return 0 < self.drift_day <= day

    def gateway(self, folder: str) -> GatewaySettings:
        """Return the gateway's settings: mock models, checks inline, artefacts under ``folder``."""
        return GatewaySettings(
            teacher=EndpointSettings(model=MODEL, price=_TEACHER_PRICE),
            teacher_licence=APACHE_2,
            teacher_backend="sim.mock_teacher.MockTeacher",
            student=EndpointSettings(price=_STUDENT_PRICE),
            student_backends={BACKEND: "sim.mock_students.MockStudents"},
            confidence_threshold=self.threshold,
            audit_rate=self.audit_rate,
            reasoning_tokens=REASONING_TOKENS,
            artefact_dir=folder,
            spool_dir=folder,
            checks="inline",
        )

    def nights(self, folder: str) -> NightSettings:
        """Return Night School's settings with the mock trainer."""
        return NightSettings(
            min_new_examples=self.min_new, data_dir=folder, trainers={BACKEND: "sim.mock_trainer.MockTrainer"}
        )

    def policy(self) -> ReleasePolicy:
        """Return the release policy."""
        return ReleasePolicy(min_shadow=self.min_shadow, min_audits=self.min_audits)


def _require(name: str, holds: bool, must: str) -> None:
    if not holds:
        raise ValueError(f"--{name.replace('_', '-')}: must be {must}")
