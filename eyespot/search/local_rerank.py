"""The stage that looks again: a run's first hits in the order of how their local features fit the query picture's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eyespot import rooms
from eyespot.encoders import upright_picture
from eyespot.gallery.local import Described
from eyespot.gallery.view import View
from eyespot.search.local import DEPTH
from eyespot.search.rescored import falling, followed
from eyespot.types import Extractor, EyespotError, LocalReranker, Note, Query, RankedImage, Run, UsageError

if TYPE_CHECKING:
    from eyespot.search.searchable import Searchable

PER_QUERY = 600


@dataclass(frozen=True)
class LocalRerank:
    """The first `depth` hits of a run in the order of their scores by local features; equal ones as they were.

    No two scores are equal, so that measures which average over equals take the order as it is.

    Behind them come hits without local features, then those beyond `depth`, both as they were; a note counts the
    former. Of a query picture the `count` strongest features count; one in which nothing stands out keeps its ranking.
    """

    described: Described
    reranker: LocalReranker
    extractor: Extractor
    name: str = "local"
    depth: int = DEPTH
    count: int = PER_QUERY

    def __post_init__(self) -> None:
        refuse_other_settings(self.described, self.extractor)

    @classmethod
    def of(cls, collection: Searchable, spec: str, depth: int = DEPTH) -> LocalRerank:
        """The stage for a collection, as `by_name` makes it."""
        return cls.by_name(collection.view, spec, depth)

    @classmethod
    def by_name(cls, view: View, spec: str, depth: int = DEPTH) -> LocalRerank:
        """`chamfer`, `spatial`, or `METHOD[:REST][@EXTRACTOR]` where the gallery was described by several extractors.

        Raises `UsageError` for an unknown method, and if the gallery was not described yet; `EyespotError` if what is
        installed now would describe otherwise.
        """
        method, _, wanted = spec.partition("@")
        reranker = rooms.load("search.local", method)
        name = Described.of(view, wanted or None).note.extractor
        extractor: Extractor = rooms.load("descriptors", name)
        return cls(Described.of(view, name, dict(extractor.settings)), reranker, extractor, spec, depth)

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """The run re-ranked; `UsageError` without one, if it lacks a query, and for a query without one picture."""
        if run is None:
            raise UsageError("local features re-rank a run; put a first stage, such as Nearest, before this one")
        if lacking := [query.id for query in queries if query.id not in run]:
            way_out = "give the one that a first stage made of these queries"
            raise UsageError(f"the run has no query {lacking[0]!r}; {way_out}")
        ordered: dict[str, list[RankedImage]] = {}
        without, notes = dict[str, int](), list[str]()
        for query in queries:
            ordered[query.id], without[query.id], problem = self._ordered(query, run[query.id])
            notes += [Note("local", problem, query.id)] if problem else []
        if behind := [id for id, count in without.items() if count]:
            count = sum(without.values())
            notes.append(Note("local", f"pictures without local descriptors, left behind the others: {count}", *behind))
        if worded := [query.id for query in queries if any(term.text is not None for term in query.terms)]:
            text = "the re-ranking compares pictures only; words counted in the first stage"
            notes.append(Note("local", text, *worded))
        made = run.reranked(ordered, rerank_local=self.name, depth=self.depth)
        made.notes += notes
        return made

    def _ordered(self, query: Query, hits: Sequence[RankedImage]) -> tuple[list[RankedImage], int, str]:
        """The hits in their new order, how many of the first could not be compared, and why none was."""
        places = [term.image for term in query.terms if term.image is not None and term.weight > 0]
        if len(places) != 1 or any(term.image is not None and term.weight <= 0 for term in query.terms):
            raise UsageError("local descriptors compare one picture with others; give one, as in: --image FILE")
        place = places[0]
        features = self.extractor.describe(upright_picture(place, self.extractor.min_side), self.count)
        if not len(features.descriptors):
            return list(hits), 0, f"nothing stands out in {place} to compare by; its ranking is as it was"
        head, tail = hits[: self.depth], hits[self.depth :]
        images = self.described.features([hit.image for hit in head])
        there = [(hit, image) for hit, image in zip(head, images, strict=True) if image is not None]
        behind = [hit for hit, image in zip(head, images, strict=True) if image is None]
        ranked_images = []
        for hit, image in there:
            score = float(self.reranker.score(features, image))
            if not math.isfinite(score):
                raise EyespotError(f"{self.name} scores the picture {hit.image} {score}, which ranks nothing; fix it")
            ranked_images.append(RankedImage(hit.image, score))
        scored = falling(sorted(ranked_images, key=lambda hit: -hit.score))
        return followed(scored, [*behind, *tail]), len(behind), ""


def refuse_other_settings(described: Described, extractor: Extractor) -> None:
    """`EyespotError` if a query would be described otherwise than the gallery was."""
    note = described.note
    if (extractor.name, dict(extractor.settings)) != (note.extractor, dict(note.settings)):
        way = f"eyespot describe --with {extractor.name} -g {described.view.gallery.path}"
        raise EyespotError(
            f"the gallery was described by {note.extractor} in another version or setting; describe it again: {way}"
        )
