"""What a change can break: the long tests and the extras that the commits since CI passed last reach.

    python scripts/changed.py [--base COMMIT]    prints the files of long tests to run, says why on stderr

A test is reached through the import graph: a room that changed reaches every room that imports it, and a file of tests
is run if it, its helpers or a room that it imports was reached. What all stand on (`EVERYTHING`) reaches all.
`.ci/passed` names the commit that passed CI last; where this history has no such commit, those of two days count, back
from the date of the newest, and without a history everything has changed.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, TESTS = "eyespot", "tests"
DAYS = 2
EVERYTHING = (
    *(f"{PACKAGE}/{name}" for name in ("storage/", "types/", "rooms.py", "extras.py", "__init__.py")),
    *(".ci/run", "Makefile", "constraints.txt", "pyproject.toml", "scripts/changed.py"),
)
TEXTS = ("docs", "examples", "scripts", "bench", "README.md", "CONTRIBUTING.md")  # whoever reads one names it


@dataclass(frozen=True)
class Change:
    """The files that differ from `base`, by their names from the root; `base` is None where all may have changed."""

    base: str | None
    files: frozenset[str]

    @classmethod
    def since(cls, base: str | None) -> Change:
        return cls(base, frozenset(_git("diff", "--name-only", base).splitlines()) if base else frozenset())

    def touches(self, *places: str) -> list[str]:
        """The changed files at these places: a folder ends in a slash."""
        return sorted(file for file in self.files if any(file == place or _below(file, place) for place in places))

    def before(self, file: str) -> str:
        """What stood in a file at `base`; nothing if it was not there."""
        return _git("show", f"{self.base}:{file}") or ""


def main() -> int:
    """The exit code."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--base", metavar="COMMIT", help="compare with this commit")
    given = options.parse_args()
    change = Change.since(given.base or commit_that_passed())
    chosen, why = long_tests(change)
    print(f"long tests: {len(chosen)} of {len(test_files())} files, {why}", file=sys.stderr)
    if left := sorted(test_files() - chosen):
        print(f"left out, as nothing that they run has changed: {' '.join(left)}", file=sys.stderr)
    print(*sorted(chosen), sep="\n")
    return 0


def commit_that_passed(root: Path = ROOT) -> str | None:
    """What `.ci/passed` names, or else the last commit that is older than `DAYS`; None without such a history."""
    place = root / ".ci" / "passed"
    named = place.read_text(encoding="ascii").strip() if place.exists() else ""
    if re.fullmatch("[0-9a-f]{40}", named) and named in _git("rev-list", "HEAD", root=root).split():
        return named
    newest = _git("log", "-1", "--format=%ct", root=root).strip()
    if not newest:
        return None
    return _git("rev-list", "-1", f"--before={int(newest) - DAYS * 86_400}", "HEAD", root=root).strip() or None


# -- tests --------------------------------------------------------------------------------------------------------


def long_tests(change: Change) -> tuple[set[str], str]:
    """The files with long tests that a change reaches, and why."""
    tests = test_files()
    if change.base is None:
        return tests, "for there is no history to compare with"
    helpers = {file for file in change.touches(f"{TESTS}/") if _is_helper(file)}
    if fundamental := change.touches(*EVERYTHING) + [file for file in helpers if Path(file).parent == Path(TESTS)]:
        return tests, f"for all stand on {fundamental[0]}"
    rooms = {_room(file) for file in change.touches(f"{PACKAGE}/")}
    texts = {place for place in TEXTS if change.touches(place, f"{place}/")}
    chosen = {file for file in tests if file in change.files or _reach(file) & rooms or _names(file) & texts}
    chosen |= {file for file in tests if {path.relative_to(ROOT).as_posix() for path in _files(ROOT / file)} & helpers}
    return chosen, f"reached from {', '.join(sorted(rooms | texts)) or 'tests alone'} since {change.base[:9]}"


@cache
def test_files() -> set[str]:
    """Those with a test that is marked as long, by itself or by the `conftest.py` beside it."""
    marking = {path for path in (ROOT / TESTS).rglob("*.py") if "mark.long" in path.read_text(encoding="utf-8")}
    paths = {path for path in (ROOT / TESTS).rglob("test_*.py") if marking & {path, path.parent / "conftest.py"}}
    return {path.relative_to(ROOT).as_posix() for path in paths}


def _is_helper(file: str) -> bool:
    return file.endswith(".py") and not Path(file).name.startswith("test_")


def _reach(file: str) -> set[str]:
    """The rooms that run when a file of tests does: its folder's, what it imports, and what these import.

    A file that lies in no folder is about the whole package.
    """
    folder = Path(file).parent.relative_to(TESTS).parts
    if not folder:
        return set(_graph())
    names = {folder[0]} | {_room(name) for name in _imports(ROOT / file) if name.startswith(f"{PACKAGE}.")}
    return set().union(*(_below_room(name) for name in names))


def _imports(path: Path) -> set[str]:
    """What a file of tests uses of the package, as `eyespot.room.name`: itself, or by the helpers that it imports."""
    found = set[str]().union(*map(_uses, _files(path)))
    return found | _named(ROOT / PACKAGE / "__init__.py") if PACKAGE in found else found  # `eyespot.open` and its like


