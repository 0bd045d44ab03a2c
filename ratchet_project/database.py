"""``DATABASE_URL``: which database, and how it is connected to."""

import warnings
from pathlib import Path
from typing import Any

import environ

from common.errors import ConfigurationError
from ratchet_project.environment import Environment

POSTGRESQL = "django.db.backends.postgresql"
SQLITE = "django.db.backends.sqlite3"
MUST = (
    "DATABASE_URL: must be postgres://user:password@host:5432/name, or sqlite:////path/to/file; "
    "percent-encode what is not a letter or a digit in the password"
)


def database_settings(env: Environment, var: Path) -> dict[str, Any]:
    """Return Django's settings of the database; without ``DATABASE_URL`` it is an SQLite file in ``var``."""
    url = env.text("DATABASE_URL")
    size = env.integer("RATCHET_DB_POOL_SIZE", 16, 4, 1000)
    database: dict[str, Any] = _read(url) if url else {"ENGINE": SQLITE, "NAME": str(var / "ratchet.sqlite3")}
    options: dict[str, Any] = database.pop("OPTIONS", {})
    if database["ENGINE"] == SQLITE:
        options |= {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        }
    else:
        # Under ASGI every request of the full stack has a thread of its own; only a pool lets them share connections.
        options |= {"pool": {"min_size": 1, "max_size": size, "timeout": 10}}
        database["CONN_HEALTH_CHECKS"] = True
    return database | {"OPTIONS": options}


def _read(url: str) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they quote the URL
            database: dict[str, Any] = environ.Env.db_url_config(url)
    except ValueError:
        raise ConfigurationError(MUST) from None  # the cause quotes a part of the password
    if database.get("ENGINE") not in (POSTGRESQL, SQLITE) or not database["NAME"]:
        raise ConfigurationError(MUST)
    return database
