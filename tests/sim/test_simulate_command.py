"""``manage.py simulate``: options in, table and results file out."""

import json
import sqlite3
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from ledger.models import Request, Version

QUICK = ["--days", "2", "--requests", "200", "--min-new", "20"]


def simulate(*options: str) -> str:
    """Run the command and return what it prints."""
    out = StringIO()
    call_command("simulate", *QUICK, *options, stdout=out)
    return out.getvalue()


@pytest.mark.req("FR-9.4", "INV-20")
@pytest.mark.django_db
def test_it_prints_the_day_table_and_events_says_it_simulates_and_writes_one_result_per_seed(tmp_path):
    path = tmp_path / "new" / "results.json"
    printed = simulate("--seed", "7", "--seed", "8", "--bad-deploy-version", "9", "--out", str(path))
    assert printed.splitlines()[0].startswith("Simulation: mock models")
    assert "day  student  escal. audit ok     $/1k all-teacher  saved" in printed
    assert "trained      v1: default-v1" in printed
    assert "corrupted v9: never trained" in printed
    assert "all-teacher -> saved" in printed
    runs = json.loads(path.read_text())
    assert [run["seed"] for run in runs] == [7, 8]
    assert set(runs[0]) >= {
        "inputs", "final_student_share", "final_day_savings", "total_savings", "min_audited_agreement",
        "bad_version_outcome", "requests", "cost_nusd", "all_teacher_nusd", "days", "events", "versions",
    }  # fmt: skip
    assert runs[0]["requests"] == 400
    assert runs[0]["inputs"]["min_new"] == 20
    assert [day["day"] for day in runs[0]["days"]] == [1, 2]
    assert not Request.objects.exists()
    assert not Version.objects.exists()


@pytest.mark.req("FR-9.4")
@pytest.mark.django_db
def test_db_keeps_the_ledger_and_refuses_an_existing_file_or_several_seeds(tmp_path):
    path, out = tmp_path / "run.sqlite3", str(tmp_path / "results.json")
    simulate("--db", str(path), "--out", out)
    with sqlite3.connect(path) as kept:
        assert kept.execute("select count(*) from ledger_request").fetchone() == (400,)
    for options in (["--db", str(path)], ["--db", str(tmp_path / "b"), "--seed", "1", "--seed", "2"]):
        with pytest.raises(CommandError, match="--db") as caught:
            simulate(*options, "--out", out)
        assert caught.value.returncode == 2
    assert not (tmp_path / "b").exists()


@pytest.mark.req("FR-9.4")
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--days", "0"),
        ("--requests", "-1"),
        ("--min-shadow", "0"),
        ("--min-audits", "0"),
        ("--min-new", "0"),
        ("--drift-day", "-1"),
        ("--bad-deploy-version", "-3"),
        ("--threshold", "1.5"),
        ("--audit-rate", "-0.1"),
        ("--audit-rate", "nan"),
    ],
)
def test_an_option_out_of_range_is_named_and_exits_2(option, value, tmp_path):
    with pytest.raises(CommandError, match=f"{option}: must be") as caught:
        simulate(option, value, "--out", str(tmp_path / "results.json"))
    assert caught.value.returncode == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.req("FR-9.4")
def test_an_unknown_workload_or_a_results_path_that_is_a_folder_is_refused(tmp_path):
    with pytest.raises(CommandError, match="workload"):
        simulate("--workload", "poems")
    with pytest.raises(CommandError, match="--out") as caught:
        simulate("--out", str(tmp_path))
    assert caught.value.returncode == 2
