"""Serving one request: admission, cascade, ledger write. One ``Gateway`` per process, started with its event loop.

The walk of a request: ``api.chat_completions`` parses and authorises, ``Gateway.answer`` below does the rest.
"""

import asyncio
import logging
import random
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from time import monotonic, perf_counter

from django.db import connections

from common.clock import Clock
from gateway.cascade.bill import Bill
from gateway.cascade.check import CheckInput
from gateway.cascade.serve import Served, serve
from gateway.cascade.types import CallFailed, CascadeRequest, RequiredCallFailed
from gateway.dispatch import CheckDispatcher
from gateway.drivers import drive
from gateway.failures import FailureLog
from gateway.incoming import Admitted, Incoming, admit
from gateway.models import Models
from gateway.payload import CheckPayload, fernet
from gateway.permission import admitted_now
from gateway.recording import check_input, request_row, served_example
from gateway.settings import GatewaySettings
from gateway.settling import SettlingContext, settle_check
from gateway.snapshot import Snapshot, build_snapshot, read_epoch
from gateway.upstream.breaker import Transition
from gateway.watcher import SnapshotWatcher
from ledger.rows import CheckRow, ExampleRow, LedgerEntry, RequestRow
from ledger.writer.spool import Spool
from ledger.writer.thread import LedgerWriter

log = logging.getLogger("ratchet.gateway")

DRAIN_S = 5.0
SETTLE_REST_S = 20.0


