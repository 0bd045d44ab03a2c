"""Before the demo's system starts: a fresh folder, a fresh database, and the command again in its own environment."""

import os
import shutil
import socket
import sys
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit, urlunsplit

import psycopg
import redis
from psycopg import sql

from sim.demo.environment import DATABASE_NAME, Services, demo_environment
from sim.demo.system import free_port

MARKER = ".ratchet-demo"
TEACHER_PORT = "RATCHET_DEMO_TEACHER_PORT"


class LaunchFailed(Exception):
    """The demo cannot start; the text says why."""


def fresh_folder(folder: Path) -> None:
    """Empty the demo's folder. Raises ``LaunchFailed`` for a folder that holds something else."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MARKER).exists():
        raise LaunchFailed(f"{folder} is not empty and not a demo's: choose another with --dir")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARKER).touch()


def require_free_port(port: int) -> None:
    """Raise ``LaunchFailed`` when somebody listens on ``port``: perhaps a demo that must not lose its folder."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise LaunchFailed(f"port {port} is taken, by another demo perhaps: stop it, or choose one with PORT=")


def fresh_services(database_url: str, redis_url: str) -> Services:
    """Make an empty database called ``ratchet_demo`` beside the one named, and empty the demo's own Redis database.

    Raises ``LaunchFailed`` when a service is missing, or when the Redis database holds something else.
    """
    if not database_url or not redis_url:
        raise LaunchFailed("--services needs DATABASE_URL and REDIS_URL (`make demo-services` starts both if needed)")
    parts = urlsplit(database_url)
    try:
        with psycopg.connect(database_url, autocommit=True, connect_timeout=5) as connection:
            name = sql.Identifier(DATABASE_NAME)
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
            connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
    except psycopg.Error as error:
        raise LaunchFailed(f"cannot make the database {DATABASE_NAME} (DATABASE_URL): {error}") from error
    try:
        with redis.Redis.from_url(redis_url, socket_connect_timeout=5) as server:
            _empty_redis(server)
    except redis.RedisError as error:
        raise LaunchFailed(f"cannot use Redis (REDIS_URL): {error}") from error
    return Services(urlunsplit(parts._replace(path=f"/{DATABASE_NAME}")), redis_url)


def _empty_redis(server: redis.Redis) -> None:
    if server.dbsize() and not server.exists(MARKER):
        raise LaunchFailed(
            "REDIS_URL: that Redis database holds other keys; name an empty one, e.g. with /9 at its end"
        )
    server.flushdb()
    server.set(MARKER, "1")


def start_again(folder: Path, services: Services) -> NoReturn:
    """Replace this process by the same command in the demo's environment."""
    port = free_port()
    environment = demo_environment(os.environ, folder, port, services) | {TEACHER_PORT: str(port)}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)  # noqa: S606 - our own command line
