"""What the documentation says is what the code does (INV-21)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
READ = re.compile(r'(?:env|ENV)\.(?:text|integer|number|flag|choice|parse|price|words)\(\s*"([A-Z_]+)"', re.MULTILINE)
PATHS = re.compile(r'_named_paths\(env, "([A-Z_]+)"\)')


def variables_read() -> set[str]:
    names: set[str] = set()
    for name in ("settings.py", "environment.py", "database.py"):
        source = (ROOT / "ratchet_project" / name).read_text()
        for found in READ.findall(source):
            names |= {f"{found}_IN", f"{found}_OUT"} if found.endswith("_PRICE") else {found}
        names |= set(PATHS.findall(source))
    return names - {"NAME"}


@pytest.mark.req("INV-21", "INV-9")
def test_the_configuration_page_lists_exactly_the_variables_that_are_read():
    page = (ROOT / "docs" / "configuration.md").read_text()
    listed = set(re.findall(r"`((?:RATCHET|DJANGO|DATABASE|REDIS|CELERY)_[A-Z_]+)`", page)) - {"RATCHET_ENV_FILE"}
    assert listed == variables_read()


@pytest.mark.req("INV-21")
@pytest.mark.parametrize("page", sorted(path.name for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]))
def test_every_file_and_link_a_page_names_exists(page: str):
    path = ROOT / page if (ROOT / page).exists() else ROOT / "docs" / page
    text = path.read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target
    for named in re.findall(
        r"`((?:common|ledger|gateway|privacy|receipts|release|nightschool|sim|ratchet_project|tests)/[\w/.]+)`", text
    ):
        assert (ROOT / named).exists(), named


@pytest.mark.req("INV-21")
def test_every_make_target_a_page_names_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for named in re.findall(r"(?:^|`)make ([a-z-]+)", path.read_text(), re.MULTILINE):
            assert named in targets, f"{path.name}: make {named}"


@pytest.mark.req("INV-21")
def test_the_requirement_matrix_is_up_to_date():
    run = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "requirements_matrix.py"), "--check"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
