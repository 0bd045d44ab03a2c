#!/usr/bin/env python
"""Entry point of every Ratchet command: ``python manage.py <command>``."""

import os
import sys


def main() -> None:
    """Run a management command with the project's settings."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ratchet_project.settings")
    from django.core.management import execute_from_command_line

    from common.errors import ConfigurationError

    try:
        execute_from_command_line(sys.argv)
    except ConfigurationError as error:
        sys.exit(f"configuration error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
