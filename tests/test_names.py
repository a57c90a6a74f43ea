"""Names are found by whoever looks for them: one name for one thing, in the field's words, in rooms that tools see."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "eyespot"
PARTICIPLES = {"asked", "found", "heard", "kept", "named", "said", "shown", "spoken", "stood", "told"}
# Words that nobody in the field uses for these things; and such as are to become fewer (tests/budgets.toml)
PRIVATE = {"barren", "door", "hands", "hatched", "invent", "nest", "paint", "taught", "theirs", "voices"}
VAGUE = {"asked", "chance", "grace", "its", "kept", "look", "looked", "own", "said", "telling", "told"}
LONGEST_BODY = 40  # lines
LONGEST_FILE = 400


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}


def functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def names() -> Iterator[tuple[str, set[str]]]:
    """Each name that the package gives: of a class, function, parameter or variable, and its words."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            name = getattr(node, "name", None) or getattr(node, "arg", None)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            if name and isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.arg | ast.Name):
                words = re.sub("([a-z])([A-Z])", r"\1_\2", name).casefold().split("_")
                yield f"{path.relative_to(PACKAGE)}:{node.lineno} {name}", set(words)


def test_no_name_is_a_private_word() -> None:
    assert [place for place, words in names() if words & PRIVATE] == []


def test_no_two_classes_share_a_name() -> None:
    places = defaultdict(list)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_function_is_named_by_a_participle_alone() -> None:
    names = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"
        for path, node in functions()
        if node.name.strip("_") in PARTICIPLES
    ]
    assert names == []


def test_no_body_is_longer_than_a_screen() -> None:
    long = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"
        for path, node in functions()
        if (node.end_lineno or 0) - node.body[0].lineno + 1 > LONGEST_BODY
    ]
    assert long == []


def test_no_room_has_a_name_that_tools_skip() -> None:
    """Test discovery, ignore files and editors take these names for generated code."""
    folders = {path.name for path in PACKAGE.rglob("*") if path.is_dir()}
    assert folders & {"build", "dist", "env", "venv", "node_modules", "target"} == set()


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE} == {}


def private_imports(path: Path, tree: ast.Module) -> Iterator[str]:
    """Where a file imports a module or a name of another room that begins with one underscore."""
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for node in ast.walk(tree):
        imported: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and str(node.module).split(".")[0] == PACKAGE.name:
            imported = [f"{node.module}.{name.name}" for name in node.names]
        elif isinstance(node, ast.Import):
            imported = [name.name for name in node.names if name.name.split(".")[0] == PACKAGE.name]
        for name in imported:
            parts = name.split(".")[1:]
            if parts[:1] != [room] and any(part.startswith("_") and not part.startswith("__") for part in parts):
                yield f"{path.relative_to(PACKAGE)}:{node.lineno} {name}"


def test_no_room_imports_what_is_private_to_another() -> None:
    assert [place for path, tree in trees().items() for place in private_imports(path, tree)] == []


def test_a_private_import_is_seen_however_it_is_written() -> None:
    lines = "import eyespot.judges._prompt\nfrom eyespot.judges._prompt import JudgePrompt\n"
    lines += "from eyespot.judges import _wording\nfrom eyespot.search import _plan\nfrom eyespot import __version__\n"

    found = [place.split()[0] for place in private_imports(PACKAGE / "search" / "new.py", ast.parse(lines))]

    assert found == ["search/new.py:1", "search/new.py:2", "search/new.py:3"]


# -- no module imports itself by way of others, not even inside a function or for types alone ---------------------


ALLOWED: frozenset[tuple[str, str]] = frozenset()  # imports (from, to) that may close a cycle: none


def modules(package: Path) -> dict[str, Path]:
    """Every module of a package by its name."""
    names = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a module imports, wherever in it the import stands.

    A package that is only passed through on the way to one of its modules does not count: `import eyespot.a.b` in a
    module of `eyespot.a` is no cycle.
    """
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            for alias in node.names:
                if (full := f"{base}.{alias.name}") in known:
                    yield full
                elif base in known:
                    yield base


def cycle_of(package: Path, allowed: frozenset[tuple[str, str]] = ALLOWED) -> list[str]:
    known = modules(package)
    graph = {
        name: {other for other in imports(name, path, known) if other != name and (name, other) not in allowed}
        for name, path in known.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert cycle_of(PACKAGE) == []


@pytest.mark.parametrize(
    "closing",
    [
        "from pack import first",
        "def late():\n    from pack.first import name",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import first",
        "import pack.first",
    ],
)
def test_a_cycle_is_found_wherever_the_import_stands(tmp_path: Path, closing: str) -> None:
    files = {"__init__": "", "first": "from pack.second import name", "second": closing}
    for name, text in files.items():
        place = tmp_path / "pack" / f"{name}.py"
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
    assert set(cycle_of(tmp_path / "pack")) == {"pack.first", "pack.second"}


# -- the package stays as small as budgets.toml says -------------------------------------------------------------------


ROOT = PACKAGE.parent
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
