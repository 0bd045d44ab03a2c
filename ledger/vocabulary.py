"""The fixed vocabularies of the ledger's columns."""

from django.db import models

DEFAULT_TASK = "default"
DEFAULT_STUDENT = "default"


class VersionState(models.TextChoices):
    """Where a version stands in its release."""

    CANDIDATE = "candidate"
    REJECTED = "rejected"
    SHADOW = "shadow"
    CANARY = "canary"
    LIVE = "live"
    RETIRED = "retired"
    ROLLED_BACK = "rolled_back"


IN_FLIGHT = [VersionState.SHADOW, VersionState.CANARY]


class TaskSource(models.TextChoices):
    """Where a task's spec came from."""

    BUILTIN = "builtin"
    FILE = "file"
    API = "api"
    AUTO = "auto"


class AuditState(models.TextChoices):
    """What became of a request's audit; one meaning per value."""

    NONE = "none"
    PENDING = "pending"
    AGREE = "agree"
    DISAGREE = "disagree"
    UNUSABLE = "unusable"
    FAILED = "failed"
    LOST = "lost"


class ShadowState(models.TextChoices):
    """What became of a request's shadow run. ``escalate``: the candidate would not have served."""

    NONE = "none"
    PENDING = "pending"
    ESCALATE = "escalate"
    AGREE = "agree"
    DISAGREE = "disagree"
    UNARBITRATED = "unarbitrated"
    FAILED = "failed"
    LOST = "lost"


class NightState(models.TextChoices):
    """The steps of a night, in order, then its three ends."""

    BUILDING = "building"
    TRAINING = "training"
    LOADING = "loading"
    EVALUATING = "evaluating"
    ADMITTING = "admitting"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


NIGHT_STEPS = [
    NightState.BUILDING,
    NightState.TRAINING,
    NightState.LOADING,
    NightState.EVALUATING,
    NightState.ADMITTING,
]


class Split(models.TextChoices):
    """A prompt's split, fixed by its hash (INV-3)."""

    TRAIN = "train"
    GOLDEN = "golden"


class Flag(models.TextChoices):
    """The operators' runtime switches."""

    STUDENT_DISABLED = "student_disabled"
    RELEASES_FROZEN = "releases_frozen"
    TRAINING_PAUSED = "training_paused"
    AUDIT_RATE = "audit_rate"