@cache
def _files(path: Path) -> frozenset[Path]:
    """A file of tests, its room's conftest.py, and the helpers that these import, directly or not."""
    found, waiting = set[Path](), [path, path.parent / "conftest.py"]
    while waiting:
        if (file := waiting.pop()) not in found and file.exists():
            found.add(file)
            waiting += filter(None, map(_helper, (name for name in _uses(file) if name.startswith(f"{TESTS}."))))
    return frozenset(found)


@cache
def _uses(path: Path) -> frozenset[str]:
    """What a file imports, and what it names of rooms and of programs that other processes run."""
    code = re.findall(rf"\b(?:{PACKAGE}|{TESTS}\.worlds)\.[a-z_]+", path.read_text(encoding="utf-8"))
    return _named(path) | {f"{PACKAGE}.{room}" for room in _loaded(path)} | set(code)


@cache
def _named(path: Path) -> frozenset[str]:
    return _imported(path.read_text(encoding="utf-8"))


def _imported(code: str) -> frozenset[str]:
    """What import statements name, those inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return frozenset(found)


def _helper(name: str) -> Path | None:
    """The file of tests in which an imported name lies."""
    module = ROOT / name.replace(".", "/")
    places = (module.with_suffix(".py"), module / "__init__.py", module.parent.with_suffix(".py"))
    return next((place for place in (*places, module.parent / "__init__.py") if place.is_file()), None)


def _names(file: str) -> set[str]:
    """Which of `TEXTS` a file of tests reads."""
    text = (ROOT / file).read_text(encoding="utf-8")
    return {place for place in TEXTS if f'"{place}"' in text or f'"{place}/' in text}


# -- rooms --------------------------------------------------------------------------------------------------------


@cache
def _graph() -> Mapping[str, frozenset[str]]:
    """By room the rooms that it imports, those included that it loads by name."""
    import grimp  # comes with import-linter

    graph = grimp.build_graph(PACKAGE)
    edges: dict[str, set[str]] = {}
    for module in graph.modules - {PACKAGE}:
        imported = {_room(name) for name in graph.find_modules_directly_imported_by(module) if name != PACKAGE}
        edges.setdefault(_room(module), set()).update(imported)
    for path in (ROOT / PACKAGE).rglob("*.py"):
        room = path.relative_to(ROOT / PACKAGE).parts[0].removesuffix(".py")
        edges.setdefault(room, set()).update(_loaded(path))
    return {room: frozenset(names) for room, names in edges.items()}


def _loaded(path: Path) -> set[str]:
    """The rooms of which a file loads members by their names."""
    return set(re.findall(r'rooms\.(?:load|names|module)\(\s*"(\w+)"', path.read_text(encoding="utf-8")))


@cache
def _below_room(room: str) -> frozenset[str]:
    """A room and all that it imports, directly or not."""
    found, waiting = {room}, [room]
    while waiting:
        fresh = _graph().get(waiting.pop(), frozenset()) - found
        found |= fresh
        waiting += fresh
    return frozenset(found)


def _room(name: str) -> str:
    """The room of `eyespot.room.module` or of `eyespot/room/module.py`."""
    return name.replace("/", ".").split(".")[1]


# -- extras -------------------------------------------------------------------------------------------------------


def changed_rows(change: Change, table: Mapping[str, Mapping[str, Any]], brings: Mapping[str, str]) -> dict[str, str]:
    """The tables of extras.toml to try, and why: always, or as its line, commands or places have changed, or what a
    file imports that imports what the extra brings. What else such a file does is the same in every environment.

    `brings` maps a package to the extra that brings it.
    """
    if change.base is None:
        return dict.fromkeys(table, "there is no history to compare with")
    rows, lines = tomllib.loads(change.before("scripts/extras.toml")), _extras(change.before("pyproject.toml"))
    now = _extras((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    chosen = {}
    for name, row in table.items():
        if row.get("always"):
            chosen[name] = "each time"
        elif row.get("commands") != rows.get(name, {}).get("commands") or now.get(name) != lines.get(name):
            chosen[name] = "its line or its commands changed"
        elif touched := change.touches(*row.get("places", ())) + _new_imports(name, brings, change):
            chosen[name] = f"{touched[0]} changed"
    return chosen


def _extras(pyproject: str) -> Mapping[str, list[str]]:
    found: Mapping[str, list[str]] = tomllib.loads(pyproject).get("project", {}).get("optional-dependencies", {})
    return found


def _new_imports(extra: str, brings: Mapping[str, str], change: Change) -> list[str]:
    """The files of the package that import what an extra brings, and whose imports have changed."""
    packages = {package for package, name in brings.items() if name == extra}
    found = []
    for file in change.touches(f"{PACKAGE}/") if packages else ():
        if file.endswith(".py") and (ROOT / file).exists():
            before, now = (_packages(text) for text in (change.before(file), (ROOT / file).read_text(encoding="utf-8")))
            found += [file] if now & packages and now != before else []
    return found


def _packages(code: str) -> set[str]:
    return {name.split(".")[0] for name in _imported(code)}


def _below(file: str, place: str) -> bool:
    return place.endswith("/") and file.startswith(place)


def _git(*words: str, root: Path = ROOT) -> str:
    """What git says; nothing where it cannot answer."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
