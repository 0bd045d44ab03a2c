"""The local spool: entries that could not be committed, encrypted as they would be in the database, until they can be.

One file an entry, so that two processes never share one. A file is claimed by renaming it; the request's primary key
makes a second write of the same entry impossible.
"""

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken

from ledger.rows import CheckRow, ExampleRow, LedgerEntry, RequestRow

SUFFIX = ".entry"
CLAIMED = ".claimed"


class EntryRefused(Exception):
    """The ledger will never take this entry (a constraint or a value it refuses); trying again cannot help."""


class Spool:
    """A folder of encrypted entries. ``fernet`` is the key that unsettled checks are encrypted under."""

    def __init__(self, folder: Path, fernet: Fernet) -> None:
        self._folder = folder
        self._fernet = fernet

    def keep(self, entries: Iterable[LedgerEntry]) -> None:
        """Write entries to disk, durably."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for entry in entries:
            path = self._folder / f"{entry.request.id.hex}{SUFFIX}"
            temporary = path.with_suffix(".part")
            with temporary.open("wb") as file:
                file.write(self._fernet.encrypt(_dump(entry)))
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)

    def count(self) -> int:
        """Return how many entries wait."""
        return sum(1 for _ in self._folder.glob(f"*{SUFFIX}")) if self._folder.is_dir() else 0

    def drain(self, write: Callable[[LedgerEntry], None], limit: int = 500) -> int:
        """Write up to ``limit`` waiting entries and remove them; return how many.

        ``write`` must be silent about an entry that is already in the ledger. What it raises ends the drain, with the
        entry back in its place; after ``EntryRefused`` the drain goes on, and the entry is left beside as ``.refused``
        for a person, as one that cannot be read is as ``.unreadable``.
        """
        written = 0
        for path in sorted(self._folder.glob(f"*{SUFFIX}"))[:limit] if self._folder.is_dir() else ():
            claimed = path.with_suffix(CLAIMED)
            try:
                path.rename(claimed)
            except FileNotFoundError:
                continue
            try:
                entry = _load(self._fernet.decrypt(claimed.read_bytes()))
            except (InvalidToken, ValueError, TypeError, KeyError):
                claimed.rename(path.with_suffix(".unreadable"))
                continue
            try:
                write(entry)
            except EntryRefused:
                claimed.rename(path.with_suffix(".refused"))
                continue
            except BaseException:
                claimed.rename(path)
                raise
            claimed.unlink()
            written += 1
        return written

    def adopt(self) -> None:
        """Return entries that a dead process had claimed to the queue (called before the first drain)."""
        for path in self._folder.glob(f"*{CLAIMED}") if self._folder.is_dir() else ():
            path.rename(path.with_suffix(SUFFIX))


def _dump(entry: LedgerEntry) -> bytes:
    return json.dumps(asdict(entry), default=_encode).encode()


def _encode(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"$bytes": value.decode("latin-1")}
    if isinstance(value, UUID):
        return {"$uuid": value.hex}
    if isinstance(value, datetime):
        return {"$datetime": value.isoformat()}
    if isinstance(value, date):
        return {"$date": value.isoformat()}
    raise TypeError(type(value).__name__)


def _decode(document: dict[str, Any]) -> Any:
    if len(document) != 1:
        return document
    ((tag, text),) = document.items()
    readers: dict[str, Callable[[str], Any]] = {
        "$bytes": lambda text: text.encode("latin-1"),
        "$uuid": UUID,
        "$datetime": datetime.fromisoformat,
        "$date": date.fromisoformat,
    }
    return readers[tag](text) if tag in readers else document


def _load(data: bytes) -> LedgerEntry:
    document = json.loads(data, object_hook=_decode)
    return LedgerEntry(
        request=RequestRow(**document["request"]),
        examples=[ExampleRow(**row) for row in document["examples"]],
        check=CheckRow(**document["check"]) if document["check"] else None,
    )
