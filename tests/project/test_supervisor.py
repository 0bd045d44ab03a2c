"""Running several processes together."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ratchet_project import supervisor as module
from ratchet_project.supervisor import CannotStart, Patience, ProcessSpec, Supervisor, describe

FAST = Patience(backoff_first_s=0.01, settled_after_s=0.0, stop_wait_s=5.0)
NEVER_SETTLED = Patience(backoff_first_s=0.01, settled_after_s=60.0, stop_wait_s=5.0)
BASE = Path(__file__).resolve().parents[2]
SLEEP = "import time; print('up', flush=True); time.sleep(60)"


def python(code):
    return [sys.executable, "-S", "-c", code]


class Output:
    """What the supervisor wrote, and a way to wait for it."""

    def __init__(self):
        self.text = ""
        self._changed = threading.Condition()

    def write(self, text):
        with self._changed:
            self.text += text
            self._changed.notify_all()

    def wait_for(self, text, times=1):
        with self._changed:
            assert self._changed.wait_for(lambda: self.text.count(text) >= times, 30), self.text


class Running:
    """A supervisor in a thread of its own."""

    def __init__(self, specs, patience=FAST, output=None):
        self.output = output or Output()
        self.supervisor = Supervisor(specs, self.output.write, patience)
        self.error = None
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            self.supervisor.run()
        except (CannotStart, OSError) as error:
            self.error = error

    def join(self):
        self._thread.join(30)
        assert not self._thread.is_alive()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.supervisor.stop()
        self.join()


def wait_until(holds):
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_each_line_of_output_carries_the_name_of_its_process():
    with Running([ProcessSpec("web", python(SLEEP)), ProcessSpec("worker", python(SLEEP))]) as running:
        running.output.wait_for("web    | up\n")
        running.output.wait_for("worker | up\n")


def test_a_process_that_dies_is_started_again_and_the_others_are_left_alone():
    with Running([ProcessSpec("a", python(SLEEP)), ProcessSpec("b", python(SLEEP))]) as running:
        running.output.wait_for("a | up")
        running.output.wait_for("b | up")
        before = running.supervisor.pids
        os.kill(before["a"], signal.SIGKILL)
        running.output.wait_for("a | up", times=2)
        assert "a | ended by SIGKILL; starting it again in 0.01 s\n" in running.output.text
        after = running.supervisor.pids
        assert after["a"] != before["a"]
        assert after["b"] == before["b"]


def test_stopping_ends_every_process_and_its_children():
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'])\n"
        "print('child', child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with Running([ProcessSpec("a", python(code))]) as running:
        running.output.wait_for("child")
        parent = running.supervisor.pids["a"]
        child = int(running.output.text.split("child ")[1].split()[0])
    assert is_gone(parent)
    wait_until(lambda: is_gone(child) or _is_zombie(child))
    assert running.supervisor.pids == {}


def _is_zombie(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_a_process_that_ignores_sigterm_is_killed_after_the_wait():
    code = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{SLEEP}"
    patience = Patience(backoff_first_s=0.01, settled_after_s=0.0, stop_wait_s=0.2)
    with Running([ProcessSpec("a", python(code))], patience) as running:
        running.output.wait_for("a | up")
        pid = running.supervisor.pids["a"]
    assert "a | did not stop in time; killing it\n" in running.output.text
    assert is_gone(pid)


def test_a_process_that_never_gets_to_work_stops_everything_with_its_name_and_status():
    specs = [ProcessSpec("good", python(SLEEP)), ProcessSpec("bad", python("raise SystemExit(3)"))]
    with Running(specs, NEVER_SETTLED) as running:
        running.join()
    assert str(running.error) == "bad cannot start: it ended with status 3, 3 times in a row"
    assert running.supervisor.pids == {}


def test_a_process_that_once_worked_is_restarted_for_ever():
    with Running([ProcessSpec("a", python("print('up', flush=True)"))]) as running:
        running.output.wait_for("a | up", times=5)
    assert running.error is None


def test_a_command_that_does_not_exist_stops_everything():
    with Running([ProcessSpec("good", python(SLEEP)), ProcessSpec("bad", ["/nonexistent/program"])]) as running:
        running.join()
    assert isinstance(running.error, FileNotFoundError)
    assert running.supervisor.pids == {}


@pytest.mark.parametrize(
    ("status", "text"), [(0, "with status 0"), (1, "with status 1"), (-9, "by SIGKILL"), (-250, "by signal 250")]
)
def test_an_end_is_described_for_people(status, text):
    assert describe(status) == text


class ClosedPipe(Output):
    """An output that takes nothing any more after its first line, as ``make serve | head -1`` does."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        if self.text:
            raise self.error
        super().write(text)


