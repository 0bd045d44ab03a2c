"""The environment that the demo's system runs in: its own folder, database and settings, nothing of the operator's.

Only a teacher that is configured (``RATCHET_TEACHER_*``) is taken over. Settings are read once, when Django starts, so
the command starts itself again in this environment.
"""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sim.demo.teacher_server import LICENCE, MODEL

INSIDE = "RATCHET_DEMO_INSIDE"
DATABASE_NAME = "ratchet_demo"

POLICY = {
    "RATCHET_GOLDEN_FRACTION": "0.2",
    "RATCHET_AUDIT_RATE": "0.15",
    "RATCHET_CANARY_AUDIT_RATE": "1.0",
    "RATCHET_MIN_AUDITS": "15",
    "RATCHET_TARGET_PRECISION": "0.985",
    "RATCHET_TOLERANCE": "0.05",
}
NOTICE_LABELS = (
    "Demo: the teacher is a local server that answers with the data sets' own labels (TREC questions, SMS spam); "
    "no language model is called. Its price, $1 in and $3 out per million tokens, is an assumption."
)
NOTICE_REAL = "Demo: public messages (TREC questions, SMS spam) answered by the configured teacher."


@dataclass(frozen=True, slots=True)
class Services:
    """PostgreSQL and Redis of the demo; empty URLs mean the embedded SQLite file and folder broker."""

    database_url: str = ""
    redis_url: str = ""


def teacher_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the configured teacher's variables; empty when none is configured."""
    own = {name: value for name, value in variables.items() if name.startswith("RATCHET_TEACHER_")}
    return own if "RATCHET_TEACHER_BASE_URL" in own else {}


def demo_environment(
    variables: Mapping[str, str], folder: Path, teacher_port: int, services: Services
) -> dict[str, str]:
    """Return the environment of every process of the demo."""
    kept = {
        name: value
        for name, value in variables.items()
        if not name.startswith(("RATCHET_", "DJANGO_", "CELERY_")) and name not in ("DATABASE_URL", "REDIS_URL")
    }
    configured = teacher_variables(variables)
    label_teacher = {
        "RATCHET_TEACHER_BASE_URL": f"http://127.0.0.1:{teacher_port}/v1",
        "RATCHET_TEACHER_MODEL": MODEL,
        "RATCHET_TEACHER_LICENSES": f"{MODEL}={LICENCE}",
        "RATCHET_TEACHER_PRICE_IN": "1.00",
        "RATCHET_TEACHER_PRICE_OUT": "3.00",
    }
    own = {
        INSIDE: "1",
        "RATCHET_VAR_DIR": str(folder),
        "RATCHET_ENV_FILE": os.devnull,
        "RATCHET_CLOCK": "sim.demo.clock.demo_clock",
        "RATCHET_LOG_LEVEL": "WARNING",
        "RATCHET_NOTICE": NOTICE_REAL if configured else NOTICE_LABELS,
        "DJANGO_SETTINGS_MODULE": "ratchet_project.settings",
        "DJANGO_SUPERUSER_PASSWORD": secrets.token_urlsafe(9),
    }
    if services.database_url:
        own |= {"DATABASE_URL": services.database_url, "REDIS_URL": services.redis_url}
    return kept | POLICY | own | (configured or label_teacher)
