"""Routing snapshots: everything the request path reads, immutable, rebuilt only when the state epoch moved.

Reading the epoch before the rows makes a snapshot safe against a change in between: the epoch has then moved again, and
the next look rebuilds it.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from common.canonical import sha256_hex
from gateway.cascade.types import SERVE_NOTHING, CascadePolicy, StudentRoute, VersionRoute
from gateway.settings import GatewaySettings
from ledger.models import ApiKey, NoTrain, StateEpoch, Student, Task, Version
from ledger.switches import Switches, read_switches
from ledger.taskspec import TaskSpec, parse_spec
from ledger.vocabulary import DEFAULT_STUDENT, VersionState

log = logging.getLogger("ratchet.snapshot")

ROUTED_STATES = [VersionState.LIVE, VersionState.CANARY, VersionState.SHADOW]


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """What an API key may do."""

    name: str
    may_store: bool = True


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The routing state at one epoch."""

    epoch: int
    students: Mapping[int, StudentRoute]
    tasks: Mapping[str, tuple[TaskSpec, int]]
    """Task name to its spec (runtime pins included) and the id of its student."""
    default_student_id: int
    policy: CascadePolicy
    keys: Mapping[str, KeyEntry | None] = field(repr=False)
    """SHA-256 of a key to what it may do; a revoked key to ``None``, so that revoking the last one opens nothing."""
    no_train: frozenset[tuple[str, str]] = frozenset()


def read_epoch() -> int:
    """Return the current state epoch (one indexed read)."""
    return StateEpoch.objects.values_list("value", flat=True).get(pk=1)


def build_snapshot(settings: GatewaySettings) -> Snapshot:
    """Read the routing state from the database."""
    epoch = read_epoch()
    versions: dict[int, list[Version]] = {}
    for version in Version.objects.filter(state__in=ROUTED_STATES):
        versions.setdefault(version.student_id, []).append(version)
    students = {
        student.pk: student_route(student, versions.get(student.pk, ()), settings.confidence_threshold)
        for student in Student.objects.all()
    }
    tasks = {task.name: (task_spec(task), task.student_id) for task in Task.objects.all()}
    keys: dict[str, KeyEntry | None] = {digest: KeyEntry(name) for digest, name in settings.api_keys.items()}
    for key in ApiKey.objects.all():
        keys[key.key_sha256] = None if key.is_revoked else KeyEntry(key.name, key.may_store)
    return Snapshot(
        epoch=epoch,
        students=students,
        tasks=tasks,
        default_student_id=next(pk for pk, student in students.items() if student.name == DEFAULT_STUDENT),
        policy=cascade_policy(settings, read_switches()),
        keys=keys,
        no_train=frozenset(NoTrain.objects.values_list("client", "end_user")),
    )


def task_spec(task: Task) -> TaskSpec:
    """Return a task's spec; a runtime pin pins it without changing its spec hash.

    A spec that this code cannot read leaves the task to the teacher, without storing: one bad row must not keep
    everyone's switches, rollbacks and keys from being read.
    """
    try:
        spec = parse_spec(task.name, task.spec)
    except ValueError:
        log.error("the spec of task %s cannot be read: the teacher alone answers it", task.name)
        return TaskSpec(task.name, is_pinned=True, may_store=False)
    if not task.is_runtime_pinned:
        return spec
    pinned = TaskSpec(spec.name, spec.fields, True, spec.may_store, spec.target_precision, spec.min_precision)
    pinned.__dict__["spec_hash"] = spec.spec_hash
    return pinned


def student_route(student: Student, versions: Iterable[Version], default_threshold: float) -> StudentRoute:
    """Return one student's routing state from its routed versions."""
    by_state = {version.state: version for version in versions}

    def route(state: VersionState) -> VersionRoute | None:
        return version_route(by_state[state], default_threshold) if state in by_state else None

    canary = by_state.get(VersionState.CANARY)
    return StudentRoute(
        id=student.pk,
        name=student.name,
        backend=student.backend,
        base_model=student.base_model,
        samples=student.samples,
        temperature=student.temperature,
        endpoints=tuple(student.endpoints),
        live=route(VersionState.LIVE),
        canary=route(VersionState.CANARY),
        canary_pct=canary.traffic_pct if canary else 0,
        shadow=route(VersionState.SHADOW),
    )


def version_route(version: Version, default_threshold: float = 0.80) -> VersionRoute:
    """Return what serving needs of a version. Malformed evaluations serve nothing instead of failing (INV-7)."""
    evaluation = version.evaluation if isinstance(version.evaluation, dict) else {}
    threshold = _threshold(evaluation.get("threshold", default_threshold))
    records = evaluation.get("tasks")
    hashes = evaluation.get("spec_hashes")
    task_thresholds = {
        name: (str(spec_hash), threshold) for name, spec_hash in (hashes if isinstance(hashes, dict) else {}).items()
    }
    for name, record in (records if isinstance(records, dict) else {}).items():
        if isinstance(record, dict):
            disabled = bool(record.get("disabled"))
            value = SERVE_NOTHING if disabled else _threshold(record.get("threshold"))
            task_thresholds[name] = (str(record.get("spec_hash", "")), value)
    return VersionRoute(
        id=version.pk,
        number=version.number,
        adapter=version.adapter,
        stage=version.stage,
        threshold=threshold,
        task_thresholds=task_thresholds,
        artefact=version.artefact if isinstance(version.artefact, dict) else {},
        fingerprint="fp_" + sha256_hex([version.adapter, version.number, version.dataset_sha256, threshold])[:12],
    )


def _threshold(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= SERVE_NOTHING:
        return SERVE_NOTHING
    return float(value)


def cascade_policy(settings: GatewaySettings, switches: Switches) -> CascadePolicy:
    """Return the cascade's settings with the operators' switches applied."""
    return CascadePolicy(
        audit_rate=settings.audit_rate if switches.audit_rate is None else switches.audit_rate,
        canary_audit_rate=settings.canary_audit_rate,
        reasoning_tokens=settings.reasoning_tokens,
        teacher_price=settings.teacher.price,
        student_price=settings.student.price,
        teacher_model=settings.teacher.model,
        is_student_disabled=switches.student_disabled,
    )
