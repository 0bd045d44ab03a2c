"""What operators and the system did: events, audited actions, switches, keys, and the epoch that snapshots follow."""

from django.db import models

from ledger.vocabulary import Flag


class Event(models.Model):
    """One line of the release log. Append-only; never holds request or answer text (INV-12)."""

    at = models.DateTimeField(db_index=True)
    on = models.DateField()
    kind = models.CharField(max_length=32)
    student = models.ForeignKey("ledger.Student", null=True, on_delete=models.PROTECT, related_name="events")
    version = models.ForeignKey("ledger.Version", null=True, on_delete=models.PROTECT, related_name="events")
    detail = models.CharField(max_length=500)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["kind", "version"], name="event_kind_version")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


class AdminAction(models.Model):
    """A manual change with who, why, before and after. Append-only."""

    at = models.DateTimeField(db_index=True)
    actor = models.CharField(max_length=80)
    action = models.CharField(max_length=24)
    target = models.CharField(max_length=120)
    reason = models.CharField(max_length=500, blank=True)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.action} {self.target} by {self.actor}"


class RuntimeFlag(models.Model):
    """A runtime switch; a missing row is the default."""

    name = models.CharField(max_length=20, choices=Flag.choices, primary_key=True)
    value = models.CharField(max_length=20)
    updated_at = models.DateTimeField()
    updated_by = models.CharField(max_length=80)

    class Meta:
        permissions = [("operate_flag", "Can flip runtime switches")]

    def __str__(self) -> str:
        return f"{self.get_name_display().capitalize()} (now {self.value})"


class ApiKey(models.Model):
    """A client's key: only its SHA-256 is kept; the key itself is shown once, when it is made (INV-13)."""

    name = models.SlugField(max_length=64, unique=True)
    key_sha256 = models.CharField(max_length=64, unique=True)
    role = models.CharField(max_length=10, choices=[("client", "client")], default="client")
    may_store = models.BooleanField(default=True, help_text="Whether teacher answers to its requests may be stored.")
    is_revoked = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=80, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class StateEpoch(models.Model):
    """One row that database triggers bump whenever anything a routing snapshot reads has changed."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    value = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return str(self.value)
