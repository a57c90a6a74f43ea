"""Search over workers that each hold a run of the rows, mapped: the answers of one machine that holds them all.

Every worker gives its k best with their scores in double precision, and these are ranked once more by the rule of a
single scan. The numbers of workers and of shards therefore change nothing but the time it takes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any
from uuid import uuid4

import numpy as np
import ray

from eyespot.adapters.quari import scoring
from eyespot.cluster.blocks import Piece, shared_out
from eyespot.cluster.calls import PULSE, PendingCall, answered, dismissed, hired
from eyespot.cluster.linked import ByRequests
from eyespot.cluster.ray_worker import GALLERIES, RangeActor, Ranked, RayRequest, SharePlace
from eyespot.cluster.starting import Cluster
from eyespot.kernels.codes import Block, Codes
from eyespot.kernels.rows import Ids, Reals, allowed, positive, rank
from eyespot.types import AdaptedQuery, EyespotError, NearestRows, ScanRequest, UsageError

_INLINE = 100_000  # bytes; larger questions are put into shared memory once for all workers


class RayBackend:
    """Who searches a gallery in place of this process: workers that hold its rows for as long as this is open.

    Codes that lie on disk next to the blocks are mapped by the workers as well; without them only small shares get any.
    A gallery that grew is searched by the same workers: each keeps what it holds, and new blocks are shared out.
    """

    notes: Sequence[str] = ()

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._workers = list[Any]()  # as many as were ever needed: no more than there are processors for
        self._held = list[_Rows]()  # the latest first
        self._opening = Lock()

    def __enter__(self) -> RayBackend:
        return self

    def __exit__(self, *_: object) -> None:
        dismissed(self._workers)
        self._workers.clear()
        self._held.clear()

    def index(self, blocks: Sequence[Block], codes: Sequence[Codes | None] | None = None) -> RayIndex:
        """Exact search by inner product."""
        return RayIndex(self._rows(blocks, codes))

    def scan(self, blocks: Sequence[Block], codes: Sequence[Codes | None] | None = None) -> RayScan:
        """Exact search under adapted queries."""
        return RayScan(self._rows(blocks, codes))

    def alive(self, seconds: float) -> int:
        """How many of the workers give a sign of life within some seconds."""
        pulses = [worker.pulse.options(concurrency_group=PULSE).remote() for worker in self._workers]
        return len(ray.wait(pulses, num_returns=len(pulses), timeout=seconds)[0]) if pulses else 0

    def _rows(self, blocks: Sequence[Block], codes: Sequence[Codes | None] | None) -> _Rows:
        with self._opening:
            for held in self._held:
                if len(held.blocks) == len(blocks) and all(map(operator.is_, held.blocks, blocks)):
                    return held
            shares = shared_out(blocks, self._cluster.workers, codes)
            if (more := len(shares) - len(self._workers)) > 0:
                self._workers += hired(RangeActor, Cluster(more, self._cluster.cpus), [()] * more)
            rows = _Rows(blocks, shares, self._workers[: len(shares)], self._cluster.patience)
            self._held = [rows, *self._held[: GALLERIES - 1]]
            return rows


class _Rows:
    """The rows of some blocks, spread over workers."""

    def __init__(self, blocks: Sequence[Block], shares: list[list[Piece]], workers: list[Any], patience: float) -> None:
        self.blocks, self.shares, self.workers, self._patience = blocks, shares, workers, patience
        self.count = sum(len(block) for block in blocks)
        placed = sorted((one.first, at) for at, share in enumerate(self.shares) for one in share)
        self.firsts = np.array([first for first, _ in placed], np.int64)  # (pieces,), of all workers
        self.holders = np.array([at for _, at in placed], np.int64)  # (pieces,)
        self._where = [SharePlace(uuid4().hex, [ray.put((share, self.count))]) for share in self.shares]

    def hold(self) -> None:
        """Let all workers open what they hold."""
        there = [at for at, share in enumerate(self.shares) if share]
        answered([self.call(at, "hold") for at in there])

    def ask(self, method: str, requests: Sequence[ScanRequest]) -> list[list[Ranked]]:
        """For each request what the workers find that have a row to be found for any; one's, where nobody has."""
        masks = {id(one.mask): allowed(one.mask, self.count) for one in requests}
        place = {mask: at for at, mask in enumerate(masks)}
        queries = [one.query for one in requests], [positive(one.k) for one in requests]
        chosen = [place[id(one.mask)] for one in requests]
        every, some = [], []  # workers with a row at all, and those with one that may be found
        for at, share in enumerate(self.shares):
            if share:
                held = [slice(one.first, one.first + len(one)) for one in share]
                parts = [one if one is None else np.concatenate([one[span] for span in held]) for one in masks.values()]
                bits = [None if part is None or part.all() else np.packbits(part) for part in parts]
                every.append((at, RayRequest(*queries, chosen, bits)))
                some += every[-1:] if any(part is None or part.any() for part in parts) else []
        calls = some or every[:1]
        answers = answered([self.call(at, method, _put(request)) for at, request in calls])
        for found in answers:
            refuse_impossible(found, requests, self.count)
        return [list(found) for found in zip(*answers, strict=True)] or [[] for _ in requests]

    def call(self, at: int, method: str, *question: Any) -> PendingCall:
        """A question to one worker."""
        answer = getattr(self.workers[at], method).remote(self._where[at], *question)
        return PendingCall(self.workers[at], answer, self._patience)


