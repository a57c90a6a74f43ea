"""The sub-tasks: those that are photos are rows of `photos.toml`, each of the others is a file with a `load()`.

Other packages add theirs by entry points of the group `eyespot.recos_subtasks`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from eyespot import rooms
from eyespot.curate.recos.drawing.generator import Generator
from eyespot.types import UsageError

COARSE, FINE, COGNITIVE = "coarse", "fine", "cognitive"
FILES, GUESTS = "curate.recos.subtasks", "recos_subtasks"  # rooms: this folder, and what other packages add


@dataclass(frozen=True)
class Subtask:
    """One of the kinds of retrieval.

    `about` tells a writer what captions must hang on, `attributes` what a confusing caption may change. `count` is how
    many pictures v0 has of it, `queries` what a gallery is searched for where a recipe names nothing else. Pictures of
    a `generator` are drawn; one that is `stand_in` only takes the place of photos that are not there.
    """

    name: str
    family: str
    count: int
    about: str
    attributes: tuple[str, ...]
    queries: tuple[str, ...] = ()
    generator: Generator | None = None
    stand_in: str = ""
    opt_in: bool = False


def names() -> list[str]:
    """All sub-tasks, by families: coarse, fine, cognitive; nothing is drawn or read."""
    order = (COARSE, FINE, COGNITIVE)
    return sorted(subtasks(), key=lambda name: (order.index(subtasks()[name].family), name))


def subtask(name: str) -> Subtask:
    """The sub-task of this name; `UsageError` if there is none."""
    if name not in subtasks():
        raise UsageError(f"no sub-task {name!r}; there are: {', '.join(names())}")
    return subtasks()[name]


@cache
def subtasks() -> Mapping[str, Subtask]:
    """Every sub-task by its name: those of the table, of the files of this folder, and of other packages."""
    table = tomllib.loads(Path(__file__).with_name("photos.toml").read_text(encoding="utf-8"))
    photos = [Subtask(name, **{key: _plain(value) for key, value in row.items()}) for name, row in table.items()]
    members = [rooms.load(room, name) for room in (FILES, GUESTS) for name in rooms.names(room)]
    return {member.name: member for member in [*photos, *members]}


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
