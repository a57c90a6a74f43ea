"""Stage 0, the seed set, and stage 3, the photos of it that may be answers, and controls (RMIR, section 3.1).

A target's description finds the nearest photos in each space of pictures, and those whose own descriptions are nearest.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.curate._world import PhotoWorld
from eyespot.curate.set_folder import TEXT, WHOLE, write_table
from eyespot.gallery.view import View
from eyespot.kernels.kmeans import KMeans, cluster, drawn_from_each
from eyespot.parallel import batches
from eyespot.pipelines import Context, Drop, Keep, Outcome, Record
from eyespot.storage.atomic import write_whole
from eyespot.types import Index, Mask, NearestRows, NothingFound

NOT_DRAWN, NO_VECTOR = "not drawn from its cluster", "no vector or no picture"
CLUSTERS = "clusters.json"
ROWS_AT_ONCE = 8192
SEED_COLUMNS = {
    "kept": {"id": TEXT, "path": TEXT, "cluster": WHOLE, "description": TEXT, "labels": TEXT},
    "dropped": dict.fromkeys(("id", "reason", "detail", "path"), TEXT),
}


@dataclass(frozen=True)
class SeedSettings:
    """`clusters` None makes no clusters and takes every photo; else `each` photos are drawn from a cluster.

    Centroids are learned from `sample` photos where that is fewer than all. A photo's description is the first of the
    columns `descriptions` that is filled; `labels` are columns that a demonstration may read as well.
    """

    clusters: int | None = None
    each: int = 10
    iterations: int = 10
    sample: int | None = None
    space: str | None = None
    descriptions: tuple[str, ...] = ("description", "caption", "caption_1", "text", "title")
    labels: tuple[str, ...] = ()


def draw(world: PhotoWorld, settings: SeedSettings, folder: Path, context: Context) -> int:
    """Fill a step's folder with the drawn and the other photos; how many there are in all."""
    view = world.view(settings.space)
    rows = np.flatnonzero(view.live)  # (photos,)
    if not len(rows):
        raise NothingFound(f"{world.gallery} has no photos yet; add some with: eyespot index PHOTOS -g {world.gallery}")
    labels = _labels(world, rows, settings, folder, context)
    taken = drawn_from_each(labels, settings.each, context.seed) if settings.clusters else np.arange(len(rows))
    chosen = np.zeros(len(labels), bool)
    chosen[taken] = True
    others = [(rows[~chosen], NOT_DRAWN), (np.flatnonzero(~view.live), NO_VECTOR)]
    dropped = (
        {"id": facts["id"], "reason": reason, "detail": "", "path": facts["path"] or ""}
        for part, reason in others
        for some in batches(part.tolist(), ROWS_AT_ONCE)
        for facts in view.facts(some)
    )
    tables = {"kept": _drawn(view, rows[chosen], labels[chosen], settings), "dropped": dropped}
    for name, columns in SEED_COLUMNS.items():
        write_table(folder / f"{name}.parquet", tables[name], columns, ROWS_AT_ONCE)
    return int(view.starts[-1])


# -- clusters ---------------------------------------------------------------------------------------------------


def _labels(
    world: PhotoWorld, rows: NDArray[np.int64], settings: SeedSettings, folder: Path, context: Context
) -> NDArray[np.int32]:
    """The cluster of each photo, (photos,); what clustering came to is told in the step's folder."""
    if settings.clusters is None:
        return np.arange(len(rows), dtype=np.int32)
    how = KMeans(min(settings.clusters, len(rows)), settings.iterations, context.seed, settings.sample)
    view, scratch = world.view(settings.space), folder / "vectors.npy"
    found = cluster(_gathered(view, rows, scratch), how, context.tell)
    scratch.unlink(missing_ok=True)
    note = {"photos": len(rows), "clusters": how.clusters, "inertia": float(found.inertia), "space": view.space.encoder}
    write_whole(folder / CLUSTERS, lambda file: file.write(json.dumps(note).encode()))
    return found.labels