class RayIndex(ByRequests):
    """An index over workers; rows are numbered through all of them in the order of the blocks.

    Raises `UsageError` as any index does, and `EyespotError` if a worker is lost for good: never fewer answers.
    """

    def hold(self) -> None:
        """Let the workers open what they hold, before anybody waits for it."""
        self._rows.hold()

    def search_each(self, requests: Sequence[ScanRequest]) -> list[NearestRows]:
        """The same for queries (dim,) with their own k and mask, by one question to each worker."""
        found = self._rows.ask("search", requests)
        return [merged(parts, one.k, rank) for parts, one in zip(found, requests, strict=True)]


class RayScan(ByRequests):
    """Exact search under adapted queries, over workers."""

    def search_each(self, requests: Sequence[ScanRequest]) -> list[NearestRows]:
        """The same for queries with their own k and mask, by one question to each worker."""
        found = self._rows.ask("scan", requests)
        return [merged(parts, one.k, scoring.best_of) for parts, one in zip(found, requests, strict=True)]

    def rescore(self, adapted: AdaptedQuery, rows: Sequence[int] | Ids) -> Reals:
        """The scores of these rows, (rows,)."""
        chosen = np.asarray(rows, np.int64).reshape(-1)
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < len(self):
            raise UsageError(f"rows are numbered from 0 to {len(self) - 1}; {chosen.min()} to {chosen.max()} requested")
        holders = self._rows.holders[np.searchsorted(self._rows.firsts, chosen, side="right") - 1]
        places = {holder: np.flatnonzero(holders == holder) for holder in np.unique(holders).tolist()}
        calls = [self._rows.call(at, "rescore", adapted, chosen[part]) for at, part in places.items()]
        scores = np.empty(len(chosen))
        for part, answer in zip(places.values(), answered(calls), strict=True):
            scores[part] = answer
        return scores


def refuse_impossible(answer: Any, requests: Sequence[ScanRequest], count: int) -> None:
    """`EyespotError` for an answer of a worker that no search of `count` rows gives: others write to a cluster, too."""
    with suppress(ValueError, TypeError, IndexError):
        pairs = [
            (np.asarray(rows), np.asarray(scores), one) for (rows, scores), one in zip(answer, requests, strict=True)
        ]
        if all(
            rows.dtype.kind == "i" and scores.dtype.kind == "f" and rows.shape == scores.shape == (1, rows.size)
            and rows.size <= one.k and rows.size == len({*rows[0].tolist()}) and np.isfinite(scores).all()
            and (not rows.size or 0 <= rows.min() <= rows.max() < count)
            and (one.mask is None or one.mask[rows[0]].all())
            for rows, scores, one in pairs
        ):  # fmt: skip
            return
    raise EyespotError("a worker on Ray answered what no search gives; see who uses the cluster, or drop --ray")


def _put(request: RayRequest) -> Any:
    """The question, or where the worker finds it if it is large."""
    adapted = [part for query in request.queries if isinstance(query, AdaptedQuery) for part in query[:3]]
    plain = [query for query in request.queries if not isinstance(query, AdaptedQuery)]
    size = sum(part.nbytes for part in (*adapted, *plain, *filter(lambda one: one is not None, request.bits)))
    return ray.put(request) if size > _INLINE else request


def merged(parts: Sequence[Ranked], k: int, best: Callable[[Ids, Reals, int], Ranked]) -> NearestRows:
    """The k best of what the workers found for one query, (1, k'), k' = k or all that they found."""
    rows = np.concatenate([np.empty((1, 0), np.int64), *(part[0] for part in parts)], axis=1)
    scores = np.concatenate([np.empty((1, 0)), *(part[1] for part in parts)], axis=1)
    found_rows, found_scores = best(rows[0], scores[0], min(k, rows.shape[1])) if rows.size else (rows[0], scores[0])
    with np.errstate(over="ignore"):
        top_scores = found_scores.astype(np.float32)[None]
    return NearestRows(found_rows[None], top_scores)
