"""k-means over workers on a Ray cluster: the passes are theirs, and the answer is that of one machine, bit for bit.

A pass has two halves. Rows go to their nearest centroids in the same pieces as on one machine, each at one worker.
Then the sums of each centroid are made by one worker, over all its rows in their order: no sum is ever put together of
parts, whose rounding would depend on the number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import ray
from numpy.typing import NDArray

from eyespot.cluster.blocks import Piece, opened, whole
from eyespot.cluster.calls import PendingCall, answered, dismissed, hired, host
from eyespot.cluster.starting import Cluster
from eyespot.kernels import kmeans
from eyespot.kernels.codes import Block, Span, chunks
from eyespot.kernels.kmeans import CentredRows, Clusters, Floats, Ids, KMeans, Labels, Pass, State
from eyespot.types import Progress, no_progress

Sums = tuple[NDArray[np.float64], Ids]  # (clusters, dim) and the counts of their rows (clusters,)
Candidates = NDArray[np.int32] | None


class Where(NamedTuple):
    """Where the rows are, and what is taken off each of them."""

    piece: Piece
    centre: Floats | None


class KmeansPass(NamedTuple):
    """What all workers are told of a pass."""

    centroids: Floats
    fresh: Ids
    how: KMeans
    number: int

    def state(self, labels: Labels, candidates: Candidates) -> State:
        """The state of the rows that have these labels."""
        state = State.at(self.centroids.copy(), len(labels))  # compiled kernels take no arrays of shared memory
        state.labels[:] = labels
        state.candidates, state.fresh = None if candidates is None else candidates.copy(), self.fresh
        return state


class Assigner:
    """One worker: it sees all rows of a block, mapped, and touches those it is asked for.

    It is told where they are with each question, so that one that was started again knows it as well.
    """

    def __init__(self) -> None:
        self._rows: CentredRows | None = None

    def pulse(self) -> str:
        """A sign of life."""
        return host()

    def assign(
        self, where: Where, task: KmeansPass, part: tuple[Span, Labels], candidates: Candidates
    ) -> tuple[tuple[Labels, Floats], Candidates]:
        """Labels and squared distances of the rows of a span, and the candidates noted in a pass without any."""
        span, labels = part
        state = task.state(labels, candidates)
        with np.errstate(invalid="ignore", over="ignore"):
            kmeans.assign_rows(self._open(where), span, state, Pass(task.how, task.number, no_progress))
        return (state.labels, state.distances), None if candidates is not None else state.candidates

    def add(self, where: Where, labels: Labels, share: Span, how: KMeans) -> Sums:
        """The sums of the clusters share[0], share[0] + share[1], …, over all rows."""
        rows, (first, step) = self._open(where), share
        count = len(range(first, how.clusters, step))
        sums = np.zeros((count, rows.block.shape[1])), np.zeros(count, np.int64)
        for start, stop in chunks(rows.block, how.at_once):
            mine = np.flatnonzero(labels[start:stop] % step == first)
            if len(mine):
                its = (labels[start + mine] // step).astype(np.int32)
                kmeans.add_rows(rows.floats(start + mine), its, sums, 1)
        return sums

    def _open(self, where: Where) -> CentredRows:
        self._rows = self._rows or CentredRows(opened(where.piece), where.centre)
        return self._rows


class Clustering:
    """k-means by the workers of a cluster; called as `kernels.kmeans.cluster` is."""

    def __init__(self, cluster: Cluster) -> None:
        # One processor each, however few they are: BLAS may round otherwise on two.
        self._cluster = Cluster(cluster.workers, patience=cluster.patience)

    def __call__(self, vectors: Block, how: KMeans, progress: Progress | None = None) -> Clusters:
        """Clusters of the rows of `vectors` (rows, dim), the same for every number of workers."""
        sweep = _Sweep(self._cluster)
        try:
            return kmeans.cluster(vectors, how, progress, sweep)
        finally:
            sweep.end()


class _Sweep:
    """The passes over a block, by workers that stay for all of them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._block: Block | None = None
        self._workers: list[Any] = []
        self._spans: list[Span] = []
        self._candidates: list[Any] = []

    def __call__(self, rows: CentredRows, state: State, now: Pass) -> int:
        if rows.block is not self._block:
            self.end()
            self._block, self._spans = rows.block, list(_spans(rows.block, now.how, self._cluster.workers))
            self._where = Where(whole(rows.block), rows.centre)
            self._workers = hired(Assigner, self._cluster, [()] * len(self._spans))
        before = state.labels.copy()
        self._assign(state, now)
        changed = int(np.count_nonzero(state.labels != before))
        if changed and now.number < now.how.iterations:
            labels, step = ray.put(state.labels), len(self._workers)
            answers = [one.add.remote(self._where, labels, (at, step), now.how) for at, one in enumerate(self._workers)]
            calls = [PendingCall(*both, self._cluster.patience) for both in zip(self._workers, answers, strict=True)]
            for at, (sums, counts) in enumerate(answered(calls)):
                state.sums[at::step], state.counts[at::step] = sums, counts
        now.done(len(rows.block), len(rows.block))
        return changed

    def end(self) -> None:
        """End the workers."""
        dismissed(self._workers)
        self._workers, self._candidates, self._block = [], [], None

    def _assign(self, state: State, now: Pass) -> None:
        task = ray.put(KmeansPass(state.centroids, state.fresh, now.how, now.number))
        if now.looks_at_all(len(state.centroids)):
            self._candidates = [None] * len(self._spans)
        calls = []
        for at, (worker, span) in enumerate(zip(self._workers, self._spans, strict=True)):
            part, candidates = (span, state.labels[slice(*span)]), self._candidates[at]
            answer, noted = worker.assign.options(num_returns=2).remote(self._where, task, part, candidates)
            self._candidates[at] = noted if candidates is None else candidates
            calls.append(PendingCall(worker, answer, self._cluster.patience))
        for span, (labels, distances) in zip(self._spans, answered(calls), strict=True):
            state.labels[slice(*span)], state.distances[slice(*span)] = labels, distances


def _spans(block: Block, how: KMeans, workers: int) -> Iterator[Span]:
    """Runs of whole pieces, about as many for each worker."""
    pieces = list(chunks(block, how.at_once))
    cuts = np.linspace(0, len(pieces), min(workers, len(pieces)) + 1).astype(int).tolist()
    return ((pieces[a][0], pieces[b - 1][1]) for a, b in pairwise(cuts))
