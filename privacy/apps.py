"""Django application of ``privacy``."""

from django.apps import AppConfig


class PrivacyConfig(AppConfig):
    """Redaction, storage opt-outs, end users, retention, erasure, export."""

    name = "privacy"
    default_auto_field = "django.db.models.BigAutoField"
