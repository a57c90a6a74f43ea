"""Stage 3: photos of the seed set that may be answers, by what they look like and by what is said of them.

The target's description finds the 16 nearest photos in each space of pictures, and the 4 whose own descriptions are
nearest to it. The input itself is never a candidate, nor is a photo that is all but the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.curate._world import PhotoWorld
from eyespot.parallel import batches
from eyespot.pipelines import Context, Drop, Keep, Outcome, Record, Records
from eyespot.types import Index, Mask, NearestRows

NOTHING, COPY = "no candidates", "a candidate all but the same as the input"
TEXTS = "descriptions"  # the space of texts, beside the spaces of pictures
SPARE = 8  # hits beyond those wanted, for the input and its copies
AT_ONCE = 256  # queries searched together


@dataclass(frozen=True)
class CandidateSettings:
    """How many candidates each index gives. `spaces` are encoders of the gallery; none: its own.

    `text_encoder` embeds descriptions; without one there is no text index. `copy` is the cosine in the first space from
    which on a candidate is taken for a copy of the input.
    """

    images: int = 16
    texts: int = 4
    spaces: tuple[str, ...] = ()
    text_encoder: str | None = None
    copy: float = 0.97

    def space_names(self, world: PhotoWorld) -> list[str]:
        """The spaces of pictures by the names of their encoders, the first the one that reliability is told by."""
        return list(self.spaces) or [world.view().space.encoder]


def retrieve(world: PhotoWorld, settings: CandidateSettings, queries: Records, seeds: Records) -> Iterator[Outcome]:
    """For each query its candidates, a record each."""
    indexes = _Indexes.of(world, settings, list(seeds))
    for some in batches(queries, AT_ONCE):
        targets = [query["target"] for query in some]
        wanted = {space: (indexes.settings.images, indexes.by_picture(space, targets)) for space in indexes.spaces}
        wanted[TEXTS] = (indexes.settings.texts, indexes.by_description(targets))
        for at, query in enumerate(some):
            lists = {name: (most, found[at]) for name, (most, found) in wanted.items()}
            yield from _of_query(query, lists, indexes)


def work(world: PhotoWorld, settings: CandidateSettings) -> Any:
    """The same as the work of a step that needs `seeds`."""

    def find(records: Records, context: Context) -> Iterator[Outcome]:
        return retrieve(world, settings, records, context.earlier["seeds"])

    return find


@dataclass(frozen=True)
class _Indexes:
    """The seed set, searchable by picture in several spaces and by description in one."""

    world: PhotoWorld
    settings: CandidateSettings
    seeds: Sequence[Record]
    spaces: list[str]
    rows: Mapping[str, int]  # photo → row of the gallery in the first space
    by_row: Mapping[str, Mapping[int, int]]  # of each space: row of the gallery → place in `seeds`
    texts: tuple[Index, NDArray[np.int64]] | None  # the index, and the place in `seeds` of each of its rows

    @classmethod
    def of(cls, world: PhotoWorld, settings: CandidateSettings, seeds: Sequence[Record]) -> _Indexes:
        spaces = settings.space_names(world)
        rows = {space: world.rows(space) for space in spaces}
        by_row = {
            space: {its[seed["id"]]: at for at, seed in enumerate(seeds) if seed["id"] in its}
            for space, its in rows.items()
        }
        places = [at for at, seed in enumerate(seeds) if seed["description"]]
        text_index = None
        if settings.text_encoder is not None and settings.texts and places:
            vectors = world.descriptions([seeds[at]["description"] for at in places], settings.text_encoder)
            text_index = rooms.load("indexes", "exact", [vectors]), np.array(places)
        return cls(world, settings, seeds, spaces, rows[spaces[0]], by_row, text_index)

    def by_picture(self, space: str, targets: Sequence[str]) -> list[list[int]]:
        """For each target the places of the nearest photos."""
        index = self.world.index(space)
        mask: Mask = np.zeros(int(self.world.view(space).starts[-1]), bool)
        mask[list(self.by_row[space])] = True
        found = index.search(self.world.texts(targets, space), self.settings.images + SPARE, mask)
        return [[self.by_row[space][row] for row in rows] for rows in found.rows.tolist()]

    def by_description(self, targets: Sequence[str]) -> list[list[int]]:
        """The same by what is said of the photos."""
        if self.texts is None or self.settings.text_encoder is None:
            return [[] for _ in targets]
        index, places = self.texts
        vectors = self.world.descriptions(targets, self.settings.text_encoder)
        found: NearestRows = index.search(vectors, self.settings.texts + SPARE)
        return [places[rows].tolist() for rows in found.rows]

    def likeness(self, query: Record, places: Sequence[int]) -> list[float]:
        """The cosines of candidates with the input, in the first space."""
        if query["image"] not in self.rows:
            return [0.0] * len(places)
        rows = [self.rows.get(self.seeds[place]["id"], -1) for place in places]
        mine, *theirs = self.world.vectors([self.rows[query["image"]], *rows], self.spaces[0])
        return [float(one @ mine) for one in theirs]


# -- one query --------------------------------------------------------------------------------------------------


def _of_query(query: Record, lists: Mapping[str, tuple[int, list[int]]], indexes: _Indexes) -> Iterator[Outcome]:
    """The union of the lists, in the order of the first space and then of the others."""
    every = list(dict.fromkeys(place for _, found in lists.values() for place in found))
    others = [place for place in every if indexes.seeds[place]["id"] != query["image"]]
    near = dict(zip(others, indexes.likeness(query, others), strict=True))
    copies = {place for place, cosine in near.items() if cosine >= indexes.settings.copy}
    allowed = set(others) - copies
    ranks: dict[int, dict[str, int]] = {}
    for name, (most, found) in lists.items():
        left = [place for place in found if place in allowed][:most]
        for rank, place in enumerate(left, 1):
            ranks.setdefault(place, {})[name] = rank
    for number, place in enumerate(ranks, 1):
        yield Keep(_triplet(query, number, indexes.seeds[place], ranks[place]), query["id"])
    for number, place in enumerate(sorted(copies), len(ranks) + 1):
        made = _triplet(query, number, indexes.seeds[place], {})
        yield Drop(made, COPY, f"cosine {near[place]:.4f}", query["id"])
    if not ranks and not copies:
        yield Drop(query, NOTHING)


def _triplet(query: Record, number: int, seed: Record, ranks: Mapping[str, int]) -> Record:
    about = {name: query[name] for name in ("kind", "image", "path", "labels", "question", "target")}
    theirs = {"candidate": seed["id"], "candidate_path": seed["path"], "candidate_labels": seed["labels"]}
    return {"id": f"{query['id']}/{number:02d}", "query": query["id"], **about, **theirs, "ranks": dict(ranks)}
