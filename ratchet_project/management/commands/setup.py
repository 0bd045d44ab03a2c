"""``manage.py setup``: a database that is ready to serve, whatever it was before."""

import os
import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand

from ratchet_project.beat import sync_schedule

ADMIN_NAME = "admin"


def ensure_superuser() -> str | None:
    """Create the first superuser if there is none; return its password, which is kept nowhere else.

    The password is ``DJANGO_SUPERUSER_PASSWORD`` when that is set, as in Django's ``createsuperuser``, else generated.
    """
    users = get_user_model()._default_manager
    if users.filter(is_superuser=True).exists():
        return None
    password = os.environ.get("DJANGO_SUPERUSER_PASSWORD") or secrets.token_urlsafe(12)
    users.create_superuser(username=ADMIN_NAME, email="", password=password)
    return password


class Command(BaseCommand):
    """Migrates, creates missing schedules and the first admin user. Safe to run again."""

    help = "Migrate, create the schedule rows that are missing, and the admin user if there is no superuser."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the steps in order."""
        call_command("migrate", interactive=False, verbosity=0)
        created = sync_schedule()
        if created:
            self.stdout.write(f"schedule: created {', '.join(created)}")
        password = ensure_superuser()
        if password is None:
            self.stdout.write("admin: there is a superuser already (manage.py changepassword sets a new password)")
        elif os.environ.get("DJANGO_SUPERUSER_PASSWORD"):
            self.stdout.write(f"admin: created user {ADMIN_NAME} with DJANGO_SUPERUSER_PASSWORD")
        else:
            self.stdout.write(f"admin: created user {ADMIN_NAME} with password {password} (shown once, here)")
