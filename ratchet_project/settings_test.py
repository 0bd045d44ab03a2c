"""Settings of the test suite: a temporary SQLite file unless ``DATABASE_URL`` says otherwise, nothing from ``.env``."""

import os
import tempfile

os.environ.setdefault("RATCHET_ENV_FILE", os.devnull)
os.environ["RATCHET_VAR_DIR"] = tempfile.mkdtemp(prefix="ratchet-test-")
for _name in [name for name in os.environ if name.startswith("RATCHET_TEACHER") or name.startswith("RATCHET_API")]:
    del os.environ[_name]

from ratchet_project.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CELERY_TASK_ALWAYS_EAGER = False
LOGGING["root"]["level"] = "WARNING"  # type: ignore[index]  # noqa: F405
if "sqlite" in DATABASES["default"]["ENGINE"]:  # noqa: F405
    # A file, not memory: the gateway's threads have connections of their own.
    DATABASES["default"]["TEST"] = {"NAME": os.path.join(os.environ["RATCHET_VAR_DIR"], "test.sqlite3")}  # noqa: F405, PTH118
