"""Nights of training, what they ran on and for how long."""

from django.db import models
from django.db.models import Q

from ledger.vocabulary import NIGHT_STEPS, NightState, Split


class Night(models.Model):
    """One training night: a persisted state machine that any worker can resume (``nightschool.night``)."""

    student = models.ForeignKey("ledger.Student", on_delete=models.PROTECT, related_name="nights")
    on = models.DateField(help_text="UTC date the night belongs to.")
    is_scheduled = models.BooleanField(default=True)
    state = models.CharField(max_length=10, choices=NightState.choices, default=NightState.BUILDING)
    version = models.ForeignKey(
        "ledger.Version", null=True, blank=True, on_delete=models.PROTECT, related_name="nights"
    )
    outcome = models.CharField(max_length=200, blank=True)
    done = models.PositiveIntegerField(default=0, help_text="Progress within the current step.")
    total = models.PositiveIntegerField(default=0)
    detail = models.CharField(max_length=200, blank=True)
    log = models.JSONField(default=list, blank=True)
    work = models.JSONField(default=dict, blank=True, help_text="What later steps need from earlier ones.")
    attempts = models.PositiveSmallIntegerField(default=0)
    holder = models.CharField(max_length=64, blank=True, help_text="The worker that runs it now.")
    held_until_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-started_at"]
        permissions = [("run_night", "Can start a night")]
        constraints = [
            models.UniqueConstraint(
                fields=["student"], condition=Q(state__in=NIGHT_STEPS), name="one_running_night_per_student"
            ),
            models.UniqueConstraint(
                fields=["student", "on"], condition=Q(is_scheduled=True), name="one_scheduled_night_per_date"
            ),
        ]

    def __str__(self) -> str:
        return f"night of {self.on} ({self.state})"

    @property
    def is_running(self) -> bool:
        """Whether it has not reached one of its ends."""
        return self.state in NIGHT_STEPS


class VersionLeaf(models.Model):
    """One row of a version's committed training or golden set. Append-only, in the database itself (INV-17)."""

    version = models.ForeignKey("ledger.Version", on_delete=models.PROTECT, related_name="leaves")
    split = models.CharField(max_length=6, choices=Split.choices)
    key = models.CharField(max_length=64, db_index=True, help_text="The example's hash.")
    value = models.CharField(max_length=64, help_text="SHA-256 of its label, teacher, licence and redaction count.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "split", "key"], name="version_leaf_once")]

    def __str__(self) -> str:
        return f"{self.split} {self.key[:12]}"


class ComputeInterval(models.Model):
    """When machines ran, at the price of that day."""

    KINDS = [("student_endpoint", "student endpoint"), ("training_job", "training job"), ("eval_job", "evaluation job")]

    kind = models.CharField(max_length=16, choices=KINDS)
    version = models.ForeignKey("ledger.Version", null=True, on_delete=models.PROTECT, related_name="+")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    nusd_per_hour = models.BigIntegerField(default=0)
    machines = models.PositiveSmallIntegerField(default=1)
    source = models.CharField(max_length=12)
    note = models.CharField(max_length=200, blank=True)

    class Meta:
        indexes = [models.Index(fields=["kind", "started_at"], name="compute_kind_started")]

    def __str__(self) -> str:
        return f"{self.kind} from {self.started_at:%Y-%m-%d %H:%M}"
