"""The sub-tasks: those that are photos are rows of `photos.toml`, each of the others is a file with a `load()`.

Other packages add theirs by entry points of the group `eyespot.recos_subtasks`. Pictures of some are drawn by a
generator: it samples their facts, draws and describes them; the record contains the facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from eyespot import rooms
from eyespot.storage.text_files import toml_of
from eyespot.types import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

Facts: TypeAlias = Mapping[str, Any]
"""All of a drawn picture, as JSON: `shown` (what is written on it), the `answer` to it, and how it is drawn."""

VAGUE, USUAL, DETAILED = 0, 1, 2
CAPTIONS: Mapping[str, Any] = toml_of(Path(__file__).with_name("captions.toml"))  # templates by kind of picture


class CaptionWordings(NamedTuple):
    """Five captions each of three kinds: less than is needed to find the picture, enough, and everything there is."""

    vague: Sequence[str]
    usual: Sequence[str]
    detailed: Sequence[str]


class Generator(Protocol):
    """Draws pictures of a sub-task; one file of `subtasks/` brings it."""

    def sample(self, rng: Random) -> Facts:
        """The facts of a random picture, its answer among them."""
        ...

    def draw(self, facts: Facts, rng: Random) -> Image:
        """The picture, the same for equal facts and `rng`. `UsageError` for a font that is not installed."""
        ...

    def wording(self, facts: Facts) -> CaptionWordings:
        """True captions of it; caption i of two pictures differs only in their facts."""
        ...


def fill_captions(name: str, fields: Mapping[str, str]) -> CaptionWordings:
    """The captions under this name in `captions.toml`, with their fields filled in."""
    templates = CAPTIONS[name]
    vague, usual = ([text.format_map(fields) for text in templates[level]] for level in ("vague", "usual"))
    detail = templates["detail"].format_map(fields)
    return CaptionWordings(vague, usual, [f"{text.removesuffix('.')}{detail}." for text in usual])


def kind_fields(kind: str) -> dict[str, str]:
    """Fields for a kind of thing: the noun alone, and with its article at the beginning and inside of a sentence."""
    article = "an" if kind[0] in "aeiou" else "a"
    return {"kind": kind, "a_kind": f"{article} {kind}", "A_kind": f"{article.capitalize()} {kind}"}


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
