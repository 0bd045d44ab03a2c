"""Reading the evidence of a stage from its tallies: one query, whose cost does not grow with the requests."""

from django.db.models import Sum

from ledger.models import StageTally
from ledger.statistics.counts import AuditEvidence, ShadowEvidence

_AUDITS = {"n_audits": "n_audits", "n_agree": "n_agree"}
_SHADOW = {
    "n_shadow": "n_shadow",
    "n_would_serve": "n_would_serve",
    "n_agree": "n_shadow_agree",
    "n_unarbitrated": "n_unarbitrated",
    "n_live_answered": "n_live_answered",
    "n_live_served": "n_live_served",
}


def audit_evidence(version_id: int, stage: int) -> AuditEvidence:
    """Return the settled audits of what the version served in this stage, over all tasks."""
    return AuditEvidence(**_sums(version_id, stage, _AUDITS))


def shadow_evidence(version_id: int, stage: int) -> ShadowEvidence:
    """Return the settled shadow runs of the version in this stage, over all tasks."""
    return ShadowEvidence(**_sums(version_id, stage, _SHADOW))


def _sums(version_id: int, stage: int, columns: dict[str, str]) -> dict[str, int]:
    sums = StageTally.objects.filter(version_id=version_id, stage=stage).aggregate(
        **{f"sum_{name}": Sum(column, default=0) for name, column in columns.items()}
    )
    return {name: int(sums[f"sum_{name}"]) for name in columns}
