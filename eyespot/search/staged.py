"""A search in stages: a first stage, then what was asked for of query expansion and re-ranking by local descriptors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eyespot.search.collection import Collection
from eyespot.search.local_rerank import DEPTH, LocalRerank
from eyespot.search.query_expansion import QueryExpansion
from eyespot.types import Mask, Query, Run

FirstStage = Callable[[Sequence[Query]], Run]


@dataclass(frozen=True)
class Stages:
    """What follows the first stage: `expand` by so many pictures, then `local`, a way of `eyespot.search.local`.

    `adapt`: a QuARI checkpoint for the first stage. `depth`: how many hits are re-ranked.
    """

    adapt: Path | str | None = None
    expand: int | None = None
    local: str | None = None
    depth: int = DEPTH

    def of(self, collection: Collection, k: int, mask: Mask) -> FirstStage:
        """The stages as one, which gives the k best."""
        wide = max(k, self.depth) if self.local else k
        verified = LocalRerank.by_name(collection.view, self.local, self.depth) if self.local else None
        if self.expand is None:
            expanded = None
        else:
            expanded = QueryExpansion(collection.view, collection.encoder, collection.index, self.expand, wide, mask)
        first = collection.first_stage(self._wanted(wide), mask, self.adapt)

        def search(queries: Sequence[Query]) -> Run:
            run = first(queries)
            run = expanded(queries, run) if expanded else run
            return _cut(verified(queries, run), k) if verified else run

        return search

    def _wanted(self, wide: int) -> int:
        return wide if self.expand is None else max(1, self.expand)


def _cut(run: Run, k: int) -> Run:
    made = Run({query: run[query][:k] for query in run})
    made.facts, made.header, made.notes = run.facts, run.header, run.notes
    return made
