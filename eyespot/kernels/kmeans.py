"""k-means over millions of vectors on disk: tens of thousands of clusters, in bounded memory, the same for a seed.

Lloyd's algorithm (1982) with one shortcut. Passes 0, 1, 4, 16, 64, … compare every row with every centroid and note
the few that came nearest; the passes between compare it with these alone. Centroids move little after the first pass,
and a row goes to one that was near it before. It never goes to one that is farther than its own, so the inertia falls
with every pass as it does without the shortcut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.kernels import kernels_in
from eyespot.kernels.codes import Block, Span, chunks, default_threads, floats, spread
from eyespot.types import Progress, UsageError, no_progress

Floats = NDArray[np.float32]
Labels = NDArray[np.int32]
Ids = NDArray[np.int64]
Centroids = tuple[Floats, Floats]  # (k, dim), and half their squared lengths (k,)

_TILE = 1024, 4096  # rows and centroids multiplied at once
_FAR = 16  # a mean so many times longer than the spread (both squared) would drown differences of float32
_SEEDINGS = ("sampled", "++")
_TRIED = 20  # rows per centroid among which k-means++ chooses


@dataclass(frozen=True)
class KMeans:
    """How to cluster.

    clusters: how many; at most the number of rows.
    iterations: how often centroids are moved to the mean of their rows; fewer where no row changes its cluster.
    seed: for everything that is drawn.
    seeding: first centroids are rows, `sampled` evenly or drawn by `++` (k-means++: Arthur and Vassilvitskii 2007),
        which takes a pass over 20 rows per centroid for each centroid and so suits hundreds of clusters.
    unit: centroids are brought to unit length, so that the nearest has the largest cosine (spherical k-means).
    sample: learn the centroids from so many drawn rows only; all rows get a label nevertheless.
    candidates: how many centroids a row is compared with in most passes, the last among them, so that a label is the
        nearest of these; 0 for all centroids (Lloyd's own algorithm).
    threads: OMP_NUM_THREADS or all processors if None. BLAS, which multiplies matrices, has its own setting.
    at_once: numbers of a memory-mapped block held in memory at a time.
    """

    clusters: int
    iterations: int = 10
    seed: int = 0
    seeding: str = "sampled"
    unit: bool = False
    sample: int | None = None
    candidates: int = 16
    threads: int | None = None
    at_once: int = 1 << 24

    def __post_init__(self) -> None:
        if self.clusters < 1 or self.iterations < 0 or self.candidates < 0:
            raise UsageError("k-means takes 1 cluster or more, and 0 or more iterations and candidates")
        if self.seeding not in _SEEDINGS:
            raise UsageError(f"the seeding is one of {', '.join(_SEEDINGS)}, not {self.seeding!r}")
        if self.sample is not None and self.sample < self.clusters:
            raise UsageError(f"{self.clusters} clusters cannot be learned from {self.sample} rows; sample more")


class Clusters(NamedTuple):
    """What k-means found; `inertia` is the sum of squared distances of all rows to their centroids.

    `history` has the inertia before each move of the centroids, of the rows they were learned from; `reseeded` counts
    the clusters that lost all their rows on the way and were given a far one instead. Clusters that are empty at the
    end (there are fewer distinct rows than clusters) have no label.
    """

    centroids: Floats  # (clusters, dim)
    labels: Labels  # (rows,)
    distances: Floats  # (rows,), squared
    inertia: float
    history: list[float]
    reseeded: int


def cluster(vectors: Block, how: KMeans, progress: Progress | None = None, sweep: Sweep | None = None) -> Clusters:
    """Clusters of the rows of `vectors` (rows, dim), float32 or float16, often memory-mapped.

    Besides the vectors it takes 16 bytes for each number of the centroids, 4 for each row and candidate, 32 for each
    row, and some 200 MB. The same settings give the same bits on the same processor and number of BLAS threads.
    `UsageError` if there are fewer rows than clusters, or a number that is not finite. `sweep`: who makes the passes,
    in place of this process.
    """
    if vectors.ndim != 2 or len(vectors) < how.clusters:
        raise UsageError(f"{how.clusters} clusters cannot be made of vectors of shape {vectors.shape}; ask for fewer")
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is found by its distance
        means = _Means(progress or no_progress, sweep or sweep_here)
        if how.sample is None or how.sample >= len(vectors):
            return _learned(CentredRows.of(vectors, how), how, means)
        learned = _learned(CentredRows.of(vectors[sample_rows(len(vectors), how.sample, how.seed)], how), how, means)
        return _everywhere(CentredRows.of(vectors, how), learned, how, means)


def sample_rows(rows: int, count: int, seed: int = 0) -> Ids:
    """`count` of so many rows, ascending: the same draw for a seed on every machine and with every release."""
    return np.sort(np.argsort(_lots(rows, seed), kind="stable")[:count])


def drawn_from_each(labels: NDArray[np.integer[Any]], count: int, seed: int = 0) -> Ids:
    """Up to `count` rows of each label (rows,), ascending; a label with fewer rows gives all of them."""
    order = np.lexsort((_lots(len(labels), seed), labels))  # (rows,)
    starts = np.flatnonzero(np.diff(labels[order], prepend=labels[order[:1]] - 1))  # (distinct labels,)
    place = np.arange(len(labels)) - np.repeat(starts, np.diff(starts, append=len(labels)))
    return np.sort(order[place < count])


def _lots(rows: int, seed: int) -> NDArray[np.uint64]:
    """A number for each row that depends on row and seed only (splitmix64: Steele and others 2014), (rows,)."""
    golden, first, second = (
        np.uint64(factor) for factor in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
    )
    lots = np.arange(1, rows + 1, dtype=np.uint64) * golden + np.uint64(seed % 2**64)
    lots = (lots ^ (lots >> np.uint64(30))) * first
    lots = (lots ^ (lots >> np.uint64(27))) * second
    return lots ^ (lots >> np.uint64(31))


# -- Lloyd's algorithm ----------------------------------------------------------------------------------------


class CentredRows(NamedTuple):
    """The rows of a block as float32, a piece at a time, less `centre` if they lie too far from the origin."""

    block: Block
    centre: Floats | None  # (dim,)

    @classmethod
    def of(cls, block: Block, how: KMeans) -> CentredRows:
        some = block[sample_rows(len(block), 1000, 1)].astype(np.float64)
        mean = some.mean(axis=0)
        far = not how.unit and mean @ mean > _FAR * np.square(some - mean).sum(axis=1).mean()
        return cls(block, mean.astype(np.float32) if far else None)

    def floats(self, rows: Any) -> Floats:
        vectors = floats(self.block, rows)
        return vectors if self.centre is None else vectors - self.centre


@dataclass
class State:
    """Where the algorithm stands: centroids as its rows see them, and what the last pass told of the rows."""

    centroids: Floats  # (k, dim)
    labels: Labels  # (rows,)
    distances: Floats  # (rows,), squared
    sums: NDArray[np.float64]  # (k, dim), of the rows of each cluster
    counts: Ids  # (k,)
    candidates: NDArray[np.int32] | None = None  # (rows, count)
    fresh: Ids = field(default_factory=lambda: np.empty(0, np.int64))  # centroids that no row's candidates can hold
    history: list[float] = field(default_factory=list)
    reseeded: int = 0

    @classmethod
    def at(cls, centroids: Floats, rows: int) -> State:
        labels, distances = np.full(rows, -1, np.int32), np.zeros(rows, np.float32)
        return cls(centroids, labels, distances, np.zeros(centroids.shape), np.zeros(len(centroids), np.int64))

    @property
    def inertia(self) -> float:
        return float(self.distances.sum(dtype=np.float64))


def _learned(rows: CentredRows, how: KMeans, means: _Means) -> Clusters:
    state = State.at(_unit(_seeds(rows, how), how), len(rows.block))
    for done in range(how.iterations + 1):
        changed = means.sweep(rows, state, Pass(how, done, means.tell))
        if done == how.iterations or not changed:
            break
        state.history.append(state.inertia)
        _reseed(rows, state)
        _move(state, how)
    return _result(rows, state)


def _everywhere(rows: CentredRows, learned: Clusters, how: KMeans, means: _Means) -> Clusters:
    """All rows under centroids that were learned from some."""
    centroids = learned.centroids if rows.centre is None else learned.centroids - rows.centre
    state = State.at(centroids, len(rows.block))
    means.sweep(rows, state, Pass(replace(how, iterations=0), 0, means.tell))
    return _result(rows, state)._replace(history=learned.history, reseeded=learned.reseeded)


def _result(rows: CentredRows, state: State) -> Clusters:
    centroids = state.centroids if rows.centre is None else state.centroids + rows.centre
    return Clusters(centroids, state.labels, state.distances, state.inertia, state.history, state.reseeded)


# -- one pass -------------------------------------------------------------------------------------------------


class Pass(NamedTuple):
    """One pass among several: who looks at all centroids, who notes candidates, how far we are."""

    how: KMeans
    number: int
    tell: Progress

    @property
    def threads(self) -> int:
        return self.how.threads or default_threads()

    def looks_at_all(self, clusters: int) -> bool:
        thorough = self.number == 0 or (
            self.number.bit_count() == 1 and self.number.bit_length() % 2 == 1
        )  # 0, 1, 4, …
        return thorough or not 0 < self.how.candidates < clusters

    def candidates(self, clusters: int) -> int:
        """How many candidates to note for each row: none where the next pass looks at all centroids."""
        last = self.number == self.how.iterations
        return 0 if last or Pass(self.how, self.number + 1, self.tell).looks_at_all(clusters) else self.how.candidates

    def done(self, row: int, rows: int) -> None:
        self.tell("clustering", self.number * rows + row, (self.how.iterations + 1) * rows)


Sweep = Callable[[CentredRows, State, Pass], int]


class _Means(NamedTuple):
    """By what clusters are found: who is told how far we are, and who makes the passes."""

    tell: Progress
    sweep: Sweep


def sweep_here(rows: CentredRows, state: State, now: Pass) -> int:
    """Every row to its nearest centroid, in one reading of the block; how many changed theirs."""
    changed, before = 0, state.labels.copy()
    assign = _assigning(state, now)
    state.sums[:], state.counts[:] = 0, 0
    for start, stop in chunks(rows.block, now.how.at_once):
        vectors, part = rows.floats(slice(start, stop)), slice(start, stop)
        assign(vectors, part)
        _measure(vectors, part, state, now.threads)
        add_rows(vectors, state.labels[part], (state.sums, state.counts), now.threads)
        changed += int(np.count_nonzero(state.labels[part] != before[part]))
        now.done(stop, len(rows.block))
    return changed


def _assigning(state: State, now: Pass) -> Callable[[Floats, slice], None]:
    """How the rows of a piece find their centroids: among all, or among their candidates and what is fresh."""
    clusters = len(state.centroids)
    centroids = state.centroids, np.square(state.centroids).sum(axis=1) / 2
    if not now.looks_at_all(clusters):
        return lambda vectors, part: _nearest_of_few(vectors, part, (state, centroids), now.threads)
    count = now.candidates(clusters)
    state.candidates = np.empty((len(state.labels), count), np.int32) if count else None
    return lambda vectors, part: _nearest_of_all(vectors, part, (state, centroids), now.threads)


def _nearest_of_all(vectors: Floats, part: slice, known: tuple[State, Centroids], threads: int) -> None:
    state, centroids = known
    count = 1 if state.candidates is None else state.candidates.shape[1]
    for start in range(0, len(vectors), _TILE[0]):
        scores, ids = _best(vectors[start : start + _TILE[0]], centroids, count, threads)
        some = slice(part.start + start, part.start + start + len(ids))
        best = scores == scores.max(axis=1, keepdims=True)
        state.labels[some] = np.where(best, ids, np.int32(2**31 - 1)).min(axis=1)  # the lower one of equals
        if state.candidates is not None:
            state.candidates[some] = ids


def _best(vectors: Floats, centroids: Centroids, count: int, threads: int) -> tuple[Floats, NDArray[np.int32]]:
    """The best scores of each row and their centroids, in no order, (rows, count) both; -1 where there are fewer."""
    keep_best = _loops().keep_best
    points, halves = centroids
    scores, ids = np.full((len(vectors), count), -np.inf, np.float32), np.full((len(vectors), count), -1, np.int32)
    for first in range(0, len(points), _TILE[1]):
        dots = vectors @ points[first : first + _TILE[1]].T  # (rows, centroids)
        half = halves[first : first + _TILE[1]]
        pieces = [(*piece, first) for piece in _pieces(len(vectors), threads)]
        spread(lambda piece: keep_best(dots, half, scores, ids, piece), pieces, threads)  # noqa: B023
    return scores, ids


def _nearest_of_few(vectors: Floats, part: slice, known: tuple[State, Centroids], threads: int) -> None:
    move_to_nearest = _loops().move_to_nearest
    state, (points, halves) = known
    assert state.candidates is not None
    candidates, labels, best = state.candidates[part], state.labels[part], np.empty(len(vectors), np.float32)
    nearest, pieces = (labels, best), _pieces(len(vectors), threads)
    spread(lambda piece: move_to_nearest(vectors, candidates, (points, halves), nearest, piece), pieces, threads)
    if len(state.fresh):
        scores, ids = _best(vectors, (points[state.fresh], halves[state.fresh]), 1, threads)
        nearer = scores[:, 0] > best
        labels[nearer] = state.fresh[ids[nearer, 0]]


def assign_rows(rows: CentredRows, span: Span, state: State, now: Pass) -> None:
    """The rows of a span to their nearest centroids, piece by piece as `sweep_here` does it, but for the sums.

    `state` knows of these rows only: labels (and candidates, if this pass uses them) come and go in it.
    """
    assign = _assigning(state, now)
    for start, stop in chunks(rows.block, now.how.at_once):
        if span[0] <= start < span[1]:
            vectors, part = rows.floats(slice(start, stop)), slice(start - span[0], stop - span[0])
            assign(vectors, part)
            _measure(vectors, part, state, now.threads)


def _measure(vectors: Floats, part: slice, state: State, threads: int) -> None:
    """Note how far the rows of a piece are from their centroids."""
    measure = _loops().measure
    points, labels, distances = state.centroids, state.labels[part], state.distances[part]
    spread(lambda piece: measure(vectors, labels, points, distances, piece), _pieces(len(labels), threads), threads)
    if not np.isfinite(distances).all():
        raise UsageError("some vectors hold NaN or infinity; embed these pictures again")


def add_rows(vectors: Floats, labels: Labels, sums: tuple[NDArray[np.float64], Ids], threads: int) -> None:
    """Add rows (n, dim) to the sums (k, dim) and counts (k,) of their clusters, each sum in the order of the rows."""
    add_up = _loops().add_up
    spread(lambda share: add_up(vectors, labels, sums, (share, threads)), range(threads), threads)


def _loops() -> Any:
    return kernels_in("eyespot.kernels.assigning")


def _pieces(rows: int, threads: int) -> list[Span]:
    step = max(1, -(-rows // (4 * threads)))
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]


def _move(state: State, how: KMeans) -> None:
    """Every centroid to the mean of its rows; one without rows stays where it is."""
    full = state.counts > 0
    state.sums /= np.maximum(state.counts, 1)[:, None]  # in place: the largest array of all is not copied
    np.copyto(state.centroids, state.sums, casting="same_kind", where=full[:, None])
    state.centroids = _unit(state.centroids, how)


def _unit(centroids: Floats, how: KMeans) -> Floats:
    if not how.unit:
        return centroids
    lengths = np.linalg.norm(centroids, axis=1, keepdims=True)
    return np.asarray(centroids / np.where(lengths > 0, lengths, 1), np.float32)


def _reseed(rows: CentredRows, state: State) -> None:
    """Give each empty cluster the row that is farthest from its centroid, of a cluster that keeps another."""
    empty = np.flatnonzero(state.counts == 0)
    state.fresh = empty[:0]
    if not len(empty):
        return
    for row in np.argsort(-state.distances, kind="stable").tolist():
        if len(state.fresh) == len(empty) or state.distances[row] <= 0:
            break
        if state.counts[state.labels[row]] > 1:
            _hand_over(row, rows.floats(slice(row, row + 1))[0], int(empty[len(state.fresh)]), state)
            state.fresh = empty[: len(state.fresh) + 1]
    state.reseeded += len(state.fresh)


def _hand_over(row: int, vector: Floats, label: int, state: State) -> None:
    old = state.labels[row]
    state.sums[old] -= vector
    state.sums[label] += vector
    state.counts[old] -= 1
    state.counts[label] += 1
    state.labels[row], state.distances[row] = label, 0


# -- first centroids ------------------------------------------------------------------------------------------


def _seeds(rows: CentredRows, how: KMeans) -> Floats:
    if how.seeding == "sampled":
        return rows.floats(sample_rows(len(rows.block), how.clusters, how.seed))
    tried = rows.floats(sample_rows(len(rows.block), _TRIED * how.clusters, how.seed))
    return tried[_spread_out(tried, how)]


def _spread_out(tried: Floats, how: KMeans) -> list[int]:
    """Rows drawn one after the other, each with a chance that is its squared distance to the nearest before it."""
    chances = _lots(how.clusters, how.seed) / 2.0**64  # (clusters,)
    chosen = [int(chances[0] * len(tried))]
    apart = np.full(len(tried), np.inf)
    for chance in chances[1:].tolist():
        apart = np.minimum(apart, np.square(tried - tried[chosen[-1]]).sum(axis=1))
        heap = np.cumsum(apart)
        chosen.append(min(int(np.searchsorted(heap, chance * heap[-1], side="right")), len(tried) - 1))
    return chosen
