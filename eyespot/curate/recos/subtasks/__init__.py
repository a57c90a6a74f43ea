"""The sub-tasks: each a file of this folder whose `load()` says what its captions tell; the folder is the list.

Other packages add theirs by entry points of the group `eyespot.recos_subtasks`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from eyespot.curate.recos.drawing.generator import Generator
from eyespot.types import UsageError

COARSE, FINE, COGNITIVE = "coarse", "fine", "cognitive"


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


_known: dict[str, Subtask] = {}


def subtasks() -> Mapping[str, Subtask]:
    """Every sub-task by its name."""
    if not _known:
        own = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
        loaded = [import_module(f"{__name__}.{name}") for name in own if not name.startswith("_")]
        guests = [point.load() for point in entry_points(group="eyespot.recos_subtasks")]
        _known.update({made.name: made for made in (module.load() for module in [*loaded, *guests])})
    return _known
