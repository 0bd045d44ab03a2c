"""The embedded broker: kombu's filesystem transport, made safe for several processes.

The stock transport writes a message (and its table of bindings) in place, so another process can read a file that is
still empty; its consumer dies of that. It takes a message by moving it to the system's temporary folder: a copy, when
that is another file system, so that two workers take the same message, or half of it. Here every file appears whole, is
taken by rename inside its folder, and a table is changed under a lock. A file that a crash of the machine emptied is
dropped instead of stopping every reader.
"""

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from time import monotonic_ns
from typing import Any, NamedTuple
from uuid import uuid4

from kombu.exceptions import ChannelError
from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.transport.virtual import BrokerState
from kombu.utils.json import dumps, loads

logger = logging.getLogger(__name__)

SCHEME = "filesystem"


class Binding(NamedTuple):
    """A queue that takes an exchange's messages, as the table files hold it."""

    routing_key: str
    pattern: str
    queue: str


class Channel(filesystem.Channel):
    """A channel whose files are never seen half-written."""

    def _put(self, queue: str, payload: Any, **_: Any) -> None:
        name = f"{monotonic_ns():020d}_{uuid4()}.{queue}.msg"
        try:
            _write_whole(Path(self.data_folder_out) / name, payload)
        except OSError as error:
            raise ChannelError(f"cannot add a message to {self.data_folder_out}") from error

    def _get(self, queue: str, **_: Any) -> Any:
        """Take the oldest message of ``queue``; raises ``Empty`` when there is none."""
        folder = Path(self.data_folder_in)
        names = (entry.name for entry in os.scandir(folder))
        for name in sorted(name for name in names if name.partition(".")[2] == f"{queue}.msg"):
            taken = folder / f".{name}.taken"
            try:
                (folder / name).rename(taken)
            except FileNotFoundError:  # another worker was faster
                continue
            text = taken.read_text()
            taken.unlink()
            try:
                return loads(text)
            except ValueError:
                logger.warning("dropped a message of %s that cannot be read; the sweeps send it again", queue)
        raise Empty

    def get_table(self, exchange: str) -> list[Binding]:
        """Return the queues that are bound to ``exchange``."""
        try:
            rows = loads(self._exchange_file(exchange).read_text())
        except FileNotFoundError:
            return []
        except ValueError:  # emptied by a crash of the machine; the workers bind their queues again as they start
            return []
        return [Binding(*row) for row in rows]

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        bound = Binding(routing_key or "", pattern or "", queue or "")
        with self._locked(exchange):
            table = self.get_table(exchange)
            if bound not in table:
                _write_whole(self._exchange_file(exchange), [bound, *table])

    def _delete(self, queue: str, exchange: str, routing_key: str, pattern: str, *_: Any, **__: Any) -> None:
        self._purge(queue)
        gone = Binding(routing_key or "", pattern or "", queue or "")
        with self._locked(exchange):
            table = self.get_table(exchange)
            if gone in table:
                _write_whole(self._exchange_file(exchange), [bound for bound in table if bound != gone])

    @contextmanager
    def _locked(self, exchange: str) -> Iterator[None]:
        path = self._exchange_file(exchange).with_suffix(".lock")
        path.parent.mkdir(exist_ok=True)
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class Transport(filesystem.Transport):
    """The filesystem transport on these channels."""

    Channel = Channel

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__(client, **options)
        # Shared by all threads, the stock transport's state says that a queue is bound before the file says so, and a
        # message sent in between is dropped.
        self.state = BrokerState()


def install() -> None:
    """Make ``filesystem://`` mean this transport."""
    TRANSPORT_ALIASES[SCHEME] = f"{__name__}:{Transport.__name__}"


def _write_whole(path: Path, document: Any) -> None:
    temporary = path.with_name(f".{uuid4()}.part")
    try:
        temporary.write_text(dumps(document))
        temporary.replace(path)
    except OSError:  # a full disk leaves a part of it
        temporary.unlink(missing_ok=True)
        raise
