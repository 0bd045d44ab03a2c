"""Reading the environment: every variable in one place, loud on a bad value, secrets also from ``NAME_FILE``.

Product settings become typed objects (``gateway.settings``, ``release.policy``, ``nightschool.settings``) that are
built once here and passed down. Errors name the variable and the remedy and never quote a secret.
"""

import hashlib
import os
import secrets
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from common.errors import ConfigurationError
from common.money import Price, usd_to_nusd
from gateway.settings import EndpointSettings, GatewaySettings
from nightschool.settings import NightSettings
from ratchet_project.envfile import read_env_file
from receipts.licences import LicenceError, declared_licences, require_distillable
from release.policy import ReleasePolicy

T = TypeVar("T")

STUDENT_BACKENDS = {
    "openai": "gateway.students.endpoint.EndpointStudent",
    "classifier": "gateway.students.classifier.ClassifierStudent",
}
TRAINERS = {
    "classifier": "nightschool.trainers.classifier.ClassifierTrainer",
    "command": "nightschool.trainers.command.CommandTrainer",
}
KEY_MIN_CHARS = 16
HTTP_URL = "an http(s) URL, e.g. https://host/v1"
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class Environment:
    """Typed access to the process's variables."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def text(self, name: str, default: str = "") -> str:
        """Return ``name``, or the content of the file that ``name_FILE`` points to, stripped."""
        file = self._variables.get(f"{name}_FILE")
        if file:
            try:
                return Path(file).read_text().strip()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not text"
                raise ConfigurationError(f"{name}_FILE: cannot read the file ({reason})") from error
        return self._variables.get(name, "").strip() or default

    def parse(self, name: str, default: T, read: Callable[[str], T], must: str) -> T:
        """Return ``read(text)``; an unset variable is the default, a bad one a ``ConfigurationError``."""
        text = self.text(name)
        if not text:
            return default
        try:
            return read(text)
        except (ValueError, ArithmeticError) as error:
            raise ConfigurationError(f"{name}: must be {must}") from error

    def integer(self, name: str, default: int, low: int = 0, high: int = 10**9) -> int:
        """A whole number from ``low`` to ``high``."""
        return self.parse(name, default, lambda text: _within(int(text), low, high), f"a whole number {low} to {high}")

    def number(self, name: str, default: float, low: float = 0.0, high: float = 1e9) -> float:
        """A finite number from ``low`` to ``high``."""
        return self.parse(name, default, lambda text: _within(float(text), low, high), f"a number {low:g} to {high:g}")

    def flag(self, name: str, default: bool) -> bool:
        """``1``/``0``, ``true``/``false``, ``on``/``off``."""
        words = {
            "1": True,
            "true": True,
            "on": True,
            "yes": True,
            "0": False,
            "false": False,
            "off": False,
            "no": False,
        }
        return self.parse(name, default, lambda text: _known(words, text.lower()), "1 or 0")

    def words(self, name: str, default: str = "") -> list[str]:
        """Words separated by commas, without the spaces around them."""
        return [word.strip() for word in self.text(name, default).split(",") if word.strip()]

    def choice(self, name: str, default: str, among: tuple[str, ...]) -> str:
        """One of ``among``."""
        return self.parse(name, default, lambda text: _known({w: w for w in among}, text), f"one of {', '.join(among)}")

    def price(self, name: str, default_in: str, default_out: str) -> Price:
        """``NAME_IN`` and ``NAME_OUT`` in USD per million tokens."""
        must = "a price in USD per million tokens"
        return Price(
            self.parse(f"{name}_IN", usd_to_nusd(default_in), usd_to_nusd, must),
            self.parse(f"{name}_OUT", usd_to_nusd(default_out), usd_to_nusd, must),
        )


def _http_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError
    return text.rstrip("/")


def _within(value: T, low: T, high: T) -> T:
    if not low <= value <= high:  # type: ignore[operator]
        raise ValueError
    return value


def _known(words: Mapping[str, T], text: str) -> T:
    if text not in words:
        raise ValueError
    return words[text]


def gateway_settings(env: Environment, var: Path) -> GatewaySettings:
    """Build the gateway's settings; an unlicensed teacher stops startup (INV-1)."""
    teacher = EndpointSettings(
        base_url=env.parse("RATCHET_TEACHER_BASE_URL", "", _http_url, HTTP_URL),
        api_key=env.text("RATCHET_TEACHER_API_KEY"),
        model=env.text("RATCHET_TEACHER_MODEL"),
        price=env.price("RATCHET_TEACHER_PRICE", "1.00", "3.00"),
        timeout_s=env.number("RATCHET_TEACHER_TIMEOUT_S", 120.0, 0.1, 3600),
        retries=env.integer("RATCHET_TEACHER_RETRIES", 2, 0, 10),
        deadline_s=env.number("RATCHET_TEACHER_DEADLINE_S", 180.0, 0.1, 3600),
        breaker_failures=env.integer("RATCHET_TEACHER_BREAKER_FAILURES", 5, 0, 1000),
        breaker_cooldown_s=env.number("RATCHET_TEACHER_BREAKER_COOLDOWN_S", 30.0, 0.1, 300),
    )
    student_timeout_s = env.number("RATCHET_STUDENT_TIMEOUT_S", 15.0, 0.1, 600)
    student = EndpointSettings(
        base_url=env.parse("RATCHET_STUDENT_BASE", "", _http_url, HTTP_URL),
        api_key=env.text("RATCHET_STUDENT_API_KEY"),
        price=env.price("RATCHET_STUDENT_PRICE", "0.06", "0.24"),
        timeout_s=student_timeout_s,
        connect_timeout_s=env.number("RATCHET_STUDENT_CONNECT_TIMEOUT_S", 2.0, 0.1, 60),
        retries=0,
        deadline_s=student_timeout_s + 5.0,
        breaker_failures=env.integer("RATCHET_STUDENT_BREAKER_FAILURES", 5, 0, 1000),
        breaker_cooldown_s=env.number("RATCHET_STUDENT_BREAKER_COOLDOWN_S", 30.0, 0.1, 300),
    )
    try:
        declared = declared_licences(env.text("RATCHET_TEACHER_LICENSES"))
        licence = require_distillable(teacher.model, declared) if teacher.model else None
    except LicenceError as error:
        raise ConfigurationError(str(error)) from error
    canary_rate = env.text("RATCHET_CANARY_AUDIT_RATE")
    return GatewaySettings(
        teacher=teacher,
        teacher_licence=licence,
        declared_licences=declared,
        teacher_backend=env.text("RATCHET_TEACHER_BACKEND", "gateway.upstream.teacher.OpenAITeacher"),
        student=student,
        student_backends=STUDENT_BACKENDS | _named_paths(env, "RATCHET_STUDENT_BACKENDS"),
        confidence_threshold=env.number("RATCHET_CONFIDENCE_THRESHOLD", 0.80, 0.0, 1.01),
        audit_rate=env.number("RATCHET_AUDIT_RATE", 0.05, 0.0, 1.0),
        canary_audit_rate=env.number("RATCHET_CANARY_AUDIT_RATE", 0.0, 0.0, 1.0) if canary_rate else None,
        reasoning_tokens=env.integer("RATCHET_TEACHER_REASONING_TOKENS", 300, 0, 100_000),
        golden_fraction=env.number("RATCHET_GOLDEN_FRACTION", 0.10, 0.01, 0.90),
        unknown_tasks=env.choice("RATCHET_UNKNOWN_TASKS", "distill", ("distill", "teacher", "reject")),
        stores_examples=env.flag("RATCHET_STORE_EXAMPLES", True),
        redacts=env.flag("RATCHET_REDACT_PII", True),
        api_keys=_api_keys(env),
        max_body_bytes=env.integer("RATCHET_MAX_BODY_BYTES", 1_048_576, 1024, 64 * 1_048_576),
        max_messages=env.integer("RATCHET_MAX_MESSAGES", 256, 1, 10_000),
        max_input_chars=env.integer("RATCHET_MAX_INPUT_CHARS", 120_000, 1, 10_000_000),
        max_n=env.integer("RATCHET_MAX_N", 4, 1, 128),
        max_inflight=env.integer("RATCHET_MAX_INFLIGHT", 256, 1, 100_000),
        max_queue=env.integer("RATCHET_MAX_QUEUE", 4096, 1, 1_000_000),
        artefact_dir=env.text("RATCHET_ARTEFACT_DIR", str(var / "data" / "adapters")),
        spool_dir=env.text("RATCHET_SPOOL_DIR", str(var / "spool")),
        data_key=env.text("RATCHET_DATA_KEY"),
    )


