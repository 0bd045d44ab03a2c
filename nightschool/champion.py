"""Re-scoring the live version, so that it is compared and trusted on today's golden rows and specs (INV-4)."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from common.canonical import sha256_hex
from ledger.locks import lock_student
from ledger.models import Student, Version
from ledger.vocabulary import VersionState
from nightschool.calibration import stale_tasks
from nightschool.dataset import Dataset, Specs
from nightschool.evaluation import EvaluationFailed, Examiner
from nightschool.run import NightRun
from nightschool.trainers.base import Row
from release.golden import keep_disabled, summary


def live_version(student: Student) -> Version | None:
    """Return the student's live version."""
    return student.versions.filter(state=VersionState.LIVE).first()


def recheck_live(run: NightRun, golden: Sequence[Row], specs: Specs) -> None:
    """Score the live version on the rows the candidate is scored on; once per night, rows, specs and live version."""
    live = live_version(run.student)
    mark = [live.pk if live else None, _grading(golden, specs)]
    if run.night.work.get("rechecked") == mark:
        return
    work = {**run.night.work, "rechecked": mark}
    if live is None:
        run.lease.write(work=work)
        return
    evaluation = Examiner(live, specs, run.context).evaluate(golden, run.lease.progress)
    with transaction.atomic():
        run.lease.write(f"live v{live.number} re-scored: {summary(evaluation)}", work=work)
        _overwrite(run, live, evaluation)


def is_live_rechecked(run: NightRun) -> bool:
    """Whether the version that is live now is the one the candidate was scored beside."""
    live = live_version(run.student)
    return bool(run.night.work["rechecked"][0] == (live.pk if live else None))


def rescore_changed_specs(run: NightRun, dataset: Dataset) -> None:
    """Score the live version again when the spec of a task it was measured on has changed.

    Until then that task's answers stay with the teacher, and a night without enough new data would leave it so. A
    failed re-score is an event and changes nothing.
    """
    live, golden = live_version(run.student), dataset.selection.golden
    if live is None:
        return
    changed = stale_tasks(live.evaluation, {row.task: dataset.specs[row.task].spec_hash for row in golden})
    if not changed:
        return
    text = f"v{live.number}: new spec of {', '.join(changed)}"
    try:
        evaluation = Examiner(live, dataset.specs, run.context).evaluate(golden, run.lease.progress)
    except EvaluationFailed as error:
        with transaction.atomic():
            run.lease.write(f"re-score failed: {error}")
            run.event("rescore_failed", f"{text}: {error}", live)
        return
    with transaction.atomic():
        run.lease.write(f"live v{live.number} re-scored: {summary(evaluation)}")
        _overwrite(run, live, evaluation)
        run.event("rescored", f"{text}; {summary(evaluation)}", live)


def _overwrite(run: NightRun, live: Version, evaluation: dict[str, Any]) -> None:
    """Store a re-score under the student's lock, so that a task the gate disables meanwhile stays disabled."""
    lock_student(run.student.pk)
    old = Version.objects.values_list("evaluation", flat=True).get(pk=live.pk)
    today = run.context.clock.now().date().isoformat()
    Version.objects.filter(pk=live.pk).update(evaluation={**keep_disabled(old, evaluation), "rechecked_on": today})


def _grading(golden: Sequence[Row], specs: Specs) -> str:
    tasks = {row.task for row in golden}
    rules = {name: "pinned" if specs[name].is_pinned else specs[name].spec_hash for name in tasks}
    return sha256_hex([[row.hash for row in golden], rules])
