"""Django application of the composition root."""

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """Commands and pages that show several apps at once."""

    name = "ratchet_project"
