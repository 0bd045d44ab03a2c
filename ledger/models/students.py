"""Students, their versions and the tasks they answer."""

from datetime import time

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from ledger.models.fields import OrderedJSONField
from ledger.taskspec import TASK_NAME_PATTERN
from ledger.vocabulary import IN_FLIGHT, TaskSource, VersionState


class Student(models.Model):
    """A line of adapters that share a base model, with its own sampling, releases and nights."""

    name = models.SlugField(max_length=64, unique=True)
    base_model = models.CharField(max_length=200, help_text="Open base model, or the kind of classifier.")
    backend = models.CharField(max_length=32, help_text="Key of RATCHET_STUDENT_BACKENDS: what samples its versions.")
    trainer = models.CharField(max_length=32, help_text="Key of RATCHET_TRAINERS: what its nights train with.")
    endpoints = models.JSONField(default=list, blank=True, help_text="Base URLs of OpenAI-compatible replicas.")
    samples = models.PositiveSmallIntegerField(default=3, validators=[MinValueValidator(1), MaxValueValidator(16)])
    temperature = models.FloatField(default=0.7, validators=[MinValueValidator(0.0), MaxValueValidator(2.0)])
    policy = models.JSONField(default=dict, blank=True, help_text="Release policy overrides, e.g. {'min_audits': 15}.")
    is_night_enabled = models.BooleanField(default=True)
    night_at = models.TimeField(default=time(2, 0), help_text="UTC time of day after which the day's night may start.")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Version(models.Model):
    """One trained student. Its state moves only through ``release.gate``; the database refuses anything else."""

    student = models.ForeignKey(Student, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    adapter = models.CharField(max_length=200, help_text="Adapter name, also the model name at the endpoint.")
    base_model = models.CharField(max_length=200)
    state = models.CharField(max_length=12, choices=VersionState.choices, default=VersionState.CANDIDATE)
    traffic_pct = models.PositiveSmallIntegerField(default=0)
    stage = models.PositiveSmallIntegerField(default=0, help_text="Counts the moves; requests record it.")
    stage_since_at = models.DateTimeField()
    train_examples = models.PositiveIntegerField(default=0)
    dataset_sha256 = models.CharField(max_length=64, blank=True)
    artefact = models.JSONField(default=dict, blank=True, help_text="Where its weights are, with their SHA-256.")
    evaluation = models.JSONField(default=dict, blank=True)
    bom = models.JSONField(null=True, blank=True, help_text="Signed bill of materials, written once.")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["student", "-number"]
        permissions = [("operate_version", "Can roll back, promote and retire versions")]
        constraints = [
            models.UniqueConstraint(fields=["student", "number"], name="version_number_once"),
            models.UniqueConstraint(fields=["student", "adapter"], name="version_adapter_once"),
            models.UniqueConstraint(
                fields=["student"], condition=Q(state=VersionState.LIVE), name="one_live_version_per_student"
            ),
            models.UniqueConstraint(
                fields=["student"], condition=Q(state__in=IN_FLIGHT), name="one_version_in_flight_per_student"
            ),
            models.CheckConstraint(
                condition=Q(state=VersionState.LIVE, traffic_pct=100)
                | Q(state=VersionState.CANARY, traffic_pct__gte=1, traffic_pct__lte=99)
                | (~Q(state__in=[VersionState.LIVE, VersionState.CANARY]) & Q(traffic_pct=0)),
                name="version_traffic_fits_state",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.student.name} v{self.number}"


class Task(models.Model):
    """A registered task: how its answers are compared, and whether it may leave the teacher."""

    name = models.CharField(max_length=64, unique=True, validators=[RegexValidator(TASK_NAME_PATTERN)])
    student = models.ForeignKey(Student, on_delete=models.PROTECT, related_name="tasks")
    spec = OrderedJSONField(help_text="The task spec document (docs/tasks.md); the order of its fields counts.")
    spec_hash = models.CharField(max_length=64)
    source = models.CharField(max_length=8, choices=TaskSource.choices)
    is_runtime_pinned = models.BooleanField(default=False, help_text="Pinned to the teacher by an operator.")
    pin_reason = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        permissions = [("pin_task", "Can pin a task to the teacher and release it")]

    def __str__(self) -> str:
        return self.name
