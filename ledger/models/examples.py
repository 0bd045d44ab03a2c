"""Training examples with provenance, who sent them, and what keeps an answer from being stored."""

from django.db import models

from ledger.vocabulary import Split


class Example(models.Model):
    """A teacher's (or a person's) answer to a redacted request, with its licence and conditions (INV-2)."""

    hash = models.CharField(max_length=64, unique=True, help_text="Of task, messages and conditions.")
    prompt_hash = models.CharField(max_length=64, db_index=True, help_text="Of task and messages: fixes the split.")
    task = models.CharField(max_length=64)
    messages = models.JSONField(null=True, help_text="Redacted; null once purged.")
    completion = models.TextField(null=True)
    params = models.JSONField(null=True, blank=True, help_text="The conditions the answer was given under.")
    teacher_model = models.CharField(max_length=200)
    licence = models.CharField(max_length=64)
    licence_url = models.URLField(max_length=300, blank=True)
    split = models.CharField(max_length=6, choices=Split.choices)
    seen = models.PositiveIntegerField(default=1, help_text="Times this request was answered by the teacher.")
    redactions = models.PositiveIntegerField(default=0)
    origin = models.CharField(max_length=16, help_text="escalation, cold_start, audit, arbitration, ...")
    client = models.CharField(max_length=64, blank=True)
    end_user = models.CharField(max_length=16, blank=True)
    is_verified = models.BooleanField(default=False, help_text="A person wrote the label.")
    is_golden_only = models.BooleanField(default=False)
    is_contested = models.BooleanField(default=False)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField(db_index=True)
    purged_at = models.DateTimeField(null=True, blank=True)
    purge_reason = models.CharField(max_length=10, blank=True)
    was_train = models.BooleanField(default=False, help_text="Counted as a training row when purged.")

    class Meta:
        ordering = ["-last_seen_at"]
        indexes = [models.Index(fields=["task", "split"], name="example_task_split")]

    def __str__(self) -> str:
        return f"{self.task} {self.hash[:12]}"


class ExampleClient(models.Model):
    """Another client whose request matched a stored example."""

    example = models.ForeignKey(Example, on_delete=models.CASCADE, related_name="other_clients")
    client = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["example", "client"], name="example_client_once")]

    def __str__(self) -> str:
        return self.client


class Tombstone(models.Model):
    """The hash of an erased example: refused for ever after (INV-24)."""

    hash = models.CharField(max_length=64, primary_key=True)
    erasure = models.ForeignKey("ledger.Erasure", null=True, on_delete=models.PROTECT, related_name="tombstones")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.hash[:12]


class NoTrain(models.Model):
    """An end user whose requests are never stored; only the keyed hash is kept (INV-23)."""

    end_user = models.CharField(max_length=16)
    client = models.CharField(max_length=64, help_text="The key name the hash is scoped to, '*' for every client.")
    created_at = models.DateTimeField()
    registered_by = models.CharField(max_length=64, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["client", "end_user"], name="no_train_once")]

    def __str__(self) -> str:
        return f"{self.client}/{self.end_user}"
