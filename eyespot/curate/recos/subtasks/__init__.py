"""The sub-tasks: those that are photos are rows of `photos.toml`, each of the others is a file with a `load()`.

Other packages add theirs by entry points of the group `eyespot.recos_subtasks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from eyespot import rooms
from eyespot.curate.recos.drawing.generator import Generator
from eyespot.storage.toml import toml_of
from eyespot.types import UsageError

COARSE, FINE, COGNITIVE = "coarse", "fine", "cognitive"
FILES, GUESTS = "curate.recos.subtasks", "recos_subtasks"  # rooms: this folder, and what other packages add


@dataclass(frozen=True)
class Subtask:
    """One of the kinds of retrieval.

    `about` tells a writer what captions must depend on, `attributes` what a confusing caption may change. `count` is
    the number of its pictures in v0, `queries` are the searches for photos unless the recipe has others. Pictures of
    a `generator` are drawn; `stand_in` says which missing photos they replace. Photos `of_writing` are those in which
    OCR read some, from galleries that were indexed with it.
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
    of_writing: bool = False


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
    table = toml_of(Path(__file__).with_name("photos.toml"))
    lists = ("attributes", "queries")
    photos = [Subtask(name, **row | {key: tuple(row.get(key, ())) for key in lists}) for name, row in table.items()]
    members = [rooms.load(room, name) for room in (FILES, GUESTS) for name in rooms.names(room)]
    return {member.name: member for member in [*photos, *members]}
