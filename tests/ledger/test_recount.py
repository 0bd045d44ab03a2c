"""The recount: every sum against the rows it adds up."""

from datetime import timedelta
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from ledger.models import HourlyRollup, Request, StageTally, Version
from ledger.recount import recount
from ledger.rows import LedgerEntry, RequestRow
from ledger.writer.batch import write_entries


def sums() -> list[dict[str, object]]:
    """Every rollup and tally without its key."""
    rollups = HourlyRollup.objects.order_by("hour_at", "student", "task", "client", "route")
    tallies = StageTally.objects.order_by("version", "stage", "task")
    return [{**row, "id": None} for rows in (rollups, tallies) for row in rows.values()]


@pytest.fixture
def written(student, clock) -> Version:
    """Thirty requests of two hours, tasks and clients: student, audited, shadowed and teacher-served ones."""
    version, shadow = (
        Version.objects.create(
            student=student,
            number=number,
            adapter=f"v{number}",
            base_model="b",
            stage_since_at=clock.now(),
            created_at=clock.now(),
        )
        for number in (1, 2)
    )
    entries = []
    for n in range(30):
        is_student = n % 3 != 0
        at = clock.now() + timedelta(minutes=4 * n)
        row = RequestRow(
            id=UUID(int=n + 1),
            at=at,
            on=at.date(),
            student_id=student.pk,
            task=f"task-{n % 2}",
            client=f"client-{n % 5 == 0}",
            route="student" if is_student else "confidence",
            served_by="student" if is_student else "teacher",
            version_id=version.pk,
            stage=4,
            escalated=not is_student,
            audit=("agree", "disagree", "none", "failed")[n % 4] if is_student else "none",
            shadow=("agree", "escalate", "unarbitrated", "pending", "none")[n % 5],
            shadow_version_id=shadow.pk if n % 5 != 4 else None,
            shadow_stage=1 if n % 5 != 4 else None,
            cost_nusd=3 * n,
            student_cost_nusd=n,
            teacher_cost_nusd=2 * n,
            baseline_nusd=7 * n,
            student_in_tokens=n,
            teacher_out_tokens=2 * n,
            wall_ms=n + 0.4321,
            stored=not is_student,
        )
        entries.append(LedgerEntry(row, []))
    for entry in entries:
        write_entries([entry], connection)
    return version


@pytest.mark.req("INV-27", "FR-3.1")
def test_sums_kept_while_writing_equal_the_sums_recounted(written):
    assert Request.objects.count() == 30
    assert HourlyRollup.objects.count() > 4
    assert recount() == []


@pytest.mark.req("INV-27")
def test_every_wrong_sum_is_named_with_both_numbers(written):
    tally = StageTally.objects.filter(version=written, stage=4, task="task-1").get()
    StageTally.objects.filter(pk=tally.pk).update(n_agree=tally.n_agree + 2)
    missing = HourlyRollup.objects.order_by("hour_at", "task", "client", "route").first()
    HourlyRollup.objects.filter(pk=missing.pk).delete()
    StageTally.objects.create(version=written, stage=9, task="ghost", n_served=1)
    shown = [str(difference) for difference in recount()]
    assert f"StageTally [{written.pk} 4 task-1] n_agree: {tally.n_agree + 2} stored, {tally.n_agree} recounted" in shown
    assert f"StageTally [{written.pk} 9 ghost] n_served: 1 stored, 0 recounted" in shown
    key = f"{missing.hour_at} {missing.student_id} {missing.task} {missing.client} {missing.route}"
    assert f"HourlyRollup [{key}] n_requests: 0 stored, {missing.n_requests} recounted" in shown
    assert all("HourlyRollup" in line for line in shown if "ghost" not in line and "n_agree: " not in line)


@pytest.mark.req("INV-27")
def test_a_row_of_zeros_is_no_difference(written):
    StageTally.objects.create(version=written, stage=9, task="ghost")
    assert recount() == []


@pytest.mark.req("INV-27")
def test_repairing_makes_every_sum_what_it_was(written):
    before = sums()
    HourlyRollup.objects.update(cost_nusd=1)
    StageTally.objects.all().delete()
    assert recount(repair=True) != []
    assert sums() == before
    assert recount() == []


@pytest.mark.req("INV-27")
def test_the_command_ends_with_1_while_sums_differ(written):
    out = StringIO()
    call_command("recount", stdout=out)
    assert out.getvalue() == "every sum equals its rows\n"
    tally = StageTally.objects.filter(version=written, stage=4, task="task-1").get()
    StageTally.objects.update_or_create(pk=tally.pk, defaults={"n_served": 0})
    out = StringIO()
    with pytest.raises(CommandError, match=r"^1 sums differ from their rows$") as error:
        call_command("recount", stdout=out)
    assert error.value.returncode == 1
    line = f"StageTally [{written.pk} 4 task-1] n_served: 0 stored, {tally.n_served} recounted\n"
    assert out.getvalue() == line
    out = StringIO()
    call_command("recount", "--repair", stdout=out)
    assert out.getvalue() == f"{line}repaired 1 sums\n"
    assert recount() == []


@pytest.mark.req("INV-27")
def test_the_recount_begins_its_own_transaction(shared_ledger):
    assert recount() == []
    assert recount(repair=True) == []


@pytest.mark.req("INV-27")
def test_an_empty_ledger_adds_up(student):
    assert recount() == []
    assert recount(repair=True) == []