def _gathered(view: View, rows: NDArray[np.int64], scratch: Path) -> NDArray[Any]:
    """The rows' vectors as one array on the disk, (rows, dim), so that millions need no memory."""
    if len(view.blocks) == 1 and len(rows) == len(view.blocks[0]):
        return view.blocks[0]
    shape = len(rows), view.space.dim
    whole = np.lib.format.open_memmap(scratch, "w+", view.blocks[0].dtype, shape)
    at = 0
    for start, block in zip(view.starts.tolist(), view.blocks, strict=False):
        within = rows[(rows >= start) & (rows < start + len(block))] - start
        for part in range(0, len(within), ROWS_AT_ONCE):
            some = within[part : part + ROWS_AT_ONCE]
            whole[at : at + len(some)] = block[some]
            at += len(some)
    return np.asarray(whole)


# -- tables -----------------------------------------------------------------------------------------------------


def _drawn(
    view: View, rows: NDArray[np.int64], labels: NDArray[np.int32], settings: SeedSettings
) -> Iterator[dict[str, Any]]:
    for some in batches(zip(rows.tolist(), labels.tolist(), strict=True), ROWS_AT_ONCE):
        for (_, label), facts in zip(some, view.facts([row for row, _ in some]), strict=True):
            description = next(iter(_column_texts(facts, settings.descriptions)), "")
            labelled = "; ".join(_column_texts(facts, settings.labels))
            place = {"id": facts["id"], "path": facts["path"] or "", "cluster": label}
            yield {**place, "description": description, "labels": labelled}


def _column_texts(facts: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """What these columns say of a photo, as far as they are filled."""
    return [text for name in columns if (text := str(facts.get(name) or "").strip())]


NOTHING, COPY = "no candidates", "a candidate all but the same as the input"
TEXTS = "descriptions"  # the space of texts, beside the spaces of pictures
SPARE = 8  # hits beyond those wanted, for the input and its copies
AT_ONCE = 256  # queries searched together
FAR, OTHER = "a far photo", "another query's target"  # controls
LOTS = 32  # photos of which the farthest is far


@dataclass(frozen=True)
class CandidateSettings:
    """How many candidates each index gives. `spaces` are encoders of the gallery; none: its own.

    `text_encoder` embeds descriptions; without one there is no text index. `copy` is the cosine in the first space from
    which on a candidate is taken for a copy of the input. `controls` is the share of triplets that cannot answer.
    """

    images: int = 16
    texts: int = 4
    spaces: tuple[str, ...] = ()
    text_encoder: str | None = None
    copy: float = 0.97
    controls: float = 0.05

    def most(self, spaces: int) -> int:
        """The most triplets of a query, its controls among them."""
        found = self.images * spaces + (self.texts if self.text_encoder is not None else 0)
        return found + math.ceil(found * self.controls)

    def space_names(self, world: PhotoWorld) -> list[str]:
        """The spaces of pictures by the names of their encoders, the first the one that reliability is told by."""
        return list(self.spaces) or [world.view().space.encoder]


def retrieve(
    world: PhotoWorld,
    settings: CandidateSettings,
    queries: Iterable[Record],
    context: Context,
    seeds: Sequence[Record] | None = None,
) -> Iterator[Outcome]:
    """For each query its candidates, a record each, and its controls; among all of the seed set, or these `seeds`."""
    indexes = _Indexes.of(world, settings, list(context.earlier["seeds"]) if seeds is None else seeds)
    for some in batches(queries, AT_ONCE):
        targets = [query["target"] for query in some]
        wanted = {space: (indexes.settings.images, indexes.by_picture(space, targets)) for space in indexes.spaces}
        first = wanted[indexes.spaces[0]][1]
        wanted[TEXTS] = (indexes.settings.texts, indexes.by_description(targets))
        for at, query in enumerate(some):
            lists = {name: (most, found[at]) for name, (most, found) in wanted.items()}
            yield from _of_query(query, lists, indexes)
            heads = [
                found[0] for one, found in zip(some, first, strict=True) if found and one["image"] != query["image"]
            ]
            yield from _controls(query, lists, heads, indexes, context.rng("controls", query["id"]))


@dataclass(frozen=True)
class PoolSettings:
    """How many of the first photos of the pool are judged for a query, by these encoders (none: all of the gallery)."""

    depth: int = 20
    spaces: tuple[str, ...] = ()
    workers: int = 8


def pooled(
    world: PhotoWorld, settings: PoolSettings, found: CandidateSettings, sure: Iterable[Record], context: Context
) -> Iterator[Outcome]:
    """The triplets that the panel is sure of, and those of photos near a query's target that no index found for it.

    Only photos that answer some query are looked at, for they make up the pool (pooling as at TREC). Without the
    earlier step `candidates` all that are near come, also those that an index found.
    """
    first = {one["query"]: one["id"] for one in sure if one["answers"]}
    targets = {one["candidate"] for one in sure if one["answers"]}
    known = {(one["query"], one["candidate"]) for one in context.earlier.get("candidates", ())}
    seeds = [seed for seed in context.earlier["seeds"] if seed["id"] in targets]
    spaces = settings.spaces or tuple(world.view().gallery.encoders)
    how = replace(found, images=settings.depth, texts=settings.depth, spaces=spaces, controls=0.0)
    queries = [one for one in context.earlier["checked"] if one["id"] in first]
    yield from map(Keep, sure)
    for outcome in retrieve(world, how, queries, context, seeds) if seeds else ():
        one = outcome.record
        if isinstance(outcome, Keep) and (one["query"], one["candidate"]) not in known:
            made = {**one, "id": f"{one['query']}/pool-{one['id'].rpartition('/')[2]}", "ranks": {}, "pooled": True}
            yield Keep(made, first[one["query"]])


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
            space: {row_of[seed["id"]]: at for at, seed in enumerate(seeds) if seed["id"] in row_of}
            for space, row_of in rows.items()
        }
        places = [at for at, seed in enumerate(seeds) if seed["description"]]
        text_index = None
        if settings.text_encoder is not None and settings.texts and places:
            vectors = world.descriptions([seeds[at]["description"] for at in places], settings.text_encoder)
            text_index = rooms.load("indexes", "exact", [vectors]), np.array(places)
        return cls(world, settings, seeds, spaces, rows[spaces[0]], by_row, text_index)

    def by_picture(self, space: str, targets: Sequence[str]) -> list[list[int]]:
        """For each target the places of the nearest photos."""
        index = self.world.collection(space).index
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
        given, *others = self.world.vectors([self.rows[query["image"]], *rows], self.spaces[0])
        return [float(one @ given) for one in others]


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


