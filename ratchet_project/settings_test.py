"""Settings of the test suite: SQLite in memory unless ``DATABASE_URL`` says otherwise, nothing from ``.env``."""

import os
import tempfile

os.environ.setdefault("RATCHET_ENV_FILE", os.devnull)
os.environ["RATCHET_VAR_DIR"] = tempfile.mkdtemp(prefix="ratchet-test-")
os.environ.setdefault("DATABASE_URL", "sqlite://:memory:")
for _name in [name for name in os.environ if name.startswith("RATCHET_TEACHER") or name.startswith("RATCHET_API")]:
    del os.environ[_name]

from ratchet_project.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CELERY_TASK_ALWAYS_EAGER = False
LOGGING["root"]["level"] = "WARNING"  # type: ignore[index]  # noqa: F405
