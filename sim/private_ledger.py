"""A simulation's own ledger: a fresh SQLite file that stands in for the operator's database while it runs."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connections

from common.errors import Refused

_KEPT = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
_THROWN_AWAY = "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF;"


@contextmanager
def private_ledger(path: Path | None = None) -> Iterator[Path]:
    """Make a migrated SQLite ledger this thread's default database; the operator's is back afterwards, untouched.

    ``path`` keeps the file; without it, it is thrown away with everything in the yielded folder, which is temporary
    in both cases. Raises ``Refused`` when ``path`` exists or its folder does not.
    """
    if path is not None and path.exists():
        raise Refused(f"{path} exists: a simulation writes a ledger of its own, never into another")
    if path is not None and not path.parent.is_dir():
        raise Refused(f"{path.parent} is not a folder")
    with tempfile.TemporaryDirectory(prefix="ratchet-sim-") as folder:
        file = path or Path(folder) / "ledger.sqlite3"
        with _default_database(file, _THROWN_AWAY if path is None else _KEPT):
            # Every command can open a ledger that is kept; one that is not needs the ledger's own tables only.
            call_command("migrate", *(["ledger"] if path is None else []), verbosity=0, interactive=False)
            yield Path(folder)


@contextmanager
def _default_database(file: Path, pragmas: str) -> Iterator[None]:
    own_settings, own = connections.settings[DEFAULT_DB_ALIAS], connections[DEFAULT_DB_ALIAS]
    connections.settings[DEFAULT_DB_ALIAS] = _sqlite(own_settings, file, pragmas)
    connections[DEFAULT_DB_ALIAS] = private = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        yield
    finally:
        private.close()
        connections.settings[DEFAULT_DB_ALIAS], connections[DEFAULT_DB_ALIAS] = own_settings, own


def _sqlite(defaults: dict[str, Any], file: Path, pragmas: str) -> dict[str, Any]:
    return {
        **defaults,
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(file),
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": False,
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE", "init_command": pragmas},
    }
