"""Serving from synchronous code, with checks settled inline: the simulator's gateway.

It runs the same admission, cascade, storage and rows as ``gateway.serving``; only the driver and the writer differ.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connections

from common.clock import Clock
from common.ids import uuid7
from gateway.cascade.check import check
from gateway.cascade.serve import Served, serve
from gateway.cascade.types import Params
from gateway.drivers import drive_sync
from gateway.incoming import Incoming, admit
from gateway.models import Models
from gateway.recording import apply_verdict, check_input, request_row, served_example
from gateway.settings import GatewaySettings
from gateway.snapshot import Snapshot, build_snapshot
from gateway.storing import example_of
from ledger.rows import LedgerEntry, RequestRow
from ledger.writer.batch import write_entries

BATCH = 200


class SyncEngine:
    """One synchronous gateway. ``draws`` decides canary picks and audits, and seeds the ids, for repeatability."""

    def __init__(
        self, settings: GatewaySettings, models: Models, clock: Clock, draws: random.Random, using: str = "default"
    ) -> None:
        self._settings = settings
        self._models = models
        self._clock = clock
        self._draws = draws
        self._ids = random.Random(draws.getrandbits(64))
        self._using = using
        self._pending: list[LedgerEntry] = []
        self.snapshot: Snapshot = build_snapshot(settings)

    def refresh(self) -> None:
        """Commit what is pending and read the routing state again."""
        self.flush()
        self.snapshot = build_snapshot(self._settings)

    def flush(self) -> None:
        """Commit the pending rows."""
        if self._pending:
            write_entries(self._pending, connections[self._using])
            self._pending = []

    def handle(
        self, task: str, messages: Sequence[Mapping[str, Any]], params: Params | None = None, client: str = ""
    ) -> tuple[Served, RequestRow]:
        """Serve one request and settle its checks; raises ``RequiredCallFailed`` when the teacher had to answer."""
        now = self._clock.now()
        incoming = Incoming(
            id=uuid7(now, self._ids.randbytes),
            at=now,
            messages=messages,
            params=params or Params(),
            task=task,
            client=client,
        )
        admitted = admit(incoming, self.snapshot, self._settings)
        policy = self.snapshot.policy
        served = drive_sync(serve(admitted.request, policy, self._draws), self._models.ask_sync)
        row = request_row(incoming, admitted, served, wall_ms=served.bill.latency_ms)
        examples = served_example(incoming, admitted, served, self._settings)
        owed = check_input(admitted, served)
        if owed is not None:
            verdict = drive_sync(check(owed, policy), self._models.ask_sync)
            apply_verdict(row, verdict)
            checked = example_of(
                admitted.request, verdict.teacher, self._settings, client=client, end_user=admitted.end_user, at=now
            )
            if checked is not None and not admitted.opt_out:
                examples.append(checked)
        row.stored = bool(examples)
        self._pending.append(LedgerEntry(row, examples))
        if len(self._pending) >= BATCH:
            self.flush()
        return served, row
