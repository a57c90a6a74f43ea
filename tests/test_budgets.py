"""The package stays as small as `budgets.toml` says: lines a room, helpers used once, short files, named tuples."""

from __future__ import annotations

import ast
import subprocess
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from tests.test_names import VAGUE, names, trees

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "budgets.toml"
BUDGETS = tomllib.loads(TABLE.read_text(encoding="utf-8"))
SHORT = 60  # lines


@cache
def texts() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in (ROOT / "eyespot").rglob("*.py")}


def lines(rooms: set[str]) -> int:
    of_room = {path: path.relative_to(ROOT / "eyespot").parts[0].removesuffix(".py") for path in texts()}
    return sum(len(text.splitlines()) for path, text in texts().items() if rooms == {"all"} or of_room[path] in rooms)


def test_a_room_has_no_more_lines_than_its_budget() -> None:
    measured = {rooms: lines(set(rooms.split())) for rooms in BUDGETS["lines"]}

    assert {rooms: count for rooms, count in measured.items() if count > BUDGETS["lines"][rooms]} == {}


def test_every_room_has_a_budget() -> None:
    rooms = {path.relative_to(ROOT / "eyespot").parts[0].removesuffix(".py") for path in texts()}

    assert rooms == {room for names in BUDGETS["lines"] for room in names.split()} - {"all"}


def used_once(nodes: list[ast.AST]) -> int:
    """How many private functions of a file are called in one place of it at most."""
    uses = Counter(node.attr for node in nodes if isinstance(node, ast.Attribute))
    uses += Counter(node.id for node in nodes if isinstance(node, ast.Name))
    names = [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return sum(name.startswith("_") and not name.startswith("__") and uses[name] <= 1 for name in names)


def is_named_tuple(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(getattr(base, "id", None) == "NamedTuple" for base in node.bases)


def test_helpers_short_files_and_named_tuples_stay_few() -> None:
    files = [list(ast.walk(tree)) for tree in trees().values()]
    nodes = [node for file in files for node in file]
    functions = sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes)
    short = sum(len(text.splitlines()) < SHORT for text in texts().values())
    measured = {
        "private functions used once, of all functions": sum(map(used_once, files)) / functions,
        "files under 60 lines, of all files": short / len(files),
        "named tuples": sum(map(is_named_tuple, nodes)),
        "names with a vague word": sum(bool(words & VAGUE) for _, words in names()),
    }

    assert {name: value for name, value in measured.items() if value > BUDGETS["shares"][name]} == {}
    assert measured.keys() == BUDGETS["shares"].keys()


def earlier_budgets() -> list[dict[str, Any]]:
    """The tables of all earlier commits; none without git or its history."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout

    name = TABLE.relative_to(ROOT).as_posix()
    try:
        commits = git("log", "--format=%H", "--", name).split()
        return [tomllib.loads(git("show", f"{commit}:{name}")) for commit in commits]
    except (OSError, subprocess.CalledProcessError):
        return []


def test_a_budget_rises_with_a_reason_only() -> None:
    """A room whose budget was lower once names the decision that raised it."""
    raised = {
        rooms
        for earlier in earlier_budgets()
        for rooms, most in earlier.get("lines", {}).items()
        if BUDGETS["lines"].get(rooms, 0) > most
    }
    reasons = BUDGETS["raised"]

    assert raised <= reasons.keys()
    assert [name for name in reasons.values() if not (ROOT / "docs" / "decisions" / name).exists()] == []
