"""Django application of ``nightschool``."""

from django.apps import AppConfig


class NightschoolConfig(AppConfig):
    """Datasets, training, evaluation, calibration, nights."""

    name = "nightschool"
    default_auto_field = "django.db.models.BigAutoField"
