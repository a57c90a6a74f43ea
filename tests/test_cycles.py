"""No module imports itself by way of others, not even inside a function or for types alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "eyespot"
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
    """The modules of a cycle in the order of their imports; empty if there is none."""
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
