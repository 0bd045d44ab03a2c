"""What a request through the gateway costs, beside the same request through a forwarder that does nothing else."""

import json
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connection

from ledger.models import Request
from ratchet_project.processes import process_specs
from tests.benchmarks.processes import BASE, cores, cpu_s, process, python_module, wait_until_open
from tests.conftest import TEACHER_MODEL, free_port

ROUNDS = 3
CONNECTIONS = (1, 16)
DURATION_S = 2.0
MAX_REQUESTS = 20_000
WARM_UP = 400
KEY = "a-key-of-the-benchmark"
GATEWAY, BARE = "ratchet_project.asgi:application", "tests.benchmarks.forwarder:application"
OURS = ("RATCHET_", "DJANGO_", "DATABASE_URL", "REDIS_URL", "CELERY_")


@dataclass(frozen=True, slots=True)
class Server:
    """A server under test: its application, port and process."""

    application: str
    port: int
    pid: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One measuring run: answers by status, requests a second, CPU microseconds a request."""

    statuses: dict[str, int]
    per_s: float
    cpu_us: float


def database_url() -> str:
    """Return the URL of the database that this test runs on: the temporary one, not the one it is made beside."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()


def server_environment(base_url: str, folder: Path) -> dict[str, str]:
    """Return the environment of both servers: nothing of this machine's own settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS)} | {
        "BENCHMARK_UPSTREAM": f"{base_url}/chat/completions",
        "DATABASE_URL": database_url(),
        "RATCHET_ENV_FILE": os.devnull,
        "RATCHET_VAR_DIR": str(folder / "var"),
        "RATCHET_TEACHER_BASE_URL": base_url,
        "RATCHET_TEACHER_API_KEY": "upstream",
        "RATCHET_TEACHER_MODEL": TEACHER_MODEL,
        "RATCHET_API_KEYS": f"benchmark:{KEY}",
    }


@contextmanager
def servers(folder: Path) -> Iterator[list[Server]]:
    """Run the upstream, and on it the bare forwarder and the gateway, on the command line of ``manage.py serve``."""
    server_core, other_cores = cores()
    with ExitStack() as stack:
        source = stack.enter_context(
            process(python_module("upstream"), dict(os.environ), other_cores, folder / "upstream.log")
        )
        assert source.stdout is not None
        environment = server_environment(f"http://127.0.0.1:{int(source.stdout.readline())}/v1", folder)
        started = []
        for application in (BARE, GATEWAY):
            port, log = free_port(), folder / f"{application.split('.')[0]}.log"
            web = process_specs(BASE, "127.0.0.1", port)[0]
            argv = [application if part == GATEWAY else part for part in web.argv]
            assert application in argv
            child = stack.enter_context(process(argv, environment, server_core, log))
            wait_until_open(port, child, log)
            started.append(Server(application, port, child.pid))
        yield started


class Bench:
    """Sends load to the servers and counts what every one of them answered."""

    def __init__(self, folder: Path) -> None:
        self.n_answers: dict[str, int] = defaultdict(int)
        self._log = folder / "load.log"
        self._first = 0

    def measure(self, server: Server, n_connections: int, limit: int = MAX_REQUESTS) -> Sample:
        """Run the load in a process of its own for ``DURATION_S`` or ``limit`` requests, whichever ends first."""
        arguments = (server.port, n_connections, DURATION_S, limit, KEY, self._first)
        self._first += limit
        before = cpu_s(server.pid)
        with process(python_module("load", *arguments), dict(os.environ), cores()[1], self._log) as load:
            printed, _ = load.communicate(timeout=120)
        used_s = cpu_s(server.pid) - before
        assert load.returncode == 0, self._log.read_text()
        result = json.loads(printed)
        n_answers = sum(result["statuses"].values())
        self.n_answers[server.application] += n_answers
        return Sample(result["statuses"], n_answers / result["seconds"], used_s * 1e6 / n_answers)


def table(medians: dict[tuple[str, int], tuple[float, float]]) -> str:
    """Return the medians as text, with the ratios of the gateway to the bare forwarder."""
    lines = [f"\n{'':>12}{'requests/s':>26}{'CPU us/request':>30}", f"{'connections':>12}"]
    lines[1] += f"{'bare':>10}{'gateway':>10}{'ratio':>8}" * 2
    for n_connections in CONNECTIONS:
        (bare_rate, bare_cpu), (rate, cpu) = (medians[name, n_connections] for name in (BARE, GATEWAY))
        lines.append(
            f"{n_connections:>12}{bare_rate:>10,.0f}{rate:>10,.0f}{rate / bare_rate:>8.2f}"
            f"{bare_cpu:>10,.0f}{cpu:>10,.0f}{cpu / bare_cpu:>8.2f}"
        )
    return "\n".join(lines)


@pytest.mark.load
@pytest.mark.req("NFR-1")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="CPU time is read from /proc")
def test_a_request_costs_a_small_multiple_of_a_bare_forwarder(shared_ledger: None, tmp_path: Path) -> None:
    samples: dict[tuple[str, int], list[Sample]] = defaultdict(list)
    bench, load_before = Bench(tmp_path), os.getloadavg()[0]
    with servers(tmp_path) as started:
        for server in started:
            bench.measure(server, max(CONNECTIONS), WARM_UP)
        for _ in range(ROUNDS):
            for n_connections in CONNECTIONS:
                for server in started:
                    samples[server.application, n_connections].append(bench.measure(server, n_connections))
    medians = {
        which: (statistics.median(s.per_s for s in runs), statistics.median(s.cpu_us for s in runs))
        for which, runs in samples.items()
    }
    how = f"{connection.vendor}, medians of {ROUNDS} rounds of {DURATION_S:g} s, load average before: {load_before:.2f}"
    sys.stdout.write(f"{table(medians)}\n({how})\n")
    statuses = {status for runs in samples.values() for sample in runs for status in sample.statuses}
    assert statuses == {"200"}
    assert Request.objects.filter(client="benchmark", served_by="teacher").count() == bench.n_answers[GATEWAY]
    assert Request.objects.count() == bench.n_answers[GATEWAY]
    (bare_rate, bare_cpu), (rate, cpu) = medians[BARE, 16], medians[GATEWAY, 16]
    assert cpu < 6 * bare_cpu
    assert rate > bare_rate / 8
