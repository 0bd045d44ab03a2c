"""Money outside requests, sealed receipts, erasures and people's verdicts."""

from django.db import models


class Spend(models.Model):
    """Money spent outside requests (backfills, research runs)."""

    at = models.DateTimeField()
    on = models.DateField()
    kind = models.CharField(max_length=24)
    ref = models.CharField(max_length=80, blank=True)
    cost_nusd = models.BigIntegerField()
    in_tokens = models.PositiveIntegerField(default=0)
    out_tokens = models.PositiveIntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["kind", "at"], name="spend_kind_at")]

    def __str__(self) -> str:
        return f"{self.kind} {self.ref}"


class Receipt(models.Model):
    """A sealed savings receipt of one UTC date. Append-only (INV-17)."""

    on = models.DateField()
    client = models.CharField(max_length=64, blank=True, help_text="Empty for the whole gateway.")
    document = models.JSONField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["on", "client"], name="receipt_once")]

    def __str__(self) -> str:
        return f"{self.on} {self.client or 'gateway'}"


class Erasure(models.Model):
    """An erasure request and what it removed: hashes and counts, never text."""

    at = models.DateTimeField()
    actor = models.CharField(max_length=80)
    reason = models.CharField(max_length=500)
    scope = models.JSONField(default=dict)
    n_purged = models.PositiveIntegerField(default=0)
    n_kept = models.PositiveIntegerField(default=0)
    tainted_versions = models.JSONField(default=list)
    status = models.CharField(max_length=10, default="pending")

    def __str__(self) -> str:
        return f"erasure {self.pk}"


class Feedback(models.Model):
    """A client's verdict on one of its own requests. Informs and alerts, never moves a release (INV-26)."""

    request_id = models.UUIDField(unique=True)
    at = models.DateTimeField()
    client = models.CharField(max_length=64, blank=True)
    verdict = models.CharField(max_length=10, choices=[("correct", "correct"), ("incorrect", "incorrect")])
    task = models.CharField(max_length=64)
    version = models.ForeignKey("ledger.Version", null=True, on_delete=models.PROTECT, related_name="+")
    served_by = models.CharField(max_length=8)
    route = models.CharField(max_length=24)

    def __str__(self) -> str:
        return f"{self.verdict} {self.request_id}"
