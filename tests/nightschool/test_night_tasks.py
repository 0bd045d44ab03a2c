"""The thin edges: Celery tasks and the command."""

from datetime import date
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from ledger.models import Night, Version
from ledger.vocabulary import NightState
from nightschool import tasks
from nightschool.lease import claim
from nightschool.trainers.base import TrainingFailed
from tests.nightschool.conftest import World
from tests.nightschool.fakes import RecordingTrainer


@pytest.fixture
def configured(world: World, settings: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    """The world as the process's configuration, and dispatched nights in ``world.sent``."""
    settings.RATCHET_GATEWAY = world.context.gateway
    settings.RATCHET_NIGHTS = world.context.nights
    settings.RATCHET_RELEASE = world.context.policy
    settings.RATCHET_CLOCK = "tests.nightschool.test_night_tasks.the_clock"
    monkeypatch.setattr("tests.nightschool.test_night_tasks.the_clock", lambda: world.clock, raising=False)
    return world


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The nights that were sent to a worker."""
    ids: list[int] = []
    monkeypatch.setattr(tasks.run_night, "delay", ids.append)
    return ids


def test_the_tasks_have_the_names_and_queues_that_schedules_know() -> None:
    known = [tasks.start_due_nights, tasks.resume_nights, tasks.run_night]
    assert [(task.name, task.queue) for task in known] == [
        ("nightschool.start_due_nights", "maintenance"),
        ("nightschool.resume_nights", "maintenance"),
        ("nightschool.run_night", "nights"),
    ]


@pytest.mark.req("FR-4.6", "INV-28")
def test_no_night_is_killed_while_its_training_is_within_its_own_limits(settings: Any) -> None:
    waiting, syncing, training = [settings.RATCHET_NIGHTS.train_timeout_s] * 3
    assert tasks.run_night.time_limit == waiting + syncing + training + 2 * 3600


@pytest.mark.req("FR-4.4", "INV-28")
def test_due_nights_are_started_and_dispatched_once(
    configured: World, sent: list[int], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        assert tasks.start_due_nights() == 1
    with django_capture_on_commit_callbacks(execute=True):
        assert tasks.start_due_nights() == 0
    assert sent == [Night.objects.get().pk]


@pytest.mark.req("INV-28")
def test_a_night_is_dispatched_only_when_it_is_committed(
    configured: World, sent: list[int], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        tasks.dispatch_night(7)
        assert sent == []
    assert sent == [7]


@pytest.mark.req("INV-28")
def test_a_broker_that_is_down_loses_nothing(
    configured: World, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    def refuse(night_id: int) -> None:
        raise OSError("no broker")

    monkeypatch.setattr(tasks.run_night, "delay", refuse)
    with django_capture_on_commit_callbacks(execute=True):
        assert tasks.start_due_nights() == 1
    configured.lose_worker()
    sent: list[int] = []
    monkeypatch.setattr(tasks.run_night, "delay", sent.append)
    with django_capture_on_commit_callbacks(execute=True):
        assert tasks.resume_nights() == 1
    assert sent == [Night.objects.get().pk]


@pytest.mark.req("FR-4.4")
def test_the_task_runs_the_night_to_its_end(configured: World) -> None:
    configured.store(10)
    configured.store(4, "golden")
    night = configured.start()
    assert tasks.run_night(night.pk) == NightState.DONE
    assert tasks.run_night(night.pk) == NightState.DONE
    assert Version.objects.count() == 1


def command(*args: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("night", *args, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.mark.req("FR-4.4")
def test_the_command_runs_a_night_and_shows_its_progress(configured: World) -> None:
    configured.store(10)
    configured.store(4, "golden")
    out, err = command("--date", "2026-10-31")
    night = Night.objects.get()
    assert (night.on, night.is_scheduled, night.state) == (date(2026, 10, 31), False, NightState.DONE)
    assert out.splitlines()[0] == "2026-11-02T12:00:00+00:00  default-v1: 10 training rows, 4 golden"
    assert out.splitlines()[-1] == f"night {night.pk} done: {night.outcome}"
    assert "trained: 10/10" in err
    assert "scored default-v1: 4/4" in err


@pytest.mark.req("FR-4.4")
def test_the_command_says_why_a_night_was_skipped(configured: World) -> None:
    out, _ = command()
    assert out.splitlines()[-1] == f"night {Night.objects.get().pk} skipped: too few new examples: 0 of 10"


def test_the_commands_exit_codes(configured: World) -> None:
    with pytest.raises(CommandError, match=r"^no student 'nobody'$") as unknown:
        command("--student", "nobody")
    assert unknown.value.returncode == 2
    configured.store(10)
    configured.store(4, "golden")

    def fail(progress: Any) -> None:
        raise TrainingFailed("no GPU")

    RecordingTrainer.on_train = fail
    with pytest.raises(CommandError, match=r"failed training: TrainingFailed: no GPU$") as failed:
        command()
    assert failed.value.returncode == 1
    RecordingTrainer.on_train = None
    held = configured.start()
    assert claim(held.pk, configured.clock, 60) is not None
    with pytest.raises(CommandError, match=r"^another worker runs the night of default$") as busy:
        command()
    assert busy.value.returncode == 3
    assert Night.objects.count() == 2


def test_the_command_resumes_a_night_that_lost_its_worker(configured: World) -> None:
    night = configured.start()
    assert claim(night.pk, configured.clock, 60) is not None
    configured.lose_worker()
    out, _ = command()
    assert out.splitlines()[-1].startswith(f"night {night.pk} skipped: ")
    assert Night.objects.count() == 1
