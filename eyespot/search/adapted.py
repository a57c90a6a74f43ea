"""The stage that searches or re-ranks by an adapter: each query's own view of the space (QuARI), or one map (TA)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.adapters.linear import Linear
from eyespot.adapters.quari.card import Significance
from eyespot.adapters.quari.files import model_of
from eyespot.gallery.view import View
from eyespot.kernels.codes import Codes
from eyespot.metrics import bootstrap, sign_flips
from eyespot.models.table import full_names
from eyespot.models.torch_models import card_in_use
from eyespot.search.embedding import KnownVectors, embed
from eyespot.search.linear_adapted import LinearIndex, index_of
from eyespot.search.nearest import as_run, naming_damage
from eyespot.search.rescored import followed
from eyespot.search.searchable import Scan, Searchable
from eyespot.types import (
    AdaptedQuery,
    Adapter,
    Encoder,
    Index,
    Mask,
    NearestRows,
    Note,
    Query,
    RankedImage,
    Run,
    Space,
    UsageError,
    Vectors,
)

AnyAdapter: TypeAlias = Adapter | Linear
LINEAR = "linear:"
SAMPLES = 10_000  # of the bootstrap of a gain


def adapter_named(place: Path | str) -> AnyAdapter:
    """What `--adapt` names: `linear:FILE` is static task adaptation (TA), all else a QuARI checkpoint."""
    spec = str(place)
    adapter: AnyAdapter = rooms.load("adapters", spec if spec.startswith(LINEAR) else f"quari:{spec}")
    return adapter


class SearchBackend(Protocol):
    """Who searches vectors (n_i, dim), numbered through all blocks, with the answers of a scan in this process.

    codes: of each block, None for one without, if there are any; they make it faster.
    """

    @property
    def notes(self) -> Sequence[str]:
        """Sentences for the user on what makes a search slower than it should be."""

    def index(self, blocks: Sequence[Vectors], codes: Sequence[Codes | None] | None = None) -> Index:
        """Exact search by inner product."""

    def scan(self, blocks: Sequence[Vectors], codes: Sequence[Codes | None] | None = None) -> Scan:
        """Exact search under adapted queries."""


def scan_of(view: View) -> Scan:
    """The exact scan of this process over the mapped vectors."""
    from eyespot.adapters.quari.scoring import AdaptedIndex

    index = AdaptedIndex(view.blocks, view.codes)
    return index if (card := card_in_use()) is None else index.on(card)


@dataclass(frozen=True)
class Adapted:
    """The k best rows for each query as an adapter has them; or, given a run, its first `depth` hits in that order.

    `through`: who scans the vectors under views of queries (QuARI), this process if None.
    Raises `UsageError` if the adapter was made for another encoder than the gallery's.
    """

    view: View
    encoder: Encoder | KnownVectors
    adapter: AnyAdapter
    k: int
    mask: Mask
    depth: int | None = None
    through: Scan | None = None

    def __post_init__(self) -> None:
        refuse_other_space(self.adapter, self.view.space)

    @classmethod
    def of(cls, collection: Searchable, checkpoint: Path | str, k: int = 100, mask: Mask | None = None) -> Adapted:
        """The stage for a collection, under a QuARI checkpoint; in a chain it re-ranks the first k hits."""
        adapter: Adapter = rooms.load("adapters", f"quari:{checkpoint}")
        return cls(collection.view, collection.encoder, adapter, k, collection.allowed(mask), k, collection.scan)

    @cached_property
    def scan(self) -> Scan | LinearIndex:
        """The exact scan over the mapped vectors."""
        if isinstance(self.adapter, Linear):
            return index_of(self.view, self.adapter)
        return scan_of(self.view) if self.through is None else self.through

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """A new run, or the given one re-ranked."""
        vectors, scan = embed(queries, self.encoder), self.scan  # (queries, dim)
        adapted: Any = vectors if isinstance(self.adapter, Linear) else self.adapter.adapt(vectors)
        if run is None:
            with naming_damage(self.view):
                nearest = scan.search(adapted, self.k, self.mask)
            made = as_run(queries, nearest, self.view)
            made.header |= {"exact": scan.exact, "adapted": True}
        else:
            ranked: dict[str, list[RankedImage]] = {}  # the first hits by the adapter, the rest as it was
            for at, query in enumerate(queries):
                hits = run[query.id]
                scores = scan.rescore(adapted[at], self.view.rows_of([hit.image for hit in hits[: self.depth]]))  # (n,)
                order = np.argsort(-scores, kind="stable").tolist()
                scored = [RankedImage(hits[place].image, float(scores[place])) for place in order]
                ranked[query.id] = followed(scored, hits[len(scored) :])
            made = run.reranked(ranked, adapted=True, depth=self.depth)
        made.notes += cautions(self.adapter, queries)
        return made


class IndexUnder:
    """Exact search by plain queries, each of which gets its own view of the space of a scan first."""

    exact = True

    def __init__(self, adapter: Adapter, scan: Scan) -> None:
        self._adapter, self._scan = adapter, scan

    def search(self, queries: Vectors, k: int, mask: Mask | None = None) -> NearestRows:
        """The k best rows for each query (queries, dim) among those the mask lets through."""
        return self._scan.search(self._adapter.adapt(queries), k, mask)


def index_under(adapter: AnyAdapter, blocks: Sequence[Vectors]) -> Index:
    """Exact search of vectors (n_i, dim) by plain queries, as the adapter ranks them."""
    from eyespot.adapters.quari.scoring import AdaptedIndex

    return LinearIndex(adapter, blocks) if isinstance(adapter, Linear) else IndexUnder(adapter, AdaptedIndex(blocks))


def seen_by(view: AdaptedQuery, vectors: Vectors) -> Vectors:
    """Where an adapted query sees images (n, dim): their f(x), of unit length."""
    bent = view.identity * vectors + (vectors @ view.left) @ view.right.T  # (n, dim)
    seen: Vectors = bent / np.maximum(np.linalg.norm(bent, axis=1, keepdims=True), 1e-12)
    return seen


def seen_through(adapter: AnyAdapter, query: Vectors, vectors: Vectors) -> tuple[Vectors, Vectors]:
    """A query (dim,) and images (n, dim) where the adapter has them, of unit length: their cosines are its scores."""
    if isinstance(adapter, Linear):
        return adapter.apply(query[None])[0], adapter.apply(vectors)
    (view,) = adapter.adapt(query[None])
    return view.query, seen_by(view, vectors)


def cautions(adapter: AnyAdapter | None, queries: Iterable[Query]) -> list[str]:
    """Notes if the adapter was not shown to find more than the vectors as they are, or finds less by pictures."""
    by_picture = [query.id for query in queries if any(term.image is not None for term in query.terms)]
    card = getattr(adapter, "card", None) if by_picture else None  # a linear one has none
    about = [(adapter and adapter.caution, ()), (card and card.picture_caution, by_picture)]
    return [Note("adapter", sentence, *ids) for sentence, ids in about if sentence]


def refuse_other_space(adapter: AnyAdapter, space: Space) -> None:
    """`UsageError` if the adapter was trained on vectors of another encoder, or of another length."""
    verb = "linear" if isinstance(adapter, Linear) else "quari"
    problem, trained = "", adapter.space
    if trained and model_of(trained) != model_of(space.encoder) and space.encoder not in full_names(trained):
        problem = f"the adapter was trained on {trained}, this gallery's vectors are of {space.encoder}"
    elif adapter.dim != space.dim:
        problem = f"the adapter takes {adapter.dim} components, the vectors of {space.encoder} have {space.dim}"
    if problem:
        way_out = f"search the space it was made for with -e, or train one: eyespot train {verb}"
        raise UsageError(f"{problem}; {way_out}")


def paired_gain(before: NDArray[Any], after: NDArray[Any]) -> Significance:
    """Of the values of the same subjects (n,): the bootstrap's 95 % interval of the mean gain, and sign flips' p."""
    differences = np.asarray(after - before, np.float64)
    low, high = np.percentile(bootstrap(differences, SAMPLES, 0), (2.5, 97.5)).tolist()
    (flips,) = sign_flips(differences[:, None])
    return Significance((low, high), flips.p)