def night_settings(env: Environment, var: Path) -> NightSettings:
    """Build Night School's settings."""
    return NightSettings(
        min_new_examples=env.integer("RATCHET_MIN_NEW_EXAMPLES", 50, 1),
        target_precision=env.number("RATCHET_TARGET_PRECISION", 0.97, 0.5, 1),
        min_task_golden=env.integer("RATCHET_MIN_TASK_GOLDEN", 20, 1),
        is_per_task=env.flag("RATCHET_PER_TASK_CALIBRATION", True),
        stores_examples=env.flag("RATCHET_STORE_EXAMPLES", True),
        data_dir=env.text("RATCHET_DATA_DIR", str(var / "data")),
        train_cmd=env.text("RATCHET_TRAIN_CMD"),
        sync_cmd=env.text("RATCHET_SYNC_CMD"),
        adapter_root=env.text("RATCHET_ADAPTER_ROOT", "/data/adapters"),
        train_timeout_s=env.integer("RATCHET_TRAIN_TIMEOUT_S", 6 * 3600, 1, 7 * 86400),
        hold_s=env.integer("RATCHET_NIGHT_HOLD_S", 120, 2, 3600),
        trainers=TRAINERS | _named_paths(env, "RATCHET_TRAINERS"),
    )


def release_policy(env: Environment) -> ReleasePolicy:
    """Build the release policy."""
    defaults = ReleasePolicy()
    try:
        return ReleasePolicy(
            min_precision=env.number("RATCHET_MIN_PRECISION", defaults.min_precision, 0, 1),
            min_coverage=env.number("RATCHET_MIN_COVERAGE", defaults.min_coverage, 0, 1),
            tolerance=env.number("RATCHET_TOLERANCE", defaults.tolerance, 0, 1),
            min_shadow=env.integer("RATCHET_MIN_SHADOW", defaults.min_shadow, 1),
            min_audits=env.integer("RATCHET_MIN_AUDITS", defaults.min_audits, 1),
            live_floor=env.number("RATCHET_LIVE_FLOOR", defaults.live_floor, 0, 1),
            min_task_test_n=env.integer("RATCHET_MIN_TASK_TEST_N", defaults.min_task_test_n, 1),
        )
    except ValueError as error:
        raise ConfigurationError(str(error)) from error


