"""A whole running system in a folder of its own, for tests that kill parts of it."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sim.demo.environment import Services, demo_environment
from sim.demo.system import free_port, running, serve_command, teacher_command, wait_until_up

BASE = Path(__file__).resolve().parents[2]


class LiveSystem:
    """Web, workers, beat and the label teacher; the test reads its SQLite file and moves its clock."""

    def __init__(self, folder, **variables):
        self.folder = folder
        self.port, self.teacher_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1/"
        self.clock_file = folder / "clock_offset_s"
        self.environment = demo_environment(os.environ, folder, self.teacher_port, Services()) | variables

    @contextmanager
    def up(self, teacher_latency_ms=0.0):
        """Prepare the database and run everything."""
        self.python(
            "from django.core.management import call_command\n"
            "from common.clock import SystemClock\n"
            "from sim.demo import system\n"
            "call_command('setup')\n"
            "system.prepare(SystemClock())\n"
        )
        commands = {
            "teacher": teacher_command(self.teacher_port, teacher_latency_ms),
            "serve": serve_command(self.port, gateways=1, workers=1),
        }
        with ExitStack() as stack:
            saved = dict(os.environ)
            stack.callback(lambda: (os.environ.clear(), os.environ.update(saved)))
            os.environ.update(self.environment)
            processes = stack.enter_context(running(commands, self.folder, BASE))
            wait_until_up(f"{self.url}models", processes)
            self.serve_pid = processes[1].pid
            yield self

    def python(self, code):
        """Run code inside the system's settings and return what it printed."""
        setup = "import django; django.setup()\n"
        done = subprocess.run(
            [sys.executable, "-c", setup + code],
            env=self.environment,
            cwd=BASE,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def query(self, sql):
        """Return the rows of a query on the system's database."""
        connection = sqlite3.connect(self.folder / "ratchet.sqlite3", timeout=20)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def value(self, sql):
        """Return the one value of a query."""
        ((value,),) = self.query(sql)
        return value

    def wait_for(self, sql, wanted, timeout_s=180):
        """Poll a one-value query until it is as wanted."""
        deadline = time.monotonic() + timeout_s
        while (seen := self.value(sql)) != wanted:
            assert time.monotonic() < deadline, f"{sql}: {seen}\n{(self.folder / 'serve.log').read_text()[-3000:]}"
            time.sleep(0.05)

    def kill_worker(self, queues):
        """Kill -9 the worker of ``queues`` with all of its pool; return the process id it had."""
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                argv = (entry / "cmdline").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if parent == self.serve_pid and queues.encode() in argv:
                os.killpg(int(entry.name), signal.SIGKILL)
                return int(entry.name)
        raise AssertionError(f"no worker of {queues}")
