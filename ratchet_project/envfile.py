"""The ``.env`` file: variables for what the process does not set, loud on a line that is not one."""

import io
import re
from pathlib import Path

import environ

from common.errors import ConfigurationError

ASSIGNMENT = re.compile(r"(?:export )?[A-Za-z_0-9]+=")


def read_env_file(path: Path) -> None:
    """Set the variables of ``path`` that the process has not set.

    Raises ``ConfigurationError`` with the line's number, never its text: the usual mistake, spaces around the equals
    sign, would otherwise leave a secret unset and print it.
    """
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"{path}: cannot read the file ({reason})") from error
    for number, line in enumerate(lines, 1):
        if line and not line.startswith("#") and not ASSIGNMENT.match(line):
            raise ConfigurationError(f"{path}, line {number}: must be NAME=value, without spaces around the =")
    environ.Env.read_env(io.StringIO("\n".join(lines)), overwrite=False)
