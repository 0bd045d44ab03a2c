"""The processes that make up a running Ratchet: web, workers and beat, as command lines."""

import sys
from pathlib import Path

from ratchet_project.supervisor import ProcessSpec

WORKER_QUEUES = "checks,gate,maintenance"
NIGHT_QUEUES = "nights"
WORKER_CONCURRENCY = 2


def process_specs(base_dir: Path, host: str, port: int, gateways: int = 1, workers: int = 1) -> list[ProcessSpec]:
    """Return web (``gateways`` processes on one port), ``workers`` workers, one worker for nights, and beat.

    Nights have a worker of their own, so that hours of training never hold up a check.
    """
    return [
        ProcessSpec("web", _web(host, port, gateways), base_dir),
        *(
            ProcessSpec(name, _worker(name, WORKER_QUEUES, WORKER_CONCURRENCY), base_dir)
            for name in (f"worker{number}" if workers > 1 else "worker" for number in range(1, workers + 1))
        ),
        ProcessSpec("nights", _worker("nights", NIGHT_QUEUES, 1), base_dir),
        ProcessSpec("beat", [*_celery("beat"), "--pidfile="], base_dir),
    ]


def _web(host: str, port: int, gateways: int) -> list[str]:
    return [
        *(sys.executable, "-m", "uvicorn", "ratchet_project.asgi:application"),
        *("--host", host, "--port", str(port), "--workers", str(gateways)),
        *("--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"),
        *("--timeout-graceful-shutdown", "15"),
    ]


def _worker(name: str, queues: str, concurrency: int) -> list[str]:
    # Mingle, gossip and heartbeats are broadcasts between workers that nothing here uses and the folder broker lacks.
    return [
        *_celery("worker"),
        *("-n", f"{name}@%h", "-Q", queues, "-c", str(concurrency)),
        *("--without-mingle", "--without-gossip", "--without-heartbeat"),
    ]


def _celery(command: str) -> list[str]:
    return [sys.executable, "-m", "celery", "-A", "ratchet_project", "-q", command, "--loglevel", "WARNING"]
