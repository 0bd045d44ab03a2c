"""What a page shows of a version's evidence: the stage's counts, their intervals, and what the gate would say now."""

from dataclasses import dataclass
from typing import Any

from common.errors import RatchetError
from ledger.evidence import audit_evidence, shadow_evidence
from ledger.models import StageTally, Task, Version
from ledger.statistics.counts import AuditEvidence, ShadowEvidence
from ledger.statistics.wilson import wilson
from ledger.vocabulary import IN_FLIGHT, VersionState
from release.gate import decide, policy_of
from release.golden import task_records
from release.policy import ReleasePolicy

ENDED = (VersionState.REJECTED, VersionState.RETIRED, VersionState.ROLLED_BACK)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of one stage of a version: its current one, or the one that its release ended in."""

    stage: int
    audits: AuditEvidence
    interval: tuple[float, float] | None
    """Wilson 95% interval of the audited agreement; ``None`` without audits."""
    shadow: ShadowEvidence
    policy: ReleasePolicy | None
    says: str
    """What the gate would decide on it now, or why it cannot."""


def evidence_of(version: Version, default_policy: ReleasePolicy) -> Evidence:
    """Read a version's evidence. ``version.student`` should be loaded."""
    stage = version.stage - 1 if version.state in ENDED and version.stage else version.stage
    audits = audit_evidence(version.pk, stage)
    policy, says = None, ""
    try:
        policy = policy_of(version.student, default_policy)
        if version.state in IN_FLIGHT:
            decision = decide(version, policy)
            verb = "hold" if decision.to_state is None else f"{decision.to_state} {decision.to_pct or ''}".strip()
            says = f"{verb}: {decision.reason}"
    except RatchetError as error:
        says = str(error)
    return Evidence(
        stage=stage,
        audits=audits,
        interval=wilson(audits.n_agree, audits.n_audits) if audits.n_audits else None,
        shadow=shadow_evidence(version.pk, stage),
        policy=policy,
        says=says,
    )


def stage_rows(version: Version) -> list[StageTally]:
    """Return the tallies of every stage and task of a version, newest stage first."""
    return list(StageTally.objects.filter(version=version).order_by("-stage", "task"))


def golden_rows(version: Version) -> list[dict[str, Any]]:
    """Return the per-task golden records, each with what they mean for serving today (``serving``)."""
    hashes = dict(Task.objects.filter(student=version.student_id).values_list("name", "spec_hash"))
    return [
        {"name": name, "serving": _serving(record, hashes.get(name)), **record}
        for name, record in sorted(task_records(version.evaluation).items())
    ]


def _serving(record: Any, spec_hash: str | None) -> str:
    if record.get("disabled"):
        return f"stays with the teacher: {record['disabled']}"
    if spec_hash is None:
        return "task is gone"
    if record.get("spec_hash") != spec_hash:
        return "stays with the teacher: its spec changed since"
    threshold = record.get("threshold")
    if not isinstance(threshold, int | float) or threshold > 1:
        return "stays with the teacher: no threshold is good enough"
    return "served"
