"""Tuning: the fastest approximate index of a gallery's space that finds the wanted share of the 50 nearest.

Settings are chosen on one half of the queries and measured on the other, which none of them has seen. Of queries of
several kinds, pictures and words, each kind must have enough. A share counts the answers as near as the 50th of exact
search, so that of equals any will do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.encoders.starter import DATA
from eyespot.gallery.view import View
from eyespot.search.embedding import embed
from eyespot.search.index_choice import EXACT, Measured, building, open_index, store_index, stored_of
from eyespot.search.nearest import K
from eyespot.types import Encoder, Index, NothingFound, Query, UsageError, Vectors, quantity

KINDS = ("auto", "pq", "ivf", "rabitq", "hnsw")
DEPTHS = (100, 140, 200, 280, 400, 560, 800, 1100, 1600, 2200, 3200, 4500, 6400)
LEAST_ROWS, LEAST_QUERIES = 2048, 10
QUERIES = 200
_TIMED = 30  # queries, one at a time
_LISTS = 50_000  # rows; from here on lists are tried unasked
_SURE = 2  # standard errors that the first half must be above the wanted share
_SEED = 0
_MOSTLY = 0.5  # of the queries; an index that leaves more to exact search is of no use

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class IndexCandidate:
    """An index to build, and what its `probes` may be."""

    name: str  # as it is told
    index: str  # a member of `indexes/`
    settings: Mapping[str, Any]
    probes: tuple[int, ...]
    bytes: int  # on the disk, about


@dataclass(frozen=True)
class Try:
    """What a built index did on the first half of the queries under one setting."""

    candidate: IndexCandidate
    settings: Mapping[str, Any]
    recall: float
    error: float  # standard error of it
    seconds: float  # of CPU time for a query
    exact: float = 0.0  # the share of queries that it leaves to exact search

    @property
    def name(self) -> str:
        """In a word or two: "ivf 192 parts, probes 64, depth 400"."""
        return f"{self.candidate.name}, probes {self.settings['probes']}, depth {self.settings['depth']}"


@dataclass(frozen=True)
class TuningQueries:
    """Queries to tune by, (queries, dim), and where they came from."""

    vectors: Vectors
    source: str


@dataclass(frozen=True)
class Tuned:
    """What was chosen and kept, what it does on the second half, and beside it exact search and all that was tried."""

    chosen: Try
    measured: Measured
    seconds: float  # of CPU time for a query, on the second half
    exact_seconds: float
    beside: tuple[Path, Sequence[Try]]  # where it lies now, and all tries


def pictures_moved(view: View, count: int = QUERIES) -> TuningQueries:
    """Pictures of the gallery, each moved by half the way between two others: near what is there, and not there."""
    live = np.flatnonzero(view.live)
    refuse_few(len(live))
    random = np.random.default_rng(_SEED)
    one, two, three = (view.vectors(np.sort(random.choice(live, count)).tolist()) for _ in range(3))
    way = two - random.permutation(three)
    moved = one + 0.5 * way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-6)
    unit = moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-6)
    return TuningQueries(unit.astype(np.float32), "pictures, each moved towards another")


def words(encoder: Encoder, count: int = QUERIES) -> TuningQueries:
    """Names of things and animals, embedded by the gallery's encoder as a search embeds them."""
    names = (DATA / "classes.txt").read_text(encoding="utf-8").splitlines()
    chosen = np.random.default_rng(_SEED).choice(names, count, replace=False).tolist()
    return TuningQueries(embed([Query.words(name) for name in chosen], encoder), "words")


def refuse_few(rows: int) -> None:
    """`NothingFound` for a gallery that exact search is through with before any index is."""
    if rows < LEAST_ROWS:
        reason = f"the gallery has {quantity(rows, 'picture')} to search"
        raise NothingFound(f"{reason}; below {LEAST_ROWS} exact search is the fastest, so there is nothing to tune")


