"""The beat table and the schedule rows that operators own."""

from datetime import UTC, datetime, timedelta

import pytest
from celery import current_app
from celery.schedules import schedule as celery_schedule
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from django_celery_beat.schedulers import ModelEntry

from ratchet_project.beat import BEAT, Scheduler, sync_schedule
from ratchet_project.processes import NIGHT_QUEUES, WORKER_QUEUES

TASKS = {
    "release.tick": ("gate", 5),
    "gateway.sweep_checks": ("checks", 15),
    "gateway.retry_spool": ("maintenance", 60),
    "gateway.reconcile_adapters": ("maintenance", 30),
    "nightschool.start_due_nights": ("maintenance", 60),
    "nightschool.resume_nights": ("maintenance", 15),
}


@pytest.mark.req("INV-28")
def test_the_table_holds_exactly_the_known_tasks_because_schedule_rows_outlive_code():
    assert {entry.task: (entry.queue, entry.every_s) for entry in BEAT} == TASKS
    assert len({entry.name for entry in BEAT}) == len(BEAT)


def test_every_task_of_the_table_is_registered_in_celery():
    current_app.loader.import_default_modules()
    assert set(TASKS) <= set(current_app.tasks)


def test_every_task_goes_to_the_queue_that_its_own_declaration_names():
    current_app.loader.import_default_modules()
    assert {task: current_app.tasks[task].queue for task in TASKS} == {
        task: queue for task, (queue, _) in TASKS.items()
    }


def test_every_queue_of_the_table_has_a_worker_that_serve_starts():
    served = set(f"{WORKER_QUEUES},{NIGHT_QUEUES}".split(","))
    assert {entry.queue for entry in BEAT} <= served


@pytest.mark.django_db
def test_syncing_an_empty_schedule_creates_every_row():
    assert sync_schedule() == [entry.name for entry in BEAT]
    rows = {row.task: (row.queue, row.interval.every, row.interval.period) for row in PeriodicTask.objects.all()}
    assert rows == {task: (queue, every, "seconds") for task, (queue, every) in TASKS.items()}


@pytest.mark.django_db
def test_syncing_again_creates_nothing():
    sync_schedule()
    assert sync_schedule() == []
    assert PeriodicTask.objects.count() == len(BEAT)


@pytest.mark.django_db
def test_syncing_and_starting_beat_leave_an_operators_edits_alone():
    sync_schedule()
    slow = IntervalSchedule.objects.create(every=7, period="minutes")
    PeriodicTask.objects.filter(task="release.tick").update(interval=slow, enabled=False, queue="mine")
    sync_schedule()
    Scheduler(app=current_app).setup_schedule()
    row = PeriodicTask.objects.get(task="release.tick")
    assert (row.interval, row.enabled, row.queue) == (slow, False, "mine")


@pytest.mark.django_db
def test_starting_beat_creates_the_missing_rows_and_no_others():
    sync_schedule()
    PeriodicTask.objects.filter(task="release.tick").delete()
    Scheduler(app=current_app).setup_schedule()
    assert {row.task for row in PeriodicTask.objects.all()} == set(TASKS)


@pytest.mark.django_db
def test_a_tick_that_nobody_took_for_several_intervals_expires():
    sync_schedule()
    expiries = {row.task: row.expire_seconds for row in PeriodicTask.objects.all()}
    assert expiries["release.tick"] == 15
    assert expiries["nightschool.start_due_nights"] == 180


@pytest.mark.django_db
def test_two_equal_intervals_made_by_hand_do_not_break_the_sync():
    for _ in range(2):
        IntervalSchedule.objects.create(every=5, period="seconds")
    assert sync_schedule() == [entry.name for entry in BEAT]


class Wall:
    """The time of day as the process sees it; setting it back moves neither the process nor the monotonic clock."""

    def __init__(self, monkeypatch):
        self.ahead = timedelta()
        monkeypatch.setattr(ModelEntry, "_default_now", lambda _: datetime.now(UTC) + self.ahead)
        monkeypatch.setattr(celery_schedule, "now", lambda _: datetime.now(UTC) + self.ahead)
        monkeypatch.setattr("time.time", lambda: datetime.now(UTC).timestamp() + self.ahead.total_seconds())


@pytest.fixture
def wall(monkeypatch):
    return Wall(monkeypatch)


@pytest.fixture
def beat(monkeypatch, transactional_db):
    """A scheduler whose rows have all just run, and what it sends."""
    scheduler = Scheduler(app=current_app)
    sent = []
    monkeypatch.setattr(Scheduler, "producer", None)
    monkeypatch.setattr(scheduler, "apply_entry", lambda entry, producer=None: sent.append(entry.task))
    yield scheduler, sent
    scheduler._finalize.cancel()


def run_all_due(scheduler):
    for _ in range(50):
        if scheduler.tick() > 0:
            return
    raise AssertionError("it never waits")


@pytest.mark.req("INV-28")
def test_rows_that_ran_under_a_clock_far_ahead_run_again_within_their_interval(wall, beat):
    """A machine that booted in 2030 and was corrected: no release tick and no sweep until then."""
    scheduler, sent = beat
    PeriodicTask.objects.update(last_run_at=datetime.now(UTC) + timedelta(days=1500))
    scheduler.tick()
    wall.ahead = timedelta(seconds=61)
    run_all_due(scheduler)
    assert set(sent) == set(TASKS)


@pytest.mark.req("INV-28")
def test_setting_the_clock_back_while_beat_runs_stops_no_task(wall, beat):
    scheduler, sent = beat
    wall.ahead = timedelta(seconds=61)
    run_all_due(scheduler)
    assert set(sent) == set(TASKS)
    sent.clear()
    wall.ahead = timedelta(hours=-5)
    run_all_due(scheduler)
    wall.ahead += timedelta(seconds=61)
    run_all_due(scheduler)
    assert set(sent) == set(TASKS)
