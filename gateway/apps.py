"""Django application of ``gateway``."""

from django.apps import AppConfig


class GatewayConfig(AppConfig):
    """The OpenAI wire, the cascade, upstream models, keys, observability. Serves; never decides a release."""

    name = "gateway"
    default_auto_field = "django.db.models.BigAutoField"
