"""The steps of a night. Each ends in one transaction that also enters the next step.

Killed before that transaction, a step is simply run again; nothing it did before counts, or is done twice. What the
night trains and is measured on is fixed when its version is made: the version's committed rows are the selection, kept
in the database that every worker shares, so that a resumed night reads back exactly what it had chosen.
"""

from collections.abc import Callable, Mapping

from django.db import transaction

from common.errors import ConfigurationError
from gateway.models import load_path
from ledger.locks import lock_student
from ledger.models import Version, VersionLeaf
from ledger.switches import read_switches
from ledger.versions import create_candidate
from ledger.vocabulary import IN_FLIGHT, NightState, Split, VersionState
from nightschool.champion import is_live_rechecked, recheck_live, rescore_changed_specs
from nightschool.dataset import (
    Dataset,
    DatasetChanged,
    Specs,
    committed_rows,
    leaves_of,
    n_new_examples,
    read_dataset,
    specs_of,
)
from nightschool.evaluation import Examiner
from nightschool.intervals import end_training, start_training
from nightschool.rules import dataset_sha256
from nightschool.run import NightRun
from nightschool.trainers.base import Row, Trainer
from release.gate import admit
from release.golden import summary

LEAF_BATCH = 1000


def build(run: NightRun) -> None:
    """Select the rows and commit a new candidate to them, or skip the night."""
    reason = _held_back(run)
    if reason:
        _skip(run, reason)
        return
    dataset = read_dataset(run.student, run.context.gateway)
    reason = _not_worth_training(run, dataset)
    if reason:
        rescore_changed_specs(run, dataset)
        _skip(run, reason)
        return
    _commit(run, dataset)


def _held_back(run: NightRun) -> str | None:
    if read_switches().training_paused:
        return "training paused"
    in_flight = run.student.versions.filter(state__in=IN_FLIGHT).first()
    return f"release in flight: v{in_flight.number} ({in_flight.state})" if in_flight else None


def _not_worth_training(run: NightRun, dataset: Dataset) -> str | None:
    nights, selection = run.context.nights, dataset.selection
    if not nights.stores_examples:
        return "storage disabled"
    n_new = n_new_examples(run.student, len(selection.train), run.context.gateway)
    if n_new < nights.min_new_examples:
        return f"too few new examples: {n_new} of {nights.min_new_examples}"
    return None if selection.golden else "no golden rows"


def _skip(run: NightRun, reason: str) -> None:
    with transaction.atomic():
        run.lease.finish(NightState.SKIPPED, reason)
        run.event("skip", f"night of {run.night.on}: {reason}")


def _commit(run: NightRun, dataset: Dataset) -> None:
    selection = dataset.selection
    leaves = leaves_of(selection)
    sha256 = dataset_sha256(row.hash for row in selection.train)
    excluded = dict(sorted(selection.excluded.items()))
    kept_out = "".join(f", {n} {reason}" for reason, n in excluded.items())
    with transaction.atomic():
        run.lease.write()
        version = create_candidate(run.student.pk, at=run.context.clock.now(), dataset_sha256=sha256)
        for leaf in leaves:
            leaf.version = version
        VersionLeaf.objects.bulk_create(leaves, batch_size=LEAF_BATCH)
        run.lease.move(
            NightState.TRAINING,
            f"{version.adapter}: {len(selection.train)} training rows, {len(selection.golden)} golden{kept_out}",
            version=version,
            work={"excluded": excluded, "rules": _rules(selection.train, dataset.specs)},
        )


def _rules(rows: list[Row], specs: Specs) -> dict[str, str]:
    """Return what each task's rows were let through by, to notice a change."""
    tasks = {row.task for row in rows}
    return {name: "pinned" if specs[name].is_pinned else specs[name].spec_hash for name in sorted(tasks)}


def train(run: NightRun) -> None:
    """Train the candidate on its committed rows, always from the base model."""
    version, clock = run.version, run.context.clock
    rows = committed_rows(version, Split.TRAIN)
    specs = specs_of({row.task for row in rows})
    if _rules(rows, specs) != run.night.work["rules"]:
        raise DatasetChanged("a task was pinned or its spec changed before training began")
    trainer = _trainer(run)
    with transaction.atomic():
        run.lease.write(f"training {version.adapter} from {version.base_model}")
        start_training(version, at=clock.now())
    trained = trainer.train(version.adapter, version.base_model, rows, dict(specs), run.lease.progress)
    with transaction.atomic():
        run.lease.move(NightState.LOADING, f"trained {trained.adapter}: {trained.notes}"[:200])
        Version.objects.filter(pk=version.pk).update(
            adapter=trained.adapter, artefact=trained.artefact, train_examples=len(rows)
        )
        end_training(version, at=clock.now())
        detail = f"v{version.number}: {trained.adapter}, {len(rows)} training rows, night of {run.night.on}"
        run.event("trained", detail, version)


def _trainer(run: NightRun) -> Trainer:
    key, trainers = run.student.trainer, run.context.nights.trainers
    if key not in trainers:
        raise ConfigurationError(f"trainer {key!r} is not registered; known: {', '.join(sorted(trainers))}")
    trainer: Trainer = load_path(trainers[key], "RATCHET_TRAINERS")(run.context.nights, run.context.gateway)
    return trainer


def load(run: NightRun) -> None:
    """Make sure that the candidate answers, so that a student nobody could load is not scored as a bad one."""
    golden, specs = _golden(run)
    Examiner(run.version, specs, run.context).probe(golden, run.lease.progress)
    run.lease.move(NightState.EVALUATING, f"{run.version.adapter} answers")


def evaluate(run: NightRun) -> None:
    """Score the live version, then the candidate, on the same golden rows."""
    golden, specs = _golden(run)
    recheck_live(run, golden, specs)
    evaluation = Examiner(run.version, specs, run.context).evaluate(golden, run.lease.progress)
    with transaction.atomic():
        run.lease.move(NightState.ADMITTING, f"{run.version.adapter}: {summary(evaluation)}")
        Version.objects.filter(pk=run.version.pk, state=VersionState.CANDIDATE).update(evaluation=evaluation)


def _golden(run: NightRun) -> tuple[list[Row], Specs]:
    golden = committed_rows(run.version, Split.GOLDEN)
    if not golden:
        raise DatasetChanged("every golden row was erased or purged while the night ran")
    return golden, specs_of({row.task for row in golden})


def pass_gate(run: NightRun) -> None:
    """Hand the candidate to the release gate and end the night, in one transaction: it is admitted once."""
    with transaction.atomic():
        run.lease.write()
        lock_student(run.student.pk)
        if not is_live_rechecked(run):
            run.lease.move(NightState.EVALUATING, "another version is live by now: scoring again")
            return
        moved = admit(run.version.pk, clock=run.context.clock, policy=run.context.policy)
        run.lease.finish(NightState.DONE, moved.detail)


STEPS: Mapping[str, Callable[[NightRun], None]] = {
    NightState.BUILDING: build,
    NightState.TRAINING: train,
    NightState.LOADING: load,
    NightState.EVALUATING: evaluate,
    NightState.ADMITTING: pass_gate,
}
