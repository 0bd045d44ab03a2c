"""Django application of ``sim``."""

from django.apps import AppConfig


class SimConfig(AppConfig):
    """Mock world, mock models, the simulator and the demo. Plugged in by dotted path; nothing imports it."""

    name = "sim"
    default_auto_field = "django.db.models.BigAutoField"