def _named_paths(env: Environment, name: str) -> dict[str, str]:
    def read(text: str) -> dict[str, str]:
        pairs = [part.split("=", 1) for part in text.split(",") if part.strip()]
        return {key.strip(): path.strip() for key, path in pairs}

    return env.parse(name, {}, read, "key=dotted.path pairs separated by commas")


def _api_keys(env: Environment) -> dict[str, str]:
    """Parse ``RATCHET_API_KEYS`` (``name:key`` pairs) and ``RATCHET_API_KEY`` into hash-to-name; keys are not kept."""
    keys: dict[str, str] = {}
    entries = [part.strip() for part in env.text("RATCHET_API_KEYS").split(",") if part.strip()]
    single = env.text("RATCHET_API_KEY")
    if single and len(single) < KEY_MIN_CHARS:
        raise ConfigurationError(f"RATCHET_API_KEY: must have {KEY_MIN_CHARS} characters or more")
    if single:
        entries.append(f"default:{single}")
    for position, entry in enumerate(entries, 1):
        name, separator, key = entry.partition(":")
        if not separator or not name.isidentifier() or len(key) < KEY_MIN_CHARS:
            raise ConfigurationError(
                f"RATCHET_API_KEYS: entry {position} must be name:key with a key of {KEY_MIN_CHARS} characters or more"
            )
        if name in keys.values():
            raise ConfigurationError(f"RATCHET_API_KEYS: the name of entry {position} occurs twice")
        keys[hashlib.sha256(key.encode()).hexdigest()] = name
    return keys


def log_level(env: Environment) -> str:
    """Return the level of what is logged."""
    levels = {level: level for level in LOG_LEVELS}
    return env.parse(
        "RATCHET_LOG_LEVEL", "INFO", lambda text: _known(levels, text.upper()), f"one of {', '.join(LOG_LEVELS)}"
    )


def load(base: Path) -> Environment:
    """Return the environment, with ``.env`` beside ``manage.py`` filling in what the process does not set."""
    named = os.environ.get("RATCHET_ENV_FILE")
    file = Path(named or base / ".env")
    if named and not file.exists():
        raise ConfigurationError("RATCHET_ENV_FILE: there is no such file")
    if file.is_file():
        read_env_file(file)
    return Environment(os.environ)


def own_folder(path: Path, name: str) -> Path:
    """Make a folder that must be there before anything else; ``name`` is the variable that chooses it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"{name}: cannot make the folder {path} ({error.strerror})") from error
    return path


def local_secret(path: Path) -> str:
    """Return the machine's own secret key, made once with mode 0600; production sets ``DJANGO_SECRET_KEY`` instead.

    The file appears whole, so that a process that starts at the same moment, or after a full disk, reads no half of it.
    """
    try:
        if not path.exists():
            _make_secret(path)
        secret = path.read_text().strip()
    except OSError as error:
        raise ConfigurationError(
            f"DJANGO_SECRET_KEY is not set, and the key in {path} cannot be made or read ({error.strerror})"
        ) from error
    if not secret:
        raise ConfigurationError(f"DJANGO_SECRET_KEY is not set, and {path} is empty: remove it to have one made")
    return secret


def _make_secret(path: Path) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48))
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)
