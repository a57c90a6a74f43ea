"""The gallery in one encoder's space as it is at one moment: rows, their facts, and how to search them.

Facts lie in `eyespot.web.found.facts`; snapshots share what they hold.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import fields
from datetime import date
from functools import cached_property
from shlex import quote
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from eyespot.adapters.linear import Linear
from eyespot.encoders import NEGATION
from eyespot.formats.exporting import tells_too_much
from eyespot.gallery import filters
from eyespot.gallery.files import SPARE, let_open
from eyespot.gallery.filters import Condition
from eyespot.gallery.groups.stored import Groups
from eyespot.gallery.view import View, place_of, place_order
from eyespot.gallery.word_index import WordIndex
from eyespot.kernels.codes import MAPPED
from eyespot.photos.names import shown_name
from eyespot.photos.places import ARCHIVES, Root
from eyespot.search.chain import chain_of
from eyespot.search.collection import Collection, no_match
from eyespot.search.embedding import KnownVectors, embed
from eyespot.search.named import NameReader
from eyespot.types import Encoder, Mask, Query, Run, Vectors, quantity
from eyespot.web._recent import RecentAnswers
from eyespot.web.found.facts import Facts, ShardFacts
from eyespot.web.found.masks import FactStore
from eyespot.web.found.scanning import LINEAR, OneAtATime, shared

if TYPE_CHECKING:
    from eyespot.search.adapted import AnyAdapter
    from eyespot.settings.search import RankingSettings

Answer = TypeVar("Answer")
QUERIES = 512  # whose vectors are remembered
BOOKKEEPING = ("live", "roots", "paths")


class PicturePlace(NamedTuple):
    """Where a picture's bytes may lie, and the root that they must not leave."""

    place: str
    root: Root


