"""Rules about the source: who may write a version's place, and what a release never reads."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = (
    *("common", "ledger", "privacy", "receipts", "gateway", "release", "nightschool", "sim", "scout"),
    "ratchet_project",
)
WRITERS = {"update", "compare_and_set", "update_or_create", "get_or_create"}
# The database's own trigger asks for the next stage with every change of state: finding who writes these is enough.
PLACE = {"traffic_pct", "stage_since_at"}


@cache
def sources() -> list[tuple[str, ast.Module, str]]:
    """Every module of the project outside the tests and migrations: its path, tree and text."""
    paths = [path for app in APPS for path in sorted((ROOT / app).rglob("*.py")) if "migrations" not in path.parts]
    texts = [(path.relative_to(ROOT).as_posix(), path.read_text()) for path in paths]
    return [(name, ast.parse(text), text) for name, text in texts]


def writes_place(tree: ast.Module) -> bool:
    return any(_passes_place(node) or _assigns_place(node) for node in ast.walk(tree))


def _passes_place(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in WRITERS and bool(PLACE & {keyword.arg for keyword in node.keywords})


def _assigns_place(node: ast.AST) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Attribute) and target.attr in PLACE for target in targets)


def creates_elsewhere_than_as_candidate(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("Version", "Version.objects.create", "Version.objects.bulk_create")
        and {"traffic_pct", "stage"} & {keyword.arg for keyword in node.keywords}
        for node in ast.walk(tree)
    )


@pytest.mark.req("INV-5", "INV-29")
def test_one_module_writes_where_a_version_stands():
    writers = [name for name, tree, _ in sources() if writes_place(tree)]
    assert writers == ["release/moves.py"]


@pytest.mark.req("INV-5")
def test_versions_are_only_ever_created_as_candidates():
    assert [name for name, tree, _ in sources() if creates_elsewhere_than_as_candidate(tree)] == []


@pytest.mark.req("INV-5")
def test_no_hand_written_sql_updates_versions():
    assert [name for name, _, text in sources() if "UPDATE LEDGER_VERSION" in text.upper()] == []


@pytest.mark.req("INV-26")
def test_the_gate_never_reads_human_verdicts():
    readers = [name for name, _, text in sources() if name.startswith("release/") and "Feedback" in text]
    assert readers == []
