"""``deploy/services.sh`` on machines that are arranged in another way."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder_with_spaces() -> Iterator[Path]:
    """A temporary folder that the user of the database may enter too, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="a folder  with spaces "))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.postgres
def test_services_start_in_a_temporary_folder_with_spaces_and_leave_nothing_there(folder_with_spaces: Path):
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    variables = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    run = subprocess.run(
        [ROOT / "deploy" / "services.sh", "sh", "-c", "echo $DATABASE_URL $REDIS_URL"],
        env=variables | {"TMPDIR": str(folder_with_spaces)},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert run.returncode == 0, run.stderr
    assert [url.split("//")[0] for url in run.stdout.split()] == ["postgres:", "redis:"]
    assert list(folder_with_spaces.iterdir()) == []
