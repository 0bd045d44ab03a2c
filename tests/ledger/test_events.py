"""The release log's writers, and the counts that releases are decided on."""

from datetime import UTC, datetime

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from ledger.events import DETAIL_MAX, event_once, record_event
from ledger.evidence import audit_evidence, shadow_evidence
from ledger.locks import lock_student
from ledger.models import Event, StageTally, Version
from ledger.statistics.counts import AuditEvidence, ShadowEvidence


@pytest.fixture
def version(student, clock) -> Version:
    return Version.objects.create(
        student=student, number=1, adapter="v1", base_model="b", stage_since_at=clock.now(), created_at=clock.now()
    )


@pytest.mark.req("FR-3.3")
def test_an_event_carries_the_clocks_time_and_utc_date(version, student, clock):
    clock.at = datetime(2026, 11, 2, 23, 59, 59, tzinfo=UTC)
    event = record_event("skip", "no data", clock=clock, student_id=student.pk, version_id=version.pk)
    row = Event.objects.get(pk=event.pk)
    assert (row.kind, row.detail, row.student, row.version) == ("skip", "no data", student, version)
    assert (row.at, row.on.isoformat()) == (clock.at, "2026-11-02")


@pytest.mark.req("FR-3.3")
@pytest.mark.parametrize("length", [DETAIL_MAX, DETAIL_MAX + 1, 10_000])
def test_a_long_detail_is_cut_to_what_the_column_holds(student, clock, length):
    record_event("skip", "x" * length, clock=clock)
    detail = Event.objects.get().detail
    assert len(detail) == DETAIL_MAX
    assert detail.endswith("…") == (length > DETAIL_MAX)


@pytest.mark.req("INV-29", "FR-6.7")
def test_once_is_once_per_kind_and_version(version, student, clock):
    other = Version.objects.create(
        student=student, number=2, adapter="v2", base_model="b", stage_since_at=clock.now(), created_at=clock.now()
    )

    def alert(kind: str, of: Version) -> bool:
        return event_once(kind, "low", clock=clock, student_id=student.pk, version_id=of.pk)

    assert [alert("alert", version), alert("alert", version)] == [True, False]
    assert [alert("alert", other), alert("human_alert", version)] == [True, True]
    assert Event.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_students_lock_needs_a_transaction():
    with pytest.raises(transaction.TransactionManagementError, match=r"^lock_student needs a transaction$"):
        lock_student(1)


@pytest.mark.req("FR-6.4", "FR-6.5")
def test_evidence_is_that_of_one_stage_over_all_tasks_in_one_query(version):
    sums = {"n_served": 9, "n_audits": 5, "n_agree": 4, "n_shadow": 20, "n_would_serve": 10, "n_shadow_agree": 8,
            "n_unarbitrated": 1, "n_live_answered": 18, "n_live_served": 9}  # fmt: skip
    for task in ("a", "b", "c"):
        StageTally.objects.create(version=version, stage=2, task=task, **sums)
    StageTally.objects.create(version=version, stage=1, task="a", n_audits=100, n_agree=100)
    with CaptureQueriesContext(connection) as queries:
        audits = audit_evidence(version.pk, 2)
        shadow = shadow_evidence(version.pk, 2)
    assert len(queries) == 2
    assert audits == AuditEvidence(15, 12)
    assert audits.precision == 0.8
    assert shadow == ShadowEvidence(60, 30, 24, 3, 54, 27)
    assert (shadow.precision, shadow.coverage, shadow.live_coverage) == (0.8, 0.5, 0.5)


@pytest.mark.req("FR-6.4", "FR-6.5")
def test_a_stage_without_evidence_has_no_proportions(version):
    audits, shadow = audit_evidence(version.pk, 7), shadow_evidence(version.pk, 7)
    assert (audits, shadow) == (AuditEvidence(), ShadowEvidence())
    assert (audits.precision, shadow.precision, shadow.coverage, shadow.live_coverage) == (None, None, None, None)
