"""Django application of ``scout``."""

from django.apps import AppConfig


class ScoutConfig(AppConfig):
    """The multi-agent research demo, a client of the gateway."""

    name = "scout"
    default_auto_field = "django.db.models.BigAutoField"