def candidates(kind: str, rows: int, dim: int) -> list[IndexCandidate]:
    """What is worth building of a kind; "auto": codes of two sizes, RaBitQ's, and from 50,000 rows on lists too."""
    if kind not in KINDS:
        raise UsageError(f"no kind {kind!r} of index; there are: {', '.join(KINDS)}")
    if kind == "hnsw":
        return [IndexCandidate("hnsw", "faiss", {"kind": "hnsw"}, (100, 200, 400, 800), rows * (dim + 260))]
    signs, twice = (  # codes of so many bits a number, and the numbers beside them that correct what they say
        IndexCandidate(f"rabitq, bits {bits}", "faiss", {"kind": "rabitq", "bits": bits}, (1,), rows * (size + beside))
        for bits, size, beside in ((1, dim // 8, 16), (2, dim // 4, 28))
    )
    fine, coarse = (2 * max(1, round(dim / numbers)) for numbers in (8, 16))
    codes = [_codes({"kind": "pq", "parts": parts}, rows, (1,)) for parts in dict.fromkeys((fine, coarse))]
    count = 1 << round(math.log2(2 * math.sqrt(rows)))
    probes = tuple(dict.fromkeys(max(1, count // share) for share in (128, 64, 32, 16, 8, 4, 2)))
    lists = [_codes({"kind": "ivf", "parts": fine, "lists": count}, rows, probes)]
    by_kind = {"pq": codes, "ivf": lists, "rabitq": [signs, twice]}
    return by_kind.get(kind, [*codes, signs, *(lists if rows >= _LISTS else [])])


def _codes(settings: dict[str, Any], rows: int, probes: tuple[int, ...]) -> IndexCandidate:
    size = ", ".join(f"{settings[name]} {name}" for name in ("lists", "parts") if name in settings)
    return IndexCandidate(f"{settings['kind']}, {size}", "faiss", settings, probes, rows * (settings["parts"] // 2 + 8))


@dataclass(frozen=True)
class Tuning:
    """A space of a gallery, the wanted share of the nearest, and the kinds of queries that it is measured by."""

    view: View
    wanted: float
    queries: Sequence[TuningQueries]
    progress: Progress = lambda _what, _done, _total: None

    def __post_init__(self) -> None:
        if not 0 < self.wanted <= 1:
            raise UsageError(f"--recall is a share above 0 and up to 1, not {self.wanted:g}")
        dim = self.view.space.dim
        for vectors in (kind.vectors for kind in self.queries):
            shape = vectors.shape
            if len(shape) != 2 or shape[1] != dim or not np.isfinite(vectors).all():
                raise UsageError(f"queries of shape {shape} do not fit this gallery; give (queries, {dim}), all finite")
            if shape[0] < LEAST_QUERIES:
                raise UsageError(f"{shape[0]} queries measure too little; give {LEAST_QUERIES} or more")
        refuse_few(int(self.view.live.sum()))

    def run(self, kinds: Sequence[IndexCandidate]) -> Tuned:
        """Build every candidate and keep the best one, under the name of its member of `indexes/`.

        `NothingFound`, and nothing is kept, if none finds enough; whatever was kept before stays then.
        """
        exact = open_index(self.view, EXACT)
        learnt, unseen = (_Half(self.view, exact, [one.vectors[at::2] for one in self.queries]) for at in (0, 1))
        with building(self.view) as folder:
            built = {candidate: folder / str(at) for at, candidate in enumerate(kinds)}
            tried = [one for candidate in built for one in self._tried(candidate, built[candidate], learnt)]
            chosen = self.chosen(tried)
            index = unseen.opened(chosen.candidate, built[chosen.candidate], chosen.settings)
            measured = self._measured(chosen, index, unseen)
            seconds = unseen.single(index)[0], unseen.single(exact)[0]
            record = stored_of(self.view, chosen.candidate.index, chosen.settings, measured)
            place = store_index(self.view, record.index, record, built[chosen.candidate])
        return Tuned(chosen, measured, *seconds, (place, tried))

    def _tried(self, candidate: IndexCandidate, folder: Path, half: _Half) -> Iterator[Try]:
        """For each number of probes the depths on the way to the least one that finds enough."""
        self.progress(f"building {candidate.name}", 0, len(candidate.probes))
        half.opened(candidate, folder, candidate.settings)
        depths = [depth for depth in DEPTHS if 4 * depth <= half.rows]
        for done, probes in enumerate(candidate.probes, 1):
            low, high = 0, len(depths)
            while low < high:
                middle = (low + high) // 2
                settings = {**candidate.settings, "probes": probes, "depth": depths[middle], "promise": self.wanted}
                index = half.opened(candidate, folder, settings)
                # The kind of queries that is worst off, with the standard error of its mean
                means = [(float(one.mean()), float(one.std(ddof=1) / np.sqrt(len(one)))) for one in half.recalls(index)]
                recall, error = min(means)
                one = Try(candidate, settings, recall, error, *half.single(index))
                low, high = (low, middle) if self._surely(one) else (middle + 1, high)
                yield one
            self.progress(f"measuring {candidate.name}", done, len(candidate.probes))

    def _surely(self, one: Try) -> bool:
        return one.recall - _SURE * one.error >= self.wanted and one.exact <= _MOSTLY

    def chosen(self, tried: Sequence[Try]) -> Try:
        enough = [one for one in tried if self._surely(one)]
        if not enough:
            best = max(tried, key=lambda one: (one.exact <= _MOSTLY, one.recall))
            found = f"the best, {best.name}, found {100 * best.recall:.1f} % and {100 * self.wanted:g} % is wanted"
            if best.exact > _MOSTLY:
                found = f"the best, {best.name}, leaves {best.exact:.0%} of the queries to exact search"
            raise NothingFound(f"{found}; ask for less with --recall, try another --kind, or search exactly")
        return min(enough, key=lambda one: one.seconds)

    def _measured(self, chosen: Try, index: Index, unseen: _Half) -> Measured:
        by_kind = zip(self.queries, unseen.recalls(index), strict=True)
        shares = {kind.source: float(recalls.mean()) for kind, recalls in by_kind}
        recall = min(shares.values())
        if recall < self.wanted:
            reason = f"{chosen.name} found {100 * chosen.recall:.1f} % on half of the queries"
            raise NothingFound(f"{reason} and {100 * recall:.1f} % on the other; give more queries with --queries")
        exact = float(np.mean([index.search(query[None], K, self.view.live).exact for query in unseen.queries]))
        source = " and ".join(shares)
        return Measured(recall, K, len(unseen.queries), source, shares, exact)


class _Half:
    """Some of the queries, kind by kind, and how near their 50 nearest are."""

    def __init__(self, view: View, exact: Index, kinds: Sequence[Vectors]) -> None:
        self.queries, self._ends = np.concatenate(kinds), np.cumsum([len(kind) for kind in kinds])[:-1]
        self._view, self._exact = view, exact
        self.rows = int(view.live.sum())
        self._nearest = exact.search(self.queries, K, view.live).scores[:, -1:]  # (queries, 1)

    def opened(self, candidate: IndexCandidate, folder: Path, settings: Mapping[str, Any]) -> Index:
        """A candidate, built in its folder if it is not there yet; exact search steps in as it will."""
        use = {**settings, "recall": settings.get("promise", math.nan), "live": self._view.live}
        index: Index = rooms.load(
            "indexes", candidate.index, self._view.blocks, folder=folder, exact=lambda: self._exact, **use
        )
        return index

    def recalls(self, index: Index) -> list[NDArray[np.float64]]:
        """Of each kind the share of the nearest that is found, (queries,)."""
        found = index.search(self.queries, K, self._view.live)
        return np.split((found.scores >= self._nearest - 1e-6).mean(axis=1), self._ends)

    def single(self, index: Index) -> tuple[float, float]:
        """Of single queries of all kinds the mean CPU time in seconds, and the share that is answered exactly."""
        taken, exact = [], []
        for query in self.queries[:: max(1, len(self.queries) // _TIMED)]:
            started = time.process_time()
            exact.append(index.search(query[None], K, self._view.live).exact)
            taken.append(time.process_time() - started)
        return float(np.mean(taken)), float(np.mean(exact))
