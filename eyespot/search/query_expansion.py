"""Query expansion (QE-n): the query, moved towards its n nearest pictures, searched again.

Chum et al., Total recall: automatic query expansion (ICCV 2007) with equal weights; Radenović et al., Fine-tuning CNN
image retrieval with no human annotation (TPAMI 2018) with a power of the similarity (α-QE).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eyespot.gallery.view import View
from eyespot.search.embedding import KnownVectors, embed
from eyespot.search.nearest import as_run, naming_damage, tell_recall
from eyespot.types import Encoder, Index, Mask, Query, Run, UsageError, Vectors

if TYPE_CHECKING:
    from eyespot.search.searchable import Searchable


@dataclass(frozen=True)
class QueryExpansion:
    """The k best rows for each query and its n nearest pictures, added up and brought back to unit length.

    The query weighs 1, a picture its cosine to the query to the power of `alpha`: α-QE's, often 3; 0 for equal weights.
    A cosine below zero counts as zero. Nothing is left out: a query picture that is in
    the gallery is its own nearest. With a run its first n hits are the pictures; weights are cosines all the same.
    """

    view: View
    encoder: Encoder | KnownVectors
    index: Index
    n: int
    k: int
    mask: Mask
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if self.n < 0:
            raise UsageError(f"a query cannot be expanded by {self.n} pictures; give 0 or more")
        if not 0 <= self.alpha < np.inf:
            raise UsageError(f"alpha cannot be {self.alpha}; give a number from 0 up")

    @classmethod
    def of(cls, collection: Searchable, n: int, k: int = 100, mask: Mask | None = None) -> QueryExpansion:
        """The stage for a collection, weighted by similarity: over all its pictures if `mask` is None."""
        return cls(collection.view, collection.encoder, collection.index, n, k, collection.allowed(mask))

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """A new run; `UsageError` if the given one lacks a query."""
        vectors = embed(queries, self.encoder)  # (queries, dim)
        with naming_damage(self.view):
            first = self.index.search(vectors, self.n, self.mask) if run is None and self.n else None
            rows: list[list[int]] = [[] for _ in queries] if first is None else first.rows.tolist()
            if run is not None:  # the rows of its first hits
                if lacking := [query.id for query in queries if query.id not in run]:
                    way_out = "give the one that a first stage made of these queries"
                    raise UsageError(f"the run has no query {lacking[0]!r}; {way_out}")
                rows = [self.view.rows_of([hit.image for hit in run[query.id][: self.n]]) for query in queries]
            moved = [self._moved(vector, near) for vector, near in zip(vectors, rows, strict=True)]
            found = self.index.search(np.array(moved, np.float32).reshape(vectors.shape), self.k, self.mask)
        made = as_run(queries, found, self.view)
        made.header |= {"expanded": self.n, "alpha": self.alpha}
        made.notes = [] if run is None else list(run.notes)
        if run is not None and run.header.get("adapted"):
            made.notes.append(
                "the query's own view of the space chose the pictures to expand by; the search with them is plain"
            )
        tell_recall(made, found, *(one for one in (first, run) if one is not None))
        return made

    def _moved(self, query: Vectors, rows: Sequence[int]) -> Vectors:
        if not rows:
            return query
        near = self.view.vectors(rows)  # (n, dim)
        weights = np.maximum(near @ query, 0) ** np.float32(self.alpha)  # (n,)
        moved = query + weights @ near
        length = np.linalg.norm(moved)
        return query if length < 1e-6 else moved / length
