"""Search over workers that each hold a run of the rows, mapped: the answers of one machine that holds them all.

Every worker gives its k best with their scores in double precision, and these are ranked once more by the rule of a
single scan. The numbers of workers and of shards therefore change nothing but the time it takes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.adapters.quari import scoring
from eyespot.cluster.blocks import Piece, coded, opened, runs
from eyespot.cluster.calls import PendingCall, answered, dismissed, hired, host
from eyespot.cluster.parts import RayParts
from eyespot.cluster.starting import Cluster
from eyespot.gallery.files import let_open, need_open
from eyespot.indexes import allowed, exact, positive
from eyespot.kernels.codes import MAPPED, Block, Codes
from eyespot.kernels.rows import Ids, Reals, rank
from eyespot.types import AdaptedQuery, Index, Mask, NearestRows, UsageError, Vectors

Ranked = tuple[Ids, Reals]  # rows and scores, (queries, k) both
Told = tuple[Ids, Reals, float | None]  # the same, and the recall of what is not exact
Bits = NDArray[np.uint8] | None  # a mask, eight rows a byte; None lets all through
_INLINE = 100_000  # bytes; larger questions are put into shared memory once for all workers


@dataclass(frozen=True)
class RowRange:
    """What one worker holds: rows of a gallery of `rows` in all, the first of which has the number `first` there."""

    pieces: list[Piece]
    first: int
    rows: int

    def __len__(self) -> int:
        return sum(map(len, self.pieces))


Where = list[Any]  # where a run is: one reference, which Ray follows only if it is asked to


class RangeActor:
    """One worker, which searches its run of rows under their numbers in the gallery.

    It is told with each question where its run is, so that one that was started again knows it as well.
    """

    def __init__(self) -> None:
        self._opened: _OpenRange | None = None

    def pulse(self) -> str:
        """A sign of life."""
        return host()

    def search(self, run: Where, name: str, arguments: tuple[Vectors, int], bits: Bits) -> Told:
        """The k best for each query, by an index of that name."""
        opened = self._open(run)
        index, mask = opened.index(name), opened.mask(bits)
        if isinstance(index, exact.Exact):
            return opened.numbered(index.ranked(*arguments, mask))
        found = index.search(*arguments, mask)
        return opened.numbered((found.rows, found.scores.astype(np.float64)), found.recall)

    def scan(self, run: Where, arguments: tuple[Sequence[AdaptedQuery], int], bits: Bits) -> Told:
        """The k best for each adapted query."""
        opened = self._open(run)
        return opened.numbered(opened.scan.ranked(*arguments, opened.mask(bits)))

    def rescore(self, run: Where, adapted: AdaptedQuery, rows: Ids) -> Reals:
        """The scores of some rows, by their numbers in the gallery."""
        opened = self._open(run)
        return opened.scan.rescore(adapted, rows - opened.first)

    def _open(self, run: Where) -> _OpenRange:
        if self._opened is None:
            held: Any = ray.get(run[0])
            self._opened = _OpenRange(held)
        return self._opened


class _OpenRange:
    """A run with its vectors and their codes mapped, and what searches them."""

    def __init__(self, run: RowRange) -> None:
        need_open(len(run.pieces))
        self._blocks = [opened(piece) for piece in run.pieces]
        self._codes = coded(run.pieces) if let_open(MAPPED * len(run.pieces)) else None
        self.first, self._count = run.first, len(run)
        self._numbers = run.rows * self._blocks[0].shape[1]
        self._indexes: dict[str, Index] = {}

    def index(self, name: str) -> Index:
        """An index of that name over these rows."""
        if name not in self._indexes:
            options = {"codes": self._codes, "small": self._least(exact.SMALL)} if name == "exact" else {}
            self._indexes[name] = rooms.load("indexes", name, self._blocks, **options)
        return self._indexes[name]

    @cached_property
    def scan(self) -> scoring.AdaptedIndex:
        """The scan under adapted queries."""
        return scoring.AdaptedIndex(self._blocks, self._codes, small=self._least(scoring.SMALL))

    def _least(self, small: int) -> int:
        """Codes are made where one machine with the whole gallery would make them, so that scores agree in all bits."""
        return 0 if self._numbers >= small else self._numbers + 1

    def mask(self, bits: Bits) -> Mask | None:
        """Which rows are let through; None for all."""
        return None if bits is None else np.unpackbits(bits, count=self._count).astype(bool)

    def numbered(self, found: Ranked, recall: float | None = None) -> Told:
        """What was found, under the numbers of the whole gallery."""
        rows, scores = found
        return rows + self.first, scores, recall


class RayBackend:
    """Who searches a gallery in place of this process: workers that hold its rows for as long as this is open.

    Codes that lie on disk next to the blocks are mapped by the workers as well; without them only small runs get any.
    """

    def __init__(self, cluster: Cluster, name: str = "exact") -> None:
        self._cluster, self._name = cluster, name
        self._held: list[_Rows] = []
        self._parts: list[RayParts] = []

    def __enter__(self) -> RayBackend:
        return self

    def __exit__(self, *_: object) -> None:
        workers = [*(held.workers for held in self._held), *(held.workers for held in self._parts)]
        dismissed(chain.from_iterable(workers))
        self._held.clear()
        self._parts.clear()

    def index(self, blocks: Sequence[Block], codes: Sequence[Codes | None] | None = None) -> RayIndex:
        """Search by inner product; exact unless another index of the room was named."""
        return RayIndex(self._rows(blocks, codes), self._name)

    def scan(self, blocks: Sequence[Block], codes: Sequence[Codes | None] | None = None) -> RayScan:
        """Exact search under adapted queries."""
        return RayScan(self._rows(blocks, codes))

    def parts(self, folder: Path, sizes: Sequence[int]) -> RayParts:
        """Search in the parts of an approximate index in a folder, as `eyespot.indexes.faiss.load` has them held."""
        self._refuse_both(self._held)
        self._parts.append(RayParts(self._cluster, folder, sizes))
        return self._parts[-1]

    def _rows(self, blocks: Sequence[Block], codes: Sequence[Codes | None] | None) -> _Rows:
        for held in self._held:
            if len(held.blocks) == len(blocks) and all(map(operator.is_, held.blocks, blocks)):
                return held
        self._refuse_both(self._parts)
        self._held.append(_Rows(self._cluster, blocks, codes))
        return self._held[-1]

    def _refuse_both(self, others: Sequence[object]) -> None:
        """`UsageError` if workers that hold something else have the processors: Ray would wait for ever."""
        if others:
            message = "workers hold either all rows (exact and adapted search) or the parts of an approximate index"
            raise UsageError(f"{message}; leave out --ray, or --index")


class _Rows:
    """The rows of some blocks, spread over workers in order."""

    def __init__(self, cluster: Cluster, blocks: Sequence[Block], codes: Sequence[Codes | None] | None) -> None:
        self.blocks, self._patience = blocks, cluster.patience
        self.count = sum(len(block) for block in blocks)
        held = runs(blocks, cluster.workers, codes)
        self.starts = np.array([*accumulate((sum(map(len, run)) for run in held), initial=0)])  # (workers + 1,)
        whole = [RowRange(pieces, at, self.count) for pieces, at in zip(held, self.starts.tolist(), strict=False)]
        self._runs: list[Where] = [[ray.put(run)] for run in whole]
        self.workers = hired(RangeActor, Cluster(cluster.workers, cluster.cpus), [()] * len(held))

    def ask(self, method: str, arguments: Sequence[Any], mask: Mask | None) -> list[Told]:
        """What all workers find that have a row to be found; one worker, where nobody has."""
        parts = [None if mask is None else mask[a:b] for a, b in pairwise(self.starts.tolist())]
        chosen = [at for at, part in enumerate(parts) if part is None or part.any()] or [0][: len(parts)]
        return answered([self.call(at, method, *arguments, _bits(parts[at])) for at in chosen])

    def call(self, at: int, method: str, *question: Any) -> PendingCall:
        """A question to one worker."""
        answer = getattr(self.workers[at], method).remote(self._runs[at], *question)
        return PendingCall(self.workers[at], answer, self._patience)


def _bits(mask: Mask | None) -> Bits:
    return None if mask is None or mask.all() else np.packbits(mask)


class RayIndex:
    """An index over workers; rows are numbered through all of them in the order of the blocks."""

    def __init__(self, rows: _Rows, name: str) -> None:
        self._rows, self._name = rows, name
        self.exact = name == "exact"

    def __len__(self) -> int:
        return self._rows.count

    def search(self, queries: Vectors, k: int, mask: Mask | None = None) -> NearestRows:
        """The k best rows for each query (m, dim), best first; of equals the lower row. As one machine's would be.

        Raises `UsageError` as any index does, and `EyespotError` if a worker is lost for good: never fewer answers.
        """
        mask, k = allowed(mask, len(self)), positive(k)
        arguments = np.ascontiguousarray(queries, np.float32), k
        found = self._rows.ask("search", (self._name, _put(arguments, arguments[0].nbytes)), mask)
        return _merged(found, (len(queries), k), rank)


class RayScan:
    """Exact search under adapted queries, over workers."""

    exact = True

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return self._rows.count

    def search(self, adapted: Sequence[AdaptedQuery], k: int, mask: Mask | None = None) -> NearestRows:
        """The k best rows for each query, as `AdaptedIndex` finds them; the same errors as `Held.search`."""
        mask, k = allowed(mask, len(self)), positive(k)
        size = sum(view.left.nbytes + view.right.nbytes for view in adapted)
        found = self._rows.ask("scan", (_put((list(adapted), k), size),), mask)
        return _merged(found, (len(adapted), k), scoring.best_of)

    def rescore(self, adapted: AdaptedQuery, rows: Sequence[int] | Ids) -> Reals:
        """The scores of these rows, (rows,)."""
        chosen = np.asarray(rows, np.int64).reshape(-1)
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < len(self):
            raise UsageError(f"rows are numbered from 0 to {len(self) - 1}; {chosen.min()} to {chosen.max()} asked")
        holders = np.searchsorted(self._rows.starts, chosen, side="right") - 1
        places = {holder: np.flatnonzero(holders == holder) for holder in np.unique(holders).tolist()}
        calls = [self._rows.call(at, "rescore", adapted, chosen[its]) for at, its in places.items()]
        scores = np.empty(len(chosen))
        for its, answer in zip(places.values(), answered(calls), strict=True):
            scores[its] = answer
        return scores


def _put(question: Any, size: int) -> Any:
    """The question, or where all workers find it if it is large."""
    return ray.put(question) if size > _INLINE else question


def _merged(parts: Sequence[Told], shape: tuple[int, int], best: Callable[[Ids, Reals, int], Ranked]) -> NearestRows:
    """The k best of what the workers found, (queries, k'), k' = k or all that they found."""
    queries, k = shape
    rows = np.concatenate([np.empty((queries, 0), np.int64), *(part[0] for part in parts)], axis=1)
    scores = np.concatenate([np.empty((queries, 0)), *(part[1] for part in parts)], axis=1)
    k = min(k, rows.shape[1])
    answers = [best(*one, k) for one in zip(rows, scores, strict=True)] if k else []
    with np.errstate(over="ignore"):
        top_scores = np.array([scores for _, scores in answers]).reshape(queries, k).astype(np.float32)
    recalls = [recall for *_, recall in parts if recall is not None]
    rows = np.array([rows for rows, _ in answers], np.int64).reshape(queries, k)
    return NearestRows(rows, top_scores, min(recalls) if recalls else None)
