"""The numbers that a release is held to. Pure."""

from dataclasses import dataclass, fields, replace
from typing import Any

CANARY_STEPS = (10, 50)


@dataclass(frozen=True, slots=True)
class ReleasePolicy:
    """Thresholds of the golden gate, the shadow and the canary."""

    min_precision: float = 0.95
    min_coverage: float = 0.25
    tolerance: float = 0.02
    min_shadow: int = 100
    min_audits: int = 20
    live_floor: float = 0.92
    min_task_test_n: int = 10

    def __post_init__(self) -> None:
        for name in ("min_precision", "min_coverage", "tolerance"):
            self._require(name, 0.0 <= getattr(self, name) <= 1.0, "a number from 0 to 1")
        self._require("live_floor", 0.0 < self.live_floor < 1.0, "a number between 0 and 1, exclusive")
        for name in ("min_shadow", "min_audits", "min_task_test_n"):
            value = getattr(self, name)
            self._require(name, isinstance(value, int) and not isinstance(value, bool) and value >= 1, "1 or more")

    def _require(self, name: str, holds: bool, must: str) -> None:
        if not holds:
            raise ValueError(f"RATCHET_{name.upper()}: must be {must}")

    def with_overrides(self, overrides: dict[str, Any]) -> "ReleasePolicy":
        """Return the policy with a student's own values; raises ``ValueError`` naming an unknown or bad one."""
        known = {field.name for field in fields(self)}
        unknown = sorted(set(overrides) - known)
        if unknown:
            raise ValueError(f"unknown release policy {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        for name, value in overrides.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"RATCHET_{name.upper()}: must be a number")
        return replace(self, **overrides)
