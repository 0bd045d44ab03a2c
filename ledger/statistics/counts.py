"""The counts a release is decided on, with the proportions they stand for. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AuditEvidence:
    """Audits of answers that one version served in one stage."""

    n_audits: int = 0
    n_agree: int = 0

    @property
    def precision(self) -> float | None:
        """The share of audited answers the teacher agreed with; ``None`` without audits."""
        return self.n_agree / self.n_audits if self.n_audits else None


@dataclass(frozen=True, slots=True)
class ShadowEvidence:
    """Requests that one version shadowed in one stage, beside what the live student did with the same requests."""

    n_shadow: int = 0
    n_would_serve: int = 0
    n_agree: int = 0
    n_unarbitrated: int = 0
    n_live_answered: int = 0
    n_live_served: int = 0

    @property
    def precision(self) -> float | None:
        """Agreement of the would-serve answers; one that nobody could arbitrate counts as a disagreement (INV-15)."""
        return self.n_agree / self.n_would_serve if self.n_would_serve else None

    @property
    def coverage(self) -> float | None:
        """The share of shadowed requests it would have served; ``None`` without any."""
        return self.n_would_serve / self.n_shadow if self.n_shadow else None

    @property
    def live_coverage(self) -> float | None:
        """The share the live student was confident about, of those it answered; ``None`` when it answered none."""
        return self.n_live_served / self.n_live_answered if self.n_live_answered else None
