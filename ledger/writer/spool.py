"""The local spool: entries that could not be committed, encrypted as they would be in the database, until they can be.

One file an entry. Whoever writes an entry holds the lock of its file, which the kernel takes back from a process that
dies; the request's primary key makes a second write of the same entry impossible.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date, datetime
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken

from ledger.rows import CheckRow, ExampleRow, LedgerEntry, RequestRow

SUFFIX = ".entry"


class EntryRefused(Exception):
    """The ledger will never take this entry (a constraint or a value it refuses); trying again cannot help."""


class Spool:
    """A folder of encrypted entries. ``fernet`` is the key that unsettled checks are encrypted under."""

    def __init__(self, folder: Path, fernet: Fernet) -> None:
        self._folder = folder
        self._fernet = fernet

    def keep(self, entries: Iterable[LedgerEntry]) -> None:
        """Write entries to disk, durably. Raises ``OSError`` when the disk takes no more."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for entry in entries:
            path = self._folder / f"{entry.request.id.hex}{SUFFIX}"
            temporary = path.with_suffix(".part")
            with temporary.open("wb") as file:
                file.write(self._fernet.encrypt(_dump(entry)))
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
        _sync_folder(self._folder)

    def count(self) -> int:
        """Return how many entries wait."""
        return sum(1 for _ in self._folder.glob(f"*{SUFFIX}")) if self._folder.is_dir() else 0

    def drain(self, write: Callable[[LedgerEntry], None], limit: int = 500) -> int:
        """Write up to ``limit`` waiting entries and remove them; return how many.

        ``write`` must be silent about an entry that is already in the ledger. What it raises ends the drain, with the
        entry still in its place; after ``EntryRefused`` the drain goes on, and the entry is left beside as ``.refused``
        for a person, as one that cannot be read is as ``.unreadable``. Entries that another process is writing at this
        moment are passed over.
        """
        waiting = sorted(self._folder.glob(f"*{SUFFIX}"))[:limit] if self._folder.is_dir() else []
        return sum(self._write_one(path, write) for path in waiting)

    def _write_one(self, path: Path, write: Callable[[LedgerEntry], None]) -> bool:
        with _claimed(path) as file:
            if file is None:
                return False
            try:
                entry = _load(self._fernet.decrypt(file.read()))
            except (InvalidToken, ValueError, TypeError, KeyError, AttributeError):
                path.rename(path.with_suffix(".unreadable"))
                return False
            try:
                write(entry)
            except EntryRefused:
                path.rename(path.with_suffix(".refused"))
                return False
            path.unlink()
            return True


@contextmanager
def _claimed(path: Path) -> Iterator[BinaryIO | None]:
    """Open ``path`` under its lock; ``None`` when somebody else holds it or has just done with it."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        yield None
        return
    with file:
        yield file if _lock(file) and _is_still(path, file) else None


def _lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(path: Path, file: BinaryIO) -> bool:
    try:
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    """Make the names of new files durable too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _dump(entry: LedgerEntry) -> bytes:
    return json.dumps(asdict(entry), default=_text).encode()


def _text(value: Any) -> str:
    """Write what JSON has no type for; ``_load`` knows which columns these are, so that no content is taken for one."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(type(value).__name__)


def _load(data: bytes) -> LedgerEntry:
    document = json.loads(data)
    request, examples, check = document["request"], document["examples"], document["check"]
    request |= {
        "id": UUID(request["id"]),
        "at": datetime.fromisoformat(request["at"]),
        "on": date.fromisoformat(request["on"]),
    }
    if check is not None and check["payload"] is not None:
        check["payload"] = check["payload"].encode("latin-1")
    return LedgerEntry(
        request=RequestRow(**request),
        examples=[ExampleRow(**{**row, "at": datetime.fromisoformat(row["at"])}) for row in examples],
        check=CheckRow(**check) if check is not None else None,
    )
