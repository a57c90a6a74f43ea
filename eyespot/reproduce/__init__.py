"""The tables of the papers, one recipe each: what it needs, the commands in order, and our numbers beside the printed.

    found = recipe("inquire-2")
    for command in found.commands(sample=False):
        print(command.line)

A recipe is a TOML file in `tables/`; adding a table is adding a file. Its steps are command lines of eyespot, which
anybody can type; `running` does those that are not finished yet.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from eyespot.reproduce.recipes import TableRecipe, read_table
from eyespot.types import UsageError

__all__ = ["TableRecipe", "names", "recipe"]
_FOLDER = Path(str(files(__name__) / "tables"))


def names() -> list[str]:
    """The tables that have a recipe."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def recipe(name: str) -> TableRecipe:
    """The recipe of a table by its name; `UsageError` lists those there are."""
    if name not in names():
        raise UsageError(f"no recipe for {name!r}; there are: {', '.join(names())}")
    return read_table(_FOLDER / f"{name}.toml")
