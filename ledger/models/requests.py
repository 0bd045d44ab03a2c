"""Requests served, the checks still owed on them, and what failed. Metadata only: never a word of text (INV-12)."""

from django.db import models
from django.db.models import Q

from ledger.vocabulary import AuditState, ShadowState


class Request(models.Model):
    """One served request. Columns mirror ``ledger.rows.RequestRow``."""

    id = models.UUIDField(primary_key=True)
    at = models.DateTimeField()
    on = models.DateField(help_text="UTC date.")
    student = models.ForeignKey("ledger.Student", on_delete=models.PROTECT, related_name="+")
    task = models.CharField(max_length=64)
    client = models.CharField(max_length=64, blank=True, help_text="API key name; empty for internal calls.")
    route = models.CharField(max_length=24)
    served_by = models.CharField(max_length=8, choices=[("student", "student"), ("teacher", "teacher")])
    version = models.ForeignKey("ledger.Version", null=True, on_delete=models.PROTECT, related_name="+")
    stage = models.PositiveSmallIntegerField(null=True, help_text="The version's stage at routing time.")
    confidence = models.FloatField(null=True)
    threshold = models.FloatField(null=True)
    label_p = models.FloatField(null=True, help_text="Designed probability that a teacher label is observed.")
    escalated = models.BooleanField(default=False)
    audit = models.CharField(max_length=12, choices=AuditState.choices, default=AuditState.NONE)
    shadow = models.CharField(max_length=12, choices=ShadowState.choices, default=ShadowState.NONE)
    shadow_version = models.ForeignKey("ledger.Version", null=True, on_delete=models.PROTECT, related_name="+")
    shadow_stage = models.PositiveSmallIntegerField(null=True)
    student_agree = models.BooleanField(null=True)
    cost_nusd = models.BigIntegerField(default=0)
    student_cost_nusd = models.BigIntegerField(default=0)
    teacher_cost_nusd = models.BigIntegerField(default=0)
    baseline_nusd = models.BigIntegerField(default=0, help_text="What the teacher alone would have cost.")
    baseline_est_nusd = models.BigIntegerField(null=True, help_text="The token formula's estimate.")
    student_in_tokens = models.PositiveIntegerField(default=0)
    student_out_tokens = models.PositiveIntegerField(default=0)
    teacher_in_tokens = models.PositiveIntegerField(default=0)
    teacher_out_tokens = models.PositiveIntegerField(default=0)
    latency_ms = models.FloatField(default=0.0, help_text="The models' own time.")
    wall_ms = models.FloatField(default=0.0, help_text="The whole request on the gateway's clock.")
    stored = models.BooleanField(default=False, help_text="A teacher answer became, or counted toward, an example.")
    store_opt_out = models.CharField(max_length=10, blank=True)
    end_user = models.CharField(max_length=16, blank=True, help_text="Keyed hash, scoped to the client (INV-23).")
    client_request_id = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["-at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(cost_nusd=models.F("student_cost_nusd") + models.F("teacher_cost_nusd")),
                name="request_cost_is_the_sum_of_its_parts",
            ),
        ]
        indexes = [
            models.Index(fields=["on", "task"], name="request_on_task"),
            models.Index(fields=["version", "stage"], name="request_version_stage"),
            models.Index(fields=["at"], name="request_at"),
        ]

    def __str__(self) -> str:
        return f"req_{self.pk.hex}"


class Check(models.Model):
    """An audit or shadow that was drawn and is not settled yet: the outbox. Settling deletes the row (INV-28)."""

    request = models.OneToOneField(Request, primary_key=True, on_delete=models.PROTECT, related_name="check_owed")
    created_at = models.DateTimeField()
    version = models.ForeignKey("ledger.Version", null=True, on_delete=models.PROTECT, related_name="+")
    wants_audit = models.BooleanField()
    shadow_version = models.ForeignKey("ledger.Version", null=True, on_delete=models.PROTECT, related_name="+")
    payload = models.BinaryField(null=True, help_text="The request's text, encrypted; null when storage is opted out.")
    holder = models.CharField(max_length=64, blank=True, help_text="The process that holds an opted-out text.")
    attempts = models.PositiveSmallIntegerField(default=0)
    claimed_until_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["created_at"], name="check_created_at")]
        constraints = [
            models.CheckConstraint(
                condition=Q(wants_audit=True) | Q(shadow_version__isnull=False), name="check_wants_something"
            )
        ]

    def __str__(self) -> str:
        return f"check of {self.request_id}"


class Failure(models.Model):
    """A request that was refused or failed, or an optional call that did: class, status and code, never a message."""

    request_id = models.UUIDField(null=True)
    at = models.DateTimeField(db_index=True)
    on = models.DateField()
    client = models.CharField(max_length=64, blank=True)
    task = models.CharField(max_length=64, blank=True)
    stage = models.CharField(max_length=24)
    error = models.CharField(max_length=120)
    status = models.PositiveSmallIntegerField(null=True)
    cost_nusd = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["-at"]
        indexes = [models.Index(fields=["client", "at"], name="failure_client_at")]

    def __str__(self) -> str:
        return f"{self.stage}: {self.error}"
