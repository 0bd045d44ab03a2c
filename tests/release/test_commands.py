"""The operators' commands: thin, with exit codes that scripts can rely on."""

import getpass
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from ledger.models import AdminAction, Event, RuntimeFlag, Task
from tests.release.builders import audits, place


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def fails(code: int, *arguments: str) -> str:
    with pytest.raises(CommandError) as error:
        run(*arguments)
    assert error.value.returncode == code
    assert not AdminAction.objects.exists()
    return str(error.value)


@pytest.mark.req("FR-12.1")
def test_the_commands_call_the_services_as_the_shells_user(make_version):
    canary = make_version("canary")
    assert run("rollback", "v1", "--reason", "bad answers") == "default v1: canary 10% -> rolled back\n"
    action = AdminAction.objects.get()
    assert (action.actor, action.action, action.reason) == (f"cli:{getpass.getuser()}", "rollback", "bad answers")
    forced = ("promote", "1", "--to", "canary", "--traffic-pct", "30", "--force", "--reason", "try it again")
    assert run(*forced) == "default v1: rolled back -> canary 30%\n"
    again = ("promote", "1", "--to", "canary", "--traffic-pct", "30", "--reason", "try it again")
    assert run(*again) == "nothing changed: default v1 is at canary 30% already\n"
    assert run("promote", "1", "--to", "live", "--reason", "good enough") == "default v1: canary 30% -> live\n"
    assert run("retire", "1", "--reason", "too old") == "default v1: live -> retired\n"
    assert place(canary) == ("retired", 0, 7)


@pytest.mark.req("FR-12.1")
def test_a_refusal_is_exit_code_1(make_version):
    make_version("live")
    expected = "v1 is live, and only a canary is rolled back: retire it instead"
    assert fails(1, "rollback", "1", "--reason", "bad answers") == expected
    assert fails(1, "retire", "9", "--reason", "bad answers") == "student default has no version 9"
    assert fails(1, "retire", "1", "--student", "x", "--reason", "bad answers") == "student x has no version 1"


@pytest.mark.req("FR-12.1")
@pytest.mark.parametrize(
    "arguments",
    [("rollback", "x", "--reason", "abc"), ("rollback", "1", "--reason", "ab"), ("promote", "1", "--reason", "abc"),
     ("pin", "default", "--reason", "a\nb"), ("flag", "releases_frozen", "on", "--reason", "")],
)  # fmt: skip
def test_a_bad_argument_is_refused_by_the_parser(student, arguments):
    with pytest.raises(CommandError, match=r"^Error: "):
        run(*arguments)


@pytest.mark.req("FR-12.1")
def test_pins_by_command(student):
    assert run("pin", "default", "--reason", "incident") == "task default pinned to the teacher\n"
    assert Task.objects.get().is_runtime_pinned
    assert run("unpin", "default", "--reason", "over") == "task default unpinned\n"
    assert run("unpin", "default", "--reason", "over") == "nothing changed: default is not pinned\n"


@pytest.mark.req("FR-12.1")
def test_switches_by_command(student):
    shown = "student_disabled off\nreleases_frozen off\ntraining_paused off\naudit_rate default\n"
    assert run("flag") == shown
    assert fails(2, "flag", "audit_rate", "nan", "--reason", "abc") == (
        "audit_rate must be a number from 0 to 1, or default"
    )
    assert fails(2, "flag", "audit_rate", "0.5") == "to set a switch, give its value and --reason"
    assert fails(2, "flag", "audit_rate", "--reason", "abc") == "to set a switch, give its value and --reason"
    assert run("flag", "releases_frozen", "on", "--reason", "incident") == "releases_frozen: off -> on\n"
    assert run("flag", "audit_rate", "0.5", "--reason", "incident") == "audit_rate: default -> 0.5\n"
    assert run("flag").splitlines()[1:] == ["releases_frozen on", "training_paused off", "audit_rate 0.5"]
    assert RuntimeFlag.objects.count() == 2


@pytest.mark.req("FR-12.1")
def test_audits_off_during_a_canary_need_force_on_the_command_line(make_version):
    make_version("canary")
    assert "is a canary" in fails(1, "flag", "audit_rate", "0", "--reason", "cost")
    assert run("flag", "audit_rate", "0", "--force", "--reason", "cost") == "audit_rate: default -> 0\n"


@pytest.mark.req("FR-8.4")
def test_the_tick_command_prints_what_happened(make_version):
    assert run("tick") == "nothing to do\n"
    canary = make_version("canary")
    audits(canary, 20, 20)
    assert run("tick") == "v1: canary 50%: 20 of 20 audits agree (100.0%) at 10%\n"


@pytest.mark.req("FR-8.4")
def test_the_tick_task_has_its_name_and_queue_and_runs_the_gate(make_version):
    from release.tasks import tick

    canary = make_version("canary")
    audits(canary, 20, 20)
    assert (tick.name, tick.queue) == ("release.tick", "gate")
    assert tick.apply().get() == ["v1: canary 50%: 20 of 20 audits agree (100.0%) at 10%"]
    assert Event.objects.count() == 1
