"""Before the demo's system starts: a fresh folder, a fresh database, and the command again in its own environment."""

import os
import shutil
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
QUEUE_KEYS = ("checks", "gate", "nights", "maintenance", "unacked", "unacked_index")


class LaunchFailed(Exception):
    """The demo cannot start; the text says why."""


def fresh_folder(folder: Path) -> None:
    """Empty the demo's folder. Raises ``LaunchFailed`` for a folder that holds something else."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MARKER).exists():
        raise LaunchFailed(f"{folder} is not empty and not a demo's: choose another with --dir")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARKER).touch()


def fresh_services(database_url: str, redis_url: str) -> Services:
    """Make an empty database called ``ratchet_demo`` beside the one named, and drop the queues' old messages.

    Raises ``LaunchFailed`` when a service is missing.
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
            server.delete(*QUEUE_KEYS)
    except redis.RedisError as error:
        raise LaunchFailed(f"cannot use Redis (REDIS_URL): {error}") from error
    return Services(urlunsplit(parts._replace(path=f"/{DATABASE_NAME}")), redis_url)


def start_again(folder: Path, services: Services) -> NoReturn:
    """Replace this process by the same command in the demo's environment."""
    port = free_port()
    environment = demo_environment(os.environ, folder, port, services) | {TEACHER_PORT: str(port)}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)  # noqa: S606 - our own command line
