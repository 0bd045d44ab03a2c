"""Django application of ``release``."""

from django.apps import AppConfig


class ReleaseConfig(AppConfig):
    """Release policy, gate, evidence, operator actions. The only app that writes a version's state."""

    name = "release"
    default_auto_field = "django.db.models.BigAutoField"
