"""The release rules: what the evidence about a version decides. Pure.

Each rule takes counts and numbers and returns a ``Decision``; ``release.gate`` carries it out. A new rule goes here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from ledger.statistics.counts import AuditEvidence, ShadowEvidence
from ledger.statistics.wilson import wilson
from release.golden import golden_problem, keep_disabled, summary, task_failures, too_little_left
from release.policy import CANARY_STEPS, ReleasePolicy
from release.proportions import is_below, percent

__all__ = [
    "LEGAL_MOVES",
    "AuditEvidence",
    "Decision",
    "ShadowEvidence",
    "audits_text",
    "canary_rule",
    "golden_gate",
    "keep_disabled",
    "live_alert",
    "shadow_rule",
]

State = Literal["candidate", "rejected", "shadow", "canary", "live", "retired", "rolled_back"]

LEGAL_MOVES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "candidate": frozenset({"rejected", "shadow", "canary"}),
        "shadow": frozenset({"rejected", "canary", "retired"}),
        "canary": frozenset({"canary", "live", "rolled_back", "retired"}),
        "live": frozenset({"retired"}),
        "rejected": frozenset({"canary"}),
        "retired": frozenset({"canary"}),
        "rolled_back": frozenset({"canary"}),
    }
)
"""Where a version may go from each state; the last three only by an operator's force."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a rule decided and why. ``to_state`` of ``None`` holds; ``disabled`` maps tasks to their reasons."""

    to_state: State | None
    to_pct: int
    reason: str
    disabled: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_hold(self) -> bool:
        """Whether the version stays where it is."""
        return self.to_state is None

    @property
    def is_promotion(self) -> bool:
        """Whether the version would take traffic, or more of it; what a freeze holds back."""
        return self.to_state in ("canary", "live")


def _hold(reason: str) -> Decision:
    return Decision(None, 0, reason)


def golden_gate(
    evaluation: Mapping[str, Any],
    live: Mapping[str, Any] | None,
    policy: ReleasePolicy,
    *,
    may_start_canary: bool = True,
) -> Decision:
    """Decide what becomes of a candidate from its golden evaluation and the live version's, re-scored (INV-4).

    ``live`` is ``None`` on a cold start, which goes straight to the first canary step if one may start. A missing
    number rejects: the gate fails closed. Tasks that fail on their own rows are disabled; when too little is left
    without them, the candidate is rejected.
    """
    problem = golden_problem(evaluation, live, policy)
    if problem:
        return Decision("rejected", 0, problem)
    disabled = task_failures(evaluation, live, policy)
    problem = too_little_left(evaluation, disabled, policy)
    if problem:
        return Decision("rejected", 0, problem)
    if live is not None:
        return Decision("shadow", 0, summary(evaluation), disabled)
    if not may_start_canary:
        held = "no canary may start now, so it shadows the teacher"
        return Decision("shadow", 0, f"first student; {held}; {summary(evaluation)}", disabled)
    return Decision("canary", CANARY_STEPS[0], f"first student; {summary(evaluation)}", disabled)


def shadow_rule(evidence: ShadowEvidence, policy: ReleasePolicy) -> Decision:
    """Decide on a shadow: held until ``min_shadow`` would-serve answers, then rejected or given the first traffic."""
    precision, coverage = evidence.precision, evidence.coverage
    if evidence.n_would_serve < policy.min_shadow or precision is None or coverage is None:
        return _hold(f"{evidence.n_would_serve} of {policy.min_shadow} would-serve answers")
    agreement = f"{evidence.n_agree} of {evidence.n_would_serve} would-serve answers agree ({percent(precision)})"
    if evidence.n_unarbitrated:
        agreement += f" ({evidence.n_unarbitrated} unarbitrated counted as disagreements)"
    if is_below(precision, policy.min_precision):
        return Decision("rejected", 0, f"shadow: {agreement}, below {percent(policy.min_precision)}")
    live_coverage = evidence.live_coverage
    share = f"coverage {percent(coverage)} of {evidence.n_shadow} requests"
    if live_coverage is not None:
        share += f", live {percent(live_coverage)}"
        if is_below(coverage, live_coverage - policy.tolerance):
            return Decision("rejected", 0, f"shadow: {share}: more than {percent(policy.tolerance)} less; {agreement}")
    return Decision("canary", CANARY_STEPS[0], f"shadow: {agreement}; {share}")


def canary_rule(evidence: AuditEvidence, policy: ReleasePolicy, traffic_pct: int) -> Decision:
    """Decide on a canary from the audits of its stage (Wilson, one look, no e-process).

    Rolls back only on strong evidence, the upper bound under the floor; a point estimate under the floor only holds.
    """
    precision = evidence.precision
    if evidence.n_audits < policy.min_audits or precision is None:
        return _hold(f"{evidence.n_audits} of {policy.min_audits} audits at {traffic_pct}%")
    agreement = audits_text(evidence)
    upper = wilson(evidence.n_agree, evidence.n_audits)[1]
    if upper < policy.live_floor:
        return Decision("rolled_back", 0, f"{agreement}; {_under_floor(upper, policy)}")
    if is_below(precision, policy.live_floor):
        return _hold(f"{agreement}: under the {percent(policy.live_floor)} floor, but not by strong evidence")
    steps = [step for step in CANARY_STEPS if step > traffic_pct]
    if steps:
        return Decision("canary", steps[0], f"{agreement} at {traffic_pct}%")
    return Decision("live", 100, f"{agreement} at {traffic_pct}%")


def live_alert(evidence: AuditEvidence, policy: ReleasePolicy) -> str | None:
    """Return what to alert an operator about on the live version, or ``None``. An alert moves nothing."""
    if evidence.n_audits < policy.min_audits:
        return None
    upper = wilson(evidence.n_agree, evidence.n_audits)[1]
    if upper >= policy.live_floor:
        return None
    return f"live precision: {audits_text(evidence)}; {_under_floor(upper, policy)}"


def audits_text(evidence: AuditEvidence) -> str:
    """Describe audits to an operator, e.g. ``19 of 20 audits agree (95.0%)``."""
    if evidence.precision is None:
        return "no audits"
    return f"{evidence.n_agree} of {evidence.n_audits} audits agree ({percent(evidence.precision)})"


def _under_floor(upper: float, policy: ReleasePolicy) -> str:
    return f"Wilson upper bound {percent(upper)} is under the {percent(policy.live_floor)} floor"
