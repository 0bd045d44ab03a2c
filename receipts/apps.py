"""Django application of ``receipts``."""

from django.apps import AppConfig


class ReceiptsConfig(AppConfig):
    """Licences, Merkle trees, signatures, bills of materials, proofs, savings receipts."""

    name = "receipts"
    default_auto_field = "django.db.models.BigAutoField"
