"""Django application of ``ledger``."""

from django.apps import AppConfig


class LedgerConfig(AppConfig):
    """What happened: requests, examples, versions, tasks, events, money; statistics over them. Knows no other app."""

    name = "ledger"
    default_auto_field = "django.db.models.BigAutoField"