@pytest.mark.parametrize(
    "error", [BrokenPipeError(), OSError(28, "No space left on device"), ValueError("I/O operation on closed file")]
)
def test_an_output_that_takes_no_more_stops_no_process_and_leaves_none_behind(tmp_path, error):
    """A process that nobody reads from stops at its next line, once its pipe is full."""
    done = tmp_path / "done"
    code = (
        "import pathlib, time\n"
        "for _ in range(3000): print('x' * 100, flush=True)\n"
        f"pathlib.Path({str(done)!r}).touch()\n"
        "time.sleep(60)\n"
    )
    output = ClosedPipe(error)
    with Running([ProcessSpec("a", python(code)), ProcessSpec("b", python(SLEEP))], output=output) as running:
        wait_until(done.exists)
        pids = running.supervisor.pids
        os.kill(pids["b"], signal.SIGKILL)
        wait_until(lambda: running.supervisor.pids.get("b", pids["b"]) != pids["b"])
    assert running.error is None
    assert all(is_gone(pid) for pid in pids.values())


def test_a_machine_that_cannot_start_a_process_just_now_keeps_the_others_and_tries_again(monkeypatch):
    with Running([ProcessSpec("a", python(SLEEP)), ProcessSpec("b", python(SLEEP))]) as running:
        running.output.wait_for("a | up")
        running.output.wait_for("b | up")
        before = running.supervisor.pids
        start = subprocess.Popen
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "Popen", lambda *_, **__: fail_to_fork())
            os.kill(before["a"], signal.SIGKILL)
            running.output.wait_for("a | cannot be started (Cannot allocate memory); starting it again in 0.01 s")
            patch.setattr(subprocess, "Popen", start)
        running.output.wait_for("a | up", times=2)
        assert running.supervisor.pids["b"] == before["b"]


def fail_to_fork():
    raise OSError(errno.ENOMEM, "Cannot allocate memory")


def test_a_supervisor_that_is_killed_leaves_no_process_running(tmp_path):
    """Without it, the next start finds its port taken and two beats tick."""
    pid_file = tmp_path / "pid"
    child = f"import os, pathlib, time; pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid())); time.sleep(60)"
    code = (
        "import sys\n"
        "from ratchet_project.supervisor import ProcessSpec, Supervisor\n"
        f"Supervisor([ProcessSpec('a', [sys.executable, '-S', '-c', {child!r}])]).run()\n"
    )
    supervisor = subprocess.Popen([sys.executable, "-c", code], cwd=BASE)
    wait_until(lambda: pid_file.exists() and pid_file.read_text())
    supervisor.kill()
    supervisor.wait()
    pid = int(pid_file.read_text())
    wait_until(lambda: is_gone(pid) or _is_zombie(pid))


def test_stopping_from_a_signal_handler_is_safe_at_any_line_of_the_loop(monkeypatch):
    """A handler runs between any two lines of the main thread, also while that holds a lock of the library's."""
    monkeypatch.setattr(module, "POLL_S", 0.001)
    assert [nth for nth in range(1, 60) if not stops_at_line(nth)] == []


def stops_at_line(nth):
    supervisor = Supervisor([], lambda _: None, FAST)
    n_lines = 0

    def trace(*_):
        nonlocal n_lines
        n_lines += 1
        if n_lines == nth:
            supervisor.stop()
        return trace

    def run():
        sys.settrace(trace)
        supervisor.run()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    return not thread.is_alive()