class RowView(View):
    """A view in which the id of a picture is its row: nothing is read for hits that no page shows."""

    def facts(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """The ids alone."""
        return [{"id": str(row)} for row in rows]

    def rows_of(self, ids: Sequence[str]) -> list[int]:
        """The rows that these ids are."""
        return [int(id) for id in ids]


# A query's unit vector (1, dim), what an encoder says of its words, and the score below which nothing fits
_Embedded = tuple[Vectors, dict[str, str | None], float | None]


class Snapshot:
    """One space of the gallery; what others index meanwhile is not in it."""

    def __init__(self, collection: Collection, store: FactStore, version: str) -> None:
        self.collection, self.store, self.version = collection, store, version
        self.missed, self.why_missed = "", ""  # a later version, and why it is not
        self._encoding = Lock()  # an encoder is called from one thread at a time
        self._searching = RLock()  # scans run one at a time
        self._known: RecentAnswers[_Embedded] = RecentAnswers(QUERIES)

    @property
    def view(self) -> View:
        """The rows that have vectors."""
        return self.collection.view

    def prepare(self) -> None:
        """Open all that the first search would wait for."""
        _ = self.view.blocks, self.fact_tables, self.view.live, self._kinds, self._by_row  # codes last
        if getattr(self.collection.index, "codes", ()):  # else somebody's third search would load kernels
            import eyespot.kernels.scans  # noqa: F401

    @cached_property
    def withheld(self) -> Snapshot:
        """The same, where words do not find what stands in columns that tell of places and owners."""
        _, made = self._by_row, copy(self)  # what is loaded is there once
        made.collection = copy(self.collection)
        made.collection.words = WordIndex(self.collection.gallery.path, hidden=tells_too_much)
        del made.__dict__["_by_row"]
        return made

    # -- facts ----------------------------------------------------------------------------------------------

    @cached_property
    def fact_tables(self) -> Facts:
        """The facts of all rows, as they were when this was opened."""
        return self.store.open(self.view.shards)

    @property
    def tables(self) -> Sequence[ShardFacts]:
        """The facts of each shard."""
        return self.fact_tables.tables

    def facts(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """What is known of these rows, in their order, as JSON has it; `path` tells no more than the root's name."""
        row_fields = []
        for row in self.fact_tables.take(rows):
            shown = None
            for root, path in self._roots_and_paths(row)[:1]:
                place = self.view.gallery.header.roots.get(root)
                # A path for people: within its root, and of what lies above only the root's own name
                if "://" not in path and (os.path.isabs(path) or ".." in path.replace("\\", "/").split("/")):
                    path = os.path.basename(path)
                elif "://" not in path and place is not None and place.kind in ("folder", *ARCHIVES):
                    path = f"{os.path.basename(place.path)}/{path}"
                shown = shown_name(path)
            row |= {name: value.isoformat() for name, value in row.items() if isinstance(value, date)}
            row |= {name: None for name, value in row.items() if isinstance(value, float) and not math.isfinite(value)}
            row_fields.append({name: value for name, value in row.items() if name not in BOOKKEEPING} | {"path": shown})
        return row_fields

    def places(self, row: int) -> list[PicturePlace]:
        """Where the picture of a row may lie."""
        return self.pictures([row])[0][1]

    def pictures(self, rows: Sequence[int]) -> list[tuple[str, list[PicturePlace]]]:
        """The id of each row, and where its picture may lie."""
        pictures = []
        for row in self.fact_tables.take(rows, ["id", "roots", "paths"]):
            named = ((self.view.gallery.root(root), path) for root, path in self._roots_and_paths(row))
            pictures.append((row["id"], [PicturePlace(place_of(root, path), root) for root, path in named]))
        return pictures

    def _roots_and_paths(self, row: dict[str, Any]) -> list[tuple[int, str]]:
        """A picture's roots and paths, the file that the command line names first."""
        named, root = [*zip(row["roots"], row["paths"], strict=True)], self.view.gallery.root
        return sorted(named, key=lambda one: place_order(place_of(root(one[0]), one[1]))) if len(named) > 1 else named

    def row_of(self, id: str) -> int | None:
        """The row of a picture by its id; None if it is not here or its picture is gone."""
        row = int(self.rows_by_id([id])[0])
        return None if row < 0 else row

    def rows_by_id(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """The rows of many pictures by their ids, (ids,); -1 for one that is not here or whose picture is gone."""
        return self.fact_tables.rows_by_id(ids, self.view.live)

    def vector(self, row: int) -> NDArray[np.float32]:
        """The unit vector of a row, (dim,)."""
        shard = int(np.searchsorted(self.view.starts, row, side="right")) - 1
        return np.asarray(self.view.blocks[shard][row - int(self.view.starts[shard])], np.float32)

    # -- searching ------------------------------------------------------------------------------------------

    def embedded(self, query: Query) -> Vectors:
        """The unit vector of words and pictures, (1, dim)."""
        return self._embedded(query)[0]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A block in which nobody else searches this snapshot or asks its encoder."""
        with self._searching, self._encoding:
            yield

    def reworded(self, query: Query) -> Query:
        """The query with the names that the encoder knows best, where the gallery was given names."""
        if self.collection.words.names is None:
            return query
        with self._encoding:
            known = self.collection
            return NameReader(known.words).reworded(query, known.encoder, known.contrast.sample)

    def ask_encoder(self, ask: Callable[[Encoder], Answer]) -> Answer:
        """What the encoder answers; others that need it wait meanwhile."""
        with self._encoding:
            return ask(self.collection.encoder)

    def _embedded(self, query: Query) -> _Embedded:
        """Remembered, for people page and come back; asked in one go, for others wait for the encoder meanwhile."""

        def ask() -> _Embedded:
            encoder, texts = self.collection.encoder, [term.text for term in query.terms if term.text is not None]
            alone = len(query.terms) == len(texts) == 1 and query.terms[0].weight > 0
            with self._encoding:
                caveats = {text: encoder.caveat(text) for text in texts}
                vector = embed([query], encoder)
                return vector, caveats, encoder.weakest_match(texts[0]) if alone else None

        return self._known.get(query.terms, ask)

    @cached_property
    def _by_row(self) -> Collection:
        """The collection in which the id of a picture is its row."""
        _ = self.collection.encoder, self.collection.index, self.collection.words, self.collection.contrast  # once
        made = copy(self.collection)
        made.view = RowView(*(getattr(self.view, field.name) for field in fields(View)))
        made.view.__dict__.update(self.view.__dict__)  # what is mapped and made of it is there once
        made.index, made.scan = shared(self.collection, self._searching)
        return made

    def ranked(
        self,
        query: Query | Sequence[Query] | None,
        vectors: Vectors,
        settings: RankingSettings,
        *,
        k: int,
        mask: Mask,
        adapter: AnyAdapter | None = None,
        named: bool = False,
    ) -> Run:
        """The run of the stages that settings name, for a query, or several, with these vectors, (queries, dim).

        Ids are the pictures' rows. None is a search by items alone. Several may run at once, and share scans.
        """
        queries = [query or Query("q", ())] if query is None or isinstance(query, Query) else query
        known = KnownVectors({one.id: vector for one, vector in zip(queries, vectors, strict=True)}, vectors.shape[1])
        shared_adapter = adapter if adapter is None or isinstance(adapter, Linear) else OneAtATime(adapter)
        with LINEAR if isinstance(adapter, Linear) else nullcontext():
            how: dict[str, Any] = {"k": k, "mask": mask, "adapter": shared_adapter, "named": named}
            return chain_of(self._by_row, settings, vectors=known, **how)(queries)

    def likely_above(self, query: Query) -> float | None:
        """The score below which nothing is likely; None where the encoder does not know."""
        _, caveats, weakest = self._embedded(query)
        return None if any(caveats.values()) else weakest

    def notes(self, query: Query | None, best: float | None, answered: bool) -> list[str]:
        """What the reader should know before trusting an answer whose best score is `best`.

        None: the score is not that of the words alone, so that nobody knows what it should be. answered: by labels.
        """
        _, known, weakest = self._embedded(query) if query else (None, {}, None)
        caveats = [caveat for text, caveat in known.items() if caveat and (not answered or NEGATION.search(text))]
        if weakest is not None and best is not None and best < weakest:
            caveats.append(no_match(best, weakest))
        if without := self.view.without_vector:
            called = self.collection.gallery.called(self.view.stem)
            caveats.append(f"not searched: {quantity(without, 'picture')} without vectors of {called}")
        means = self.collection.backend
        if self.why_missed:
            caveats.append(f"photos that were added since are not searched yet: {self.why_missed}")
        return [*caveats, *self.view.notes, *(means.notes if means else ())]

    @cached_property
    def groups(self) -> Groups:
        """Which rows are copies of one picture, or frames of one burst."""
        return Groups(self.view)

    # -- filters --------------------------------------------------------------------------------------------

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The columns that a filter may ask for, and their DuckDB types."""
        return filters.columns_of(self.view.tables)

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return filters.kinds_of(self.view.tables)

    def mask(self, condition: Condition | None) -> Mask:
        """The rows that can be found and pass the filter, (rows,)."""
        if condition is None:
            return self.view.live
        return self.view.live & self.store.masks.mask(self.tables, condition, self._kinds)


# -- open files ----------------------------------------------------------------------------------------------

# Of each shard: its vectors and its ids; Arrow closes what it maps, and codes are opened where there is room
NEEDED = 2


def too_many_files(view: View) -> str:
    """The limit to set, if the gallery's shards are more than this process may open; else ""."""
    shards = len(view.shards)
    if let_open(NEEDED * shards):
        return ""
    both = 2 * (NEEDED + MAPPED) * shards  # the next snapshot is opened beside this one
    limit = math.ceil((both + 2 * SPARE) / 1024) * 1024
    return (
        f"the gallery's {shards} shards take {NEEDED * shards} open files more, which this program may not have; merge"
        f" them with: eyespot compact -g {quote(str(view.gallery.path))}, or raise the limit with: ulimit -n {limit}"
    )
