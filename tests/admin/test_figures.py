"""The figures behind the pages: the day table, the charts' geometry and the release track."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.charts import HEIGHT, WIDTH, day_charts, percent, usd_tick
from ledger.dayrow import DayRow, total
from ledger.daytable import day_table, recent_values
from ledger.models import HourlyRollup, Student
from ledger.vocabulary import VersionState
from release.track import STOPS, release_track

ROWS = [
    DayRow(date(2026, 3, 8), 10, 0, 0, 0, 0, 10, 900, 900),
    DayRow(date(2026, 3, 9), 10, 6, 4, 4, 3, 4, 400, 1_000),
    DayRow(date(2026, 3, 10), 20, 15, 5, 2, 2, 5, 500, 2_000),
]


def _rollup(student: Student, at: datetime, **sums: int) -> None:
    HourlyRollup.objects.create(hour_at=at, student=student, task="t", client="c", route=f"r{at.hour}", **sums)


@pytest.mark.req("INV-27")
def test_the_day_table_adds_the_hours_of_each_utc_date_exactly(student: Student) -> None:
    other = Student.objects.create(
        name="other", base_model="m", backend="openai", trainer="command", created_at=datetime.now(UTC)
    )
    _rollup(student, datetime(2026, 3, 9, 23, tzinfo=UTC), n_requests=3, cost_nusd=1, baseline_nusd=10**15 + 1)
    _rollup(
        student, datetime(2026, 3, 10, 0, tzinfo=UTC), n_requests=4, n_student_served=3, cost_nusd=2, baseline_nusd=5
    )
    _rollup(student, datetime(2026, 3, 10, 23, tzinfo=UTC), n_requests=5, n_audited=2, n_audit_agree=1, cost_nusd=3)
    _rollup(other, datetime(2026, 3, 10, 1, tzinfo=UTC), n_requests=100)
    rows = day_table(student)
    assert [(row.on.isoformat(), row.n_requests, row.cost_nusd) for row in rows] == [
        ("2026-03-09", 3, 1),
        ("2026-03-10", 9, 5),
    ]
    assert rows[0].saved_nusd == 10**15
    assert (rows[1].n_student_served, rows[1].agreement) == (3, 0.5)
    assert day_table()[1].n_requests == 109


def test_the_day_table_ends_at_the_newest_hour_and_reaches_back_as_many_dates_as_asked(student: Student) -> None:
    for day in (1, 5, 9, 10):
        _rollup(student, datetime(2026, 3, day, 7, tzinfo=UTC), n_requests=1)
    assert [row.on.day for row in day_table(student, days=6)] == [5, 9, 10]
    assert [row.on.day for row in day_table(student, days=5)] == [9, 10]
    assert len(day_table(student, days=None)) == 4
    assert recent_values("route", days=30) == ["r7"]


def test_an_idle_system_has_an_empty_day_table(student: Student) -> None:
    assert day_table(student) == []
    assert recent_values("task") == []
    assert total([]) is None


def test_totals_add_every_column() -> None:
    assert total(ROWS) == DayRow(date(2026, 3, 10), 40, 21, 9, 6, 5, 19, 1_800, 3_900)


def test_a_day_without_requests_audits_or_cost_has_no_shares() -> None:
    empty = DayRow(date(2026, 3, 8))
    assert (empty.student_share, empty.agreement, empty.savings) == (None, None, None)


def test_the_charts_break_lines_where_nothing_was_measured() -> None:
    share, agreement, cost = day_charts(ROWS)
    assert [len(line.dots) for chart in (share, agreement, cost) for line in chart.lines] == [3, 2, 3, 3]
    assert agreement.lines[0].path.count("M") == 1
    assert (share.latest, agreement.latest) == ("75%", "100%")
    assert cost.latest == "$0.0000 of $0.0000"
    assert agreement.lines[0].dots[0].title == "9 Mar: audited agreement 75%"
    assert day_charts([]) == []


@given(
    st.lists(
        st.builds(
            lambda n, served, audited, agree, cost, base: DayRow(
                date(2026, 1, 1), n, min(n, served), 0, audited, min(audited, agree), 0, cost, base
            ),
            *[st.integers(0, 10**6)] * 4,
            *[st.integers(0, 10**15)] * 2,
        ),
        min_size=1,
        max_size=40,
    )
)
def test_every_point_of_a_chart_is_inside_its_box(rows: list[DayRow]) -> None:
    for chart in day_charts(rows):
        for line in chart.lines:
            assert all(0 <= dot.x <= WIDTH and 0 <= dot.y <= HEIGHT for dot in line.dots)
        assert 1 <= len(chart.x_ticks) <= 5


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0%"), (1.0, "100%"), (0.975, "97.5%"), (0.2, "20%"), (0.9999, "99.9%")]
)
def test_percentages_carry_no_empty_decimals(value: float, text: str) -> None:
    assert percent(value) == text


@pytest.mark.parametrize(
    ("state", "traffic_pct", "now"),
    [("candidate", 0, "golden"), ("shadow", 0, "shadow"), ("canary", 10, "canary 10%"), ("canary", 5, "canary 10%"),
     ("canary", 49, "canary 10%"), ("canary", 50, "canary 50%"), ("canary", 99, "canary 50%"), ("live", 100, "live")],
)  # fmt: skip
def test_the_track_says_where_a_version_is(state: str, traffic_pct: int, now: str) -> None:
    track = release_track(state, traffic_pct)
    assert [stop.label for stop in track] == list(STOPS)
    assert [stop.label for stop in track if stop.status == "now"] == [now]
    at = STOPS.index(now)
    assert [stop.status for stop in track] == ["done"] * at + ["now"] + ["todo"] * (len(STOPS) - at - 1)


@pytest.mark.parametrize("state", [VersionState.REJECTED, VersionState.RETIRED, VersionState.ROLLED_BACK])
def test_an_ended_release_has_no_track(state: str) -> None:
    assert release_track(state, 0) == []


@pytest.mark.parametrize(
    ("nusd", "text"),
    [(0.0, "$0"), (500_000.0, "$0.0005"), (646_400_000.0, "$0.65"), (1.29e9, "$1.29"), (12_345.4e9, "$12,345")],
)
def test_a_label_of_the_cost_axis_fits_beside_it(nusd, text):
    assert usd_tick(nusd) == text
    assert len(text) <= 7
