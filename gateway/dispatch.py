"""Telling the workers about new checks. Losing a message only delays a check: the sweep finds it (INV-28).

Publishing happens on its own thread, so that a broker that hangs never holds up the ledger writer or a request.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

log = logging.getLogger("ratchet.dispatch")

MAX_WAITING = 10_000
MAX_IDS = 100
IDLE_S = 1.0


class CheckDispatcher:
    """Publishes the ids of committed checks in groups; drops what it cannot publish, and says so."""

    def __init__(self, publish: Callable[[list[str]], None]) -> None:
        self._publish = publish
        self._waiting: deque[str] = deque(maxlen=MAX_WAITING)
        self._wake = threading.Event()
        self._stopping = False
        self.n_dropped = 0
        self._thread = threading.Thread(target=self._run, name="check-dispatcher", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Publish what waits and end the thread."""
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout=5)

    def put(self, ids: Sequence[str]) -> None:
        """Queue ids; never blocks."""
        n_dropped = max(len(self._waiting) + len(ids) - MAX_WAITING, 0)
        self._waiting.extend(ids)
        self._wake.set()
        if n_dropped:
            self.n_dropped += n_dropped
            log.warning("the broker is behind: %d checks are left to the sweep", n_dropped)

    def _run(self) -> None:
        while not (self._stopping and not self._waiting):
            self._wake.wait(IDLE_S)
            self._wake.clear()
            while self._waiting:
                group = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_IDS))]
                try:
                    self._publish(group)
                except Exception as error:  # noqa: BLE001 - any broker error; the sweep will find these checks
                    kind = type(error).__name__
                    log.warning("broker refused %d checks (%s); the sweep will find them", len(group), kind)
                    break