def _controls(
    query: Record, lists: Mapping[str, Any], heads: Iterable[int], indexes: _Indexes, rng: Random
) -> Iterator[Outcome]:
    """Triplets of photos that a query did not find: the first hit of another query, of `heads`, or one far from it."""
    used = {place for _, found in lists.values() for place in found}
    used.add(indexes.by_row[indexes.spaces[0]].get(indexes.rows.get(query["image"], -1), -1))
    count = int(min(len(used), indexes.settings.most(len(indexes.spaces))) * indexes.settings.controls + rng.random())
    for number in range(1, count + 1):
        free, why = [place for place in heads if place not in used], OTHER
        if not free or rng.random() < 0.5:
            lots = rng.sample(range(len(indexes.seeds)), min(LOTS, len(indexes.seeds)))
            rows = {place: indexes.rows.get(indexes.seeds[place]["id"], -1) for place in lots if place not in used}
            vectors = indexes.world.vectors([*rows.values()], indexes.spaces[0])  # (lots, dim)
            near = vectors @ indexes.world.texts([query["target"]], indexes.spaces[0])[0]
            free, why = [[*rows][at] for at in np.argsort(near, kind="stable")[:1].tolist()], FAR
        if free:
            place = rng.choice(free)
            used.add(place)
            made = {**_triplet(query, 0, indexes.seeds[place], {}), "control": why}
            yield Keep({**made, "id": f"{query['id']}/control-{number}"}, query["id"])


def _triplet(query: Record, number: int, seed: Record, ranks: Mapping[str, int]) -> Record:
    about = {name: query[name] for name in ("kind", "image", "path", "labels", "question", "target")}
    answer = {"candidate": seed["id"], "candidate_path": seed["path"], "candidate_labels": seed["labels"]}
    return {"id": f"{query['id']}/{number:02d}", "query": query["id"], **about, **answer, "ranks": dict(ranks)}