class Gateway:
    """The serving state of one process: snapshot, models, ledger writer, dispatcher."""

    def __init__(
        self,
        settings: GatewaySettings,
        clock: Clock,
        draws: random.Random,
        *,
        dispatcher: CheckDispatcher,
        failures: FailureLog,
        holder: str,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.failures = failures
        self._draws = draws
        self._dispatcher = dispatcher
        self._holder = holder
        self._cipher = fernet(settings.data_key)
        self.models = Models(settings, random.Random(draws.getrandbits(64)), report=self._circuit)
        self.snapshots = SnapshotWatcher(lambda: build_snapshot(settings), read_epoch, settings.snapshot_poll_s)
        self.writer = LedgerWriter(
            Spool(Path(settings.spool_dir), self._cipher),
            settings.max_queue,
            self._committed,
            on_recovery=self._recovered,
        )
        self._held: dict[str, CheckPayload] = {}
        self._settlers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="held-checks")
        self._settling: set[Future[None]] = set()
        self.n_inflight = 0

    def start(self) -> None:
        """Start the threads this process owns; called on the event loop."""
        self.snapshots.start()
        self.writer.start()
        self._dispatcher.start()
        self.failures.start()

    async def stop(self) -> None:
        """Let requests end, commit what is queued and close everything."""
        await self._drain()
        await asyncio.to_thread(self.writer.stop)
        self._dispatcher.stop()
        await asyncio.to_thread(self._settle_rest)
        self.failures.stop()
        self.snapshots.stop()
        await self.models.aclose()

    async def _drain(self) -> None:
        """Wait for requests that the server gave up on: each still has to say what it had spent."""
        deadline = monotonic() + DRAIN_S
        while self.n_inflight and monotonic() < deadline:
            await asyncio.sleep(0.01)

    def _settle_rest(self) -> None:
        """Settle the checks whose text only this process has, for a while; the rest are lost with it."""
        wait(tuple(self._settling), timeout=SETTLE_REST_S)
        self._settlers.shutdown(wait=False, cancel_futures=True)

    async def answer(self, incoming: Incoming, snapshot: Snapshot) -> tuple[Served, RequestRow]:
        """Serve one request and return once its row is durable.

        Raises ``RequiredCallFailed`` when the teacher had to answer and could not, ``UnknownTask`` when the task is
        refused, ``QueueFull`` before any call when the ledger cannot keep up.
        """
        self.writer.require_room()
        started = perf_counter()
        admitted = admit(incoming, snapshot, self.settings)
        served, admitted = await self._serve(incoming, admitted, snapshot)
        row = request_row(incoming, admitted, served, wall_ms=(perf_counter() - started) * 1000)
        examples = self._examples(incoming, admitted, served)
        row.stored = bool(examples)
        owed = check_input(admitted, served)
        check = self._check_row(row, owed, admitted) if owed is not None else None
        await self.writer.write(LedgerEntry(row, examples, check))
        return served, row

    async def _serve(self, incoming: Incoming, admitted: Admitted, snapshot: Snapshot) -> tuple[Served, Admitted]:
        """Run the cascade; return what was served, with what may be stored of it now that the models have answered.

        What a request that is stopped midway had spent is in its failure row.
        """
        bill = Bill()
        try:
            served = await drive(serve(admitted.request, snapshot.policy, self._draws, bill), self.models.ask)
            if served.teacher is not None or served.check is not None:
                now = await self.snapshots.current()
                if now is not snapshot:
                    admitted = admitted_now(incoming, admitted, now, self.settings)
        except RequiredCallFailed as error:
            self._report(admitted.request, error.earlier, incoming)
            raise
        except asyncio.CancelledError:
            self._cancelled(incoming, bill)
            raise
        self._report(admitted.request, served.failures, incoming)
        return served, admitted

    def _examples(self, incoming: Incoming, admitted: Admitted, served: Served) -> list[ExampleRow]:
        """Return what is stored of a served request, none or one; storing is optional and fails no request (INV-7)."""
        try:
            return served_example(incoming, admitted, served, self.settings)
        except Exception as error:  # noqa: BLE001 - whatever redaction or hashing met in the text
            self.failures.optional(
                "store_error",
                type(error).__name__,
                at=incoming.at,
                request_id=incoming.id,
                client=incoming.client,
                task=incoming.task,
            )
            return []

    def _check_row(self, row: RequestRow, owed: CheckInput, admitted: Admitted) -> CheckRow:
        """Return the outbox row; the text of an opted-out request stays in this process's memory."""
        payload = CheckPayload.of(owed, admitted.end_users)
        is_held = bool(row.store_opt_out)
        if is_held:
            self._held[row.id.hex] = payload
        return CheckRow(
            wants_audit=owed.wants_audit,
            version_id=row.version_id,
            shadow_version_id=row.shadow_version_id,
            payload=None if is_held else payload.seal(self._cipher),
            holder=self._holder if is_held else "",
        )

    def _committed(self, entries: Sequence[LedgerEntry]) -> None:
        """On the writer's thread: pass committed checks on."""
        owed = [entry for entry in entries if entry.check is not None]
        if not owed:
            return
        self._dispatcher.put([entry.request.id.hex for entry in owed if entry.check and entry.check.payload])
        for entry in owed:
            held = self._held.pop(entry.request.id.hex, None)
            if held is not None:
                settling = self._settlers.submit(self._settle_held, entry.request, held)
                self._settling.add(settling)
                settling.add_done_callback(self._settling.discard)

    def _settle_held(self, row: RequestRow, held: CheckPayload) -> None:
        context = SettlingContext(self.settings, self.models, self.clock, self._cipher)
        try:
            settle_check(row.id, context, held)
        except Exception as error:  # noqa: BLE001 - the sweep settles it as lost; the thread must live on
            log.error("check of an opted-out request could not be settled: %s", type(error).__name__)
        finally:
            connections.close_all()

    def _recovered(self, n_rows: int) -> None:
        detail = f"the ledger could not be written for a while; {n_rows} rows were kept on disk and are written now"
        self.failures.event("spool", detail, at=self.clock.now())

    def _circuit(self, transition: Transition) -> None:
        self.failures.event("circuit", str(transition), at=self.clock.now())

    def _cancelled(self, incoming: Incoming, bill: Bill) -> None:
        self.failures.refused(
            "cancelled",
            "CancelledError",
            at=incoming.at,
            request_id=incoming.id,
            client=incoming.client,
            task=incoming.task,
            cost_nusd=bill.cost_nusd,
        )

    def _report(self, request: CascadeRequest, failed: Sequence[CallFailed], incoming: Incoming) -> None:
        for failure in failed:
            self.failures.optional(
                "student_breaker" if failure.is_breaker_open else "student_error",
                failure.kind,
                at=incoming.at,
                request_id=incoming.id,
                client=incoming.client,
                task=request.task.name,
            )
