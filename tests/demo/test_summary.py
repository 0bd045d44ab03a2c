"""The day table and the summary: exact sums, a recount that notices a nano-USD, and what was promised."""

from datetime import UTC, date, datetime
from uuid import UUID

import pytest
from django.db import connection

from common.clock import ManualClock
from ledger.dayrow import DayRow
from ledger.events import record_event
from ledger.models import HourlyRollup, Student
from ledger.rows import LedgerEntry, RequestRow
from ledger.versions import create_candidate
from ledger.writer.batch import write_entries
from sim.demo.client import Outcome
from sim.demo.replay import ReplayedDay
from sim.demo.summary import broken_promises, summarise
from sim.demo.table import day_line, moves_of, precision, share, totals

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ON = date(2026, 3, 2)
RIGHT = Outcome("question-routing", "student", "student", True)
WRONG = Outcome("question-routing", "student", "student", False)
BY_TEACHER = Outcome("question-routing", "teacher", "cold_start", True)


@pytest.fixture
def student(db):
    return Student.objects.get(name="default")


def write(student, n, **changes):
    entries = []
    for index in range(n):
        row = RequestRow(
            id=UUID(int=index + 1 + 1000 * len(changes)), at=NOON, on=ON, student_id=student.pk, task="sms-spam",
            route="cold_start", served_by="teacher", cost_nusd=1001, teacher_cost_nusd=1001, baseline_nusd=1001,
        )  # fmt: skip
        for name, value in changes.items():
            setattr(row, name, value)
        entries.append(LedgerEntry(row, []))
    write_entries(entries, connection)


@pytest.mark.req("INV-27")
def test_the_summary_notices_one_nano_usd(student):
    write(student, 3)
    HourlyRollup.objects.update(cost_nusd=3004)
    (difference,) = summarise([ReplayedDay(1, ON, [BY_TEACHER] * 3, "")], "labels", 1.0)["recount_differences"]
    assert difference.endswith("cost_nusd: 3004 stored, 3003 recounted")


def test_true_precision_counts_what_the_student_served_only():
    assert precision([RIGHT, RIGHT, WRONG, BY_TEACHER]) == (2, 3)
    assert precision([BY_TEACHER]) == (0, 0)


def test_the_summary_adds_up_the_replayed_days_and_tells_each_versions_history(student):
    write(student, 2)
    write(student, 2, served_by="student", route="student", cost_nusd=100, teacher_cost_nusd=0, student_cost_nusd=100)
    version = create_candidate(student.pk, at=NOON)
    clock = ManualClock(NOON)
    record_event("live", "v1: live: 15 of 15", clock=clock, student_id=student.pk, version_id=version.pk)
    day = ReplayedDay(1, ON, [BY_TEACHER, BY_TEACHER, RIGHT, WRONG], "v1: canary 10%")
    result = summarise([day], "labels", 12.34)
    wanted = {
        "teacher": "labels",
        "days": 1,
        "requests": 4,
        "student_share_last_day": 0.5,
        "audited_agreement_last_day": None,
        "true_precision": 0.5,
        "true_precision_last_day": 0.5,
        "cost_nusd": 2 * 1001 + 2 * 100,
        "all_teacher_nusd": 4 * 1001,
        "saved_nusd": 2 * 901,
        "wall_s": 12.3,
        "recount_differences": [],
        "nights": [{"on": "2026-03-02", "outcome": "v1: canary 10%"}],
    }
    assert {name: result[name] for name in wanted} == wanted
    (told,) = result["versions"]
    assert (told["number"], told["state"]) == (1, "candidate")
    assert told["history"] == [{"at": NOON.isoformat(), "kind": "live", "detail": "v1: live: 15 of 15"}]


MET = {
    "student_share_last_day": 0.60,
    "audited_agreement_last_day": 0.95,
    "true_precision_last_day": 0.96,
    "versions": [{"history": [{"kind": "canary"}, {"kind": "live"}]}],
    "recount_differences": [],
}


def test_numbers_that_are_just_met_break_no_promise():
    assert broken_promises(MET) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("student_share_last_day", 0.599),
        ("audited_agreement_last_day", 0.949),
        ("audited_agreement_last_day", None),
        ("true_precision_last_day", 0.959),
    ],
)
def test_a_number_under_its_promise_is_named(name, value):
    (line,) = broken_promises(MET | {name: value})
    assert line.startswith(f"{name} is {value}, promised at least")


def test_a_demo_in_which_nothing_went_live_is_no_success():
    assert broken_promises(MET | {"versions": [{"history": [{"kind": "canary"}]}]}) == [
        "no version went live on shadow or canary evidence"
    ]


def test_a_recount_that_differs_is_no_success():
    assert broken_promises(MET | {"recount_differences": ["rollup x"]}) == ["the recount differs: rollup x"]


def test_a_line_of_the_day_table():
    row = DayRow(ON, 1000, 700, 250, 50, 49, 300, 400_000_000, 1_000_000_000)
    line = day_line(2, row, [RIGHT] * 97 + [WRONG] * 3, ["v1: live"])
    assert line == ("  2  2026-03-02      70%     25%       98%     97%    0.400        1.000    60%  v1: live")


def test_a_day_without_audits_or_student_answers_shows_dashes():
    row = DayRow(ON, 10, 0, 0, 0, 0, 10, 10_000_000, 10_000_000)
    assert day_line(1, row, [BY_TEACHER] * 10, []) == (
        "  1  2026-03-02       0%      0%         -       -    1.000        1.000     0%"
    )


def test_moves_are_named_without_their_reasons(student):
    version = create_candidate(student.pk, at=NOON)
    clock = ManualClock(NOON)
    for kind, detail in (
        ("canary", "v1: canary 10%: first student"),
        ("night", "v1: trained"),
        ("live", "v1: live: ok"),
    ):
        record_event(kind, detail, clock=clock, student_id=student.pk, version_id=version.pk)
    assert moves_of(ON) == ["v1: canary 10%", "v1: live"]


def test_the_line_under_the_table_states_both_costs():
    text = totals({"requests": 10, "cost_nusd": 250_000_000, "all_teacher_nusd": 1_000_000_000})
    assert text == "10 requests cost $0.2500; the teacher alone would have cost $1.0000; saved 75%"


def test_a_share_of_nothing_is_a_dash():
    assert (share(0, 0), share(1, 3)) == ("-", "33%")
