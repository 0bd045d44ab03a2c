"""The Celery application. Tasks are found in each app's ``tasks`` module; the beat table is in ``beat``."""

import os

from celery import Celery

from ratchet_project import broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ratchet_project.settings")

broker.install()
app = Celery("ratchet")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
