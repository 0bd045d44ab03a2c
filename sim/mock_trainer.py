"""The mock trainer: it remembers which tickets it was shown, which is all the skill model needs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway.settings import GatewaySettings
from ledger.taskspec import TaskSpec
from nightschool.settings import NightSettings
from nightschool.trainers.base import Progress, Row, Trained, TrainingFailed
from sim.mock_artefact import Learned, text_hash, write_artefact
from sim.tickets import recognise, ticket_text


class MockTrainer:
    """A ``nightschool.trainers.base.Trainer`` for ``RATCHET_TRAINERS``."""

    def __init__(self, _nights: NightSettings, gateway: GatewaySettings) -> None:
        self._folder = Path(gateway.artefact_dir)

    def train(
        self,
        adapter: str,
        base_model: str,  # noqa: ARG002 - the interface's
        rows: Sequence[Row],
        tasks: Mapping[str, TaskSpec],  # noqa: ARG002 - the interface's
        progress: Progress,
    ) -> Trained:
        """Write the artefact of ``adapter``; raises ``TrainingFailed`` when no row is a simulated ticket."""
        progress(0, len(rows), "reading tickets")
        texts = {ticket_text(row.messages) for row in rows}
        templates = {text: template.key for text in texts if (template := recognise(text)) is not None}
        if not templates:
            raise TrainingFailed("no training row is a simulated ticket")
        learned = Learned(Counter(templates.values()), frozenset(map(text_hash, templates)))
        artefact = write_artefact(self._folder, adapter, learned)
        progress(len(rows), len(rows), "done")
        return Trained(adapter, artefact, f"mock student: {len(templates)} distinct tickets")
