"""What every step of a night works with."""

from dataclasses import dataclass

from ledger.events import record_event
from ledger.models import Night, Student, Version
from nightschool.context import NightContext
from nightschool.lease import Lease


@dataclass(frozen=True, slots=True)
class NightRun:
    """One worker's hold on one night, as the step that it is in found it."""

    night: Night
    lease: Lease
    context: NightContext

    @property
    def student(self) -> Student:
        """The student whose night it is."""
        return self.night.student

    @property
    def version(self) -> Version:
        """The night's version, which every step after the first has; raises ``LookupError`` before."""
        if self.night.version is None:
            raise LookupError("the night has no version yet")
        return self.night.version

    def event(self, kind: str, detail: str, version: Version | None = None) -> None:
        """Append to the release log."""
        version_id = version.pk if version else None
        record_event(kind, detail, clock=self.context.clock, student_id=self.student.pk, version_id=version_id)
