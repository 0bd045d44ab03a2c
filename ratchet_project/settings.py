"""Django settings: small, flat, from the environment (``ratchet_project.environment`` reads the product's own)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ratchet_project import environment
from ratchet_project.database import database_settings

BASE_DIR = Path(__file__).resolve().parent.parent
ENV = environment.load(BASE_DIR)
VAR_DIR = environment.own_folder(Path(ENV.text("RATCHET_VAR_DIR", str(BASE_DIR / "var"))), "RATCHET_VAR_DIR")

RATCHET_GATEWAY = environment.gateway_settings(ENV, VAR_DIR)
RATCHET_NIGHTS = environment.night_settings(ENV, VAR_DIR)
RATCHET_RELEASE = environment.release_policy(ENV)
RATCHET_CLOCK = ENV.text("RATCHET_CLOCK", "common.clock.SystemClock")
RATCHET_NOTICE = ENV.text("RATCHET_NOTICE")

SECRET_KEY = ENV.text("DJANGO_SECRET_KEY") or environment.local_secret(VAR_DIR / "secret_key")
RATCHET_GATEWAY = replace(RATCHET_GATEWAY, data_key=RATCHET_GATEWAY.data_key or SECRET_KEY)
DEBUG = ENV.flag("DJANGO_DEBUG", False)
ALLOWED_HOSTS = ENV.words("DJANGO_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = ENV.words("DJANGO_CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_celery_beat",
    "ratchet_project",
    "sim",
    "scout",
    "nightschool",
    "release",
    "gateway",
    "receipts",
    "privacy",
    "ledger",
    "common",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "ratchet_project.urls"
ASGI_APPLICATION = "ratchet_project.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]


DATABASES = {"default": database_settings(ENV, VAR_DIR)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = "ratchet_project.formats"

STATIC_URL = "/static/"
STATIC_ROOT = environment.own_folder(VAR_DIR / "static", "RATCHET_VAR_DIR")
STATICFILES_DIRS = [BASE_DIR / "templates" / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

REDIS_URL = ENV.text("REDIS_URL")
CELERY_BROKER_URL = ENV.text("CELERY_BROKER_URL") or REDIS_URL or "filesystem://localhost"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "maintenance"
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "ratchet_project.beat:Scheduler"
if CELERY_BROKER_URL.startswith("filesystem://"):
    # The embedded default: messages are files in one folder, so that there is no service to install. It can lose a
    # message when a worker dies; the outbox sweeps make that a delay, never a loss (INV-28).
    _queue = VAR_DIR / "queue"
    for _name in ("messages", "control"):
        environment.own_folder(_queue / _name, "RATCHET_VAR_DIR")
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_queue / "messages"),
        "data_folder_out": str(_queue / "messages"),
        "control_folder": str(_queue / "control"),
        # A worker whose slots are all taken looks again only after this long, so it bounds how many checks it settles.
        "polling_interval": 0.02,
    }

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": environment.log_level(ENV)},
    "loggers": {"httpx": {"level": "WARNING"}, "django.request": {"level": "ERROR"}},
}

LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Ratchet",
    "SITE_HEADER": "Ratchet",
    "SITE_SYMBOL": "settings_backup_restore",
    "SITE_URL": None,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": "/static/ratchet/favicon.svg"}],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "6px",
    "DASHBOARD_CALLBACK": "ratchet_project.dashboard.dashboard",
    "GLOBAL_CALLBACK": "ratchet_project.dashboard.notice",
    "SIDEBAR": {"navigation": "ratchet_project.navigation.sidebar"},
    "STYLES": ["/static/ratchet/admin.css"],
    "SCRIPTS": ["/static/ratchet/admin.js"],
}
