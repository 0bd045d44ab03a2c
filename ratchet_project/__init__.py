"""The composition root: settings, URLs, the two ASGI handlers, Celery, and the pages that show several apps at once."""

from ratchet_project.celery import app as celery_app

__all__ = ["celery_app"]
