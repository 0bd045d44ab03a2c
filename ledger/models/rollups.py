"""Sums kept in the same transaction as the rows they add up, so that reading them costs the same for any history."""

from django.db import models


class HourlyRollup(models.Model):
    """Sums of the requests of one UTC hour, per student, task, client and route."""

    hour_at = models.DateTimeField()
    student = models.ForeignKey("ledger.Student", on_delete=models.PROTECT, related_name="+")
    task = models.CharField(max_length=64)
    client = models.CharField(max_length=64, blank=True)
    route = models.CharField(max_length=24)
    n_requests = models.BigIntegerField(default=0)
    n_student_served = models.BigIntegerField(default=0)
    n_escalated = models.BigIntegerField(default=0)
    n_audited = models.BigIntegerField(default=0)
    n_audit_agree = models.BigIntegerField(default=0)
    n_stored = models.BigIntegerField(default=0)
    cost_nusd = models.BigIntegerField(default=0)
    student_cost_nusd = models.BigIntegerField(default=0)
    teacher_cost_nusd = models.BigIntegerField(default=0)
    baseline_nusd = models.BigIntegerField(default=0)
    student_in_tokens = models.BigIntegerField(default=0)
    student_out_tokens = models.BigIntegerField(default=0)
    teacher_in_tokens = models.BigIntegerField(default=0)
    teacher_out_tokens = models.BigIntegerField(default=0)
    wall_us = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["-hour_at"]
        constraints = [
            models.UniqueConstraint(fields=["hour_at", "student", "task", "client", "route"], name="hourly_rollup_key")
        ]

    def __str__(self) -> str:
        return f"{self.hour_at:%Y-%m-%d %H}h {self.task} {self.route}"


class StageTally(models.Model):
    """The evidence of one stage of one version, per task: what the gate reads instead of scanning requests."""

    version = models.ForeignKey("ledger.Version", on_delete=models.PROTECT, related_name="tallies")
    stage = models.PositiveSmallIntegerField()
    task = models.CharField(max_length=64)
    n_served = models.BigIntegerField(default=0)
    n_audits = models.BigIntegerField(default=0)
    n_agree = models.BigIntegerField(default=0)
    n_shadow = models.BigIntegerField(default=0, help_text="Requests with a shadow verdict.")
    n_would_serve = models.BigIntegerField(default=0)
    n_shadow_agree = models.BigIntegerField(default=0)
    n_unarbitrated = models.BigIntegerField(default=0)
    n_live_answered = models.BigIntegerField(default=0, help_text="Of those, requests the live student answered.")
    n_live_served = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "stage", "task"], name="stage_tally_key")]

    def __str__(self) -> str:
        return f"version {self.version_id} stage {self.stage} {self.task}"
