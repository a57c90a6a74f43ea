"""Exact search under adapted queries: the k best rows of cos(query, f(x)), over memory-mapped vectors of any size.

The answer is that of the formula in float64 over all rows. Cheap passes first give every row a score it surely does
not exceed; what could still be among the k best is scored itself, in float32 with a bound on its error where there is
much of it, and in float64 at last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eyespot.adapters.quari._ceilings import CodedBounds, PlainBounds
from eyespot.adapters.quari._device import NoRoom, OnDevice
from eyespot.adapters.quari._directions import Ways, ways
from eyespot.adapters.quari._formula import Formula
from eyespot.adapters.quari._tasks import TIE, AdaptedTask, RowsLeft, Tally, shared_readings, union
from eyespot.kernels import compiled
from eyespot.kernels.codes import (
    NOT_FINITE,
    WIDEST,
    Block,
    Codes,
    NotFiniteVectors,
    chunks,
    default_threads,
    evenly,
    floats,
    quantise,
    short_lengths,
)
from eyespot.kernels.rows import Ids, Reals, RowBlocks, allowed, positive
from eyespot.types import AdaptedQuery, Mask, NearestRows, ScanRequest, UsageError

if TYPE_CHECKING:
    import torch

_SAMPLE = 1024  # rows that stand for the gallery where directions are chosen
_STAGES = (6, 22, 78)  # directions beside the query's own, of all rows and of those left each time
_FEWEST, _ALMOST = 2, 0.95  # so few for all rows, where they give so much of what the second stage's do
_LIKELY = 46  # rows beside the k best that are scored for a floor
_CLOSER = 2048  # rows that are looked at again to find these
_FEW_LEFT = 512  # rows; so few are sooner scored than looked at again
_BLOCK = 4096  # rows scored at once
SMALL = 1 << 23  # numbers; a gallery up to this size is scanned in numpy sooner than kernels are loaded
_LARGE = 1 << 31  # numbers; codes of a larger gallery are used where they lie on disk and never made in memory


class AdaptedIndex:
    """The k best rows under adapted queries, as the formula in float64 would rank them.

    blocks, codes, threads, small: as for `eyespot.indexes.Exact`.
    patience: how many queries may pass before codes are made in memory: 0 makes them with the first, math.inf never.

    A gallery is looked through `window` rows at a time, so that memory beside the lengths does not grow with it.
    """

    exact = True
    window = 1 << 21

    def __init__(
        self,
        blocks: Sequence[Block] | Block,
        codes: Sequence[Codes | None] | None = None,
        *,
        threads: int | None = None,
        patience: float = 8,
        small: int = SMALL,
    ) -> None:
        self._rows = RowBlocks([blocks] if isinstance(blocks, np.ndarray) else blocks)
        self._threads, self._given = threads or default_threads(), codes or [None] * len(self._rows.blocks)
        self._coded: CodedBounds | None = None
        self._device: torch.device | None = None
        self._placed: OnDevice | None = None
        self._patience, self._spent, self._making = patience, 0, Lock()
        self._codable = self._rows.dim <= WIDEST and len(self._rows) * self._rows.dim >= max(1, small) and compiled()
        if codes is not None:
            blocks = self._rows.blocks
            if len(codes) != len(blocks) or not all(c is None or c.fit(b) for c, b in zip(codes, blocks, strict=True)):
                raise UsageError("the codes are not of these vectors; delete them to have them made again")

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def dim(self) -> int:
        """The length of the vectors."""
        return self._rows.dim

    @property
    def codes(self) -> Sequence[Codes | None]:
        """The codes in use, one per block, None for a block without; empty before any are used."""
        return self._coded.codes if self._coded else ()

    def on(self, device: torch.device) -> AdaptedIndex:
        """The same index, whose vectors lie on this device after `patience` queries, where torch computes.

        The answers are the same. A card without room for them is not used.
        """
        self._device = device
        return self

    def prepare(self) -> None:
        """Read all vectors now: their lengths, and codes if this gallery can use any, or a copy on the device."""
        with self._making:
            if self._device is not None and self._placed is None:
                with self._without_card():
                    self._placed = OnDevice(self._rows, self.lengths, self._device)
            if self._placed is not None:
                return
            if (
                self._codable
                and any(part is None for part in self._given)
                and len(self._rows) * self._rows.dim <= _LARGE
            ):
                pairs = zip(self._given, self._rows.blocks, strict=True)
                self._given = [quantise(block, self._threads) if part is None else part for part, block in pairs]
            self._use_codes(self._plain)

    def _use_codes(self, rest: PlainBounds) -> None:
        """Look at codes first from now on, where there are some."""
        if self._codable and self._given is not self.codes and any(part is not None for part in self._given):
            self._coded = CodedBounds(self._given, self.lengths, self._threads, self._rows.starts, rest)

    def search(self, adapted: Sequence[AdaptedQuery], k: int, mask: Mask | None = None) -> NearestRows:
        """The k best rows for each query, best first, and their scores; of equals the lower row.

        mask: (rows,), True where a row may be found. k' = min(k, rows let through) rows come back, never fewer.
        UsageError if k < 1, or a query is not finite or of another length.
        """
        rows, scores = self.ranked(adapted, k, mask)
        return NearestRows(rows, scores.astype(np.float32))

    def ranked(self, adapted: Sequence[AdaptedQuery], k: int, mask: Mask | None = None) -> tuple[Ids, Reals]:
        """What `search` finds, with the scores that rows are ranked by, in double precision; (queries, k') both."""
        mask = _narrowing(mask, len(self._rows))
        k = min(positive(k), len(self._rows) if mask is None else int(np.count_nonzero(mask)))
        rows, scores = np.empty((len(adapted), k), np.int64), np.empty((len(adapted), k))
        answers = self.ranked_each([ScanRequest(view, k, mask) for view in adapted]) if k else []
        for j, (best, found) in enumerate(answers):
            rows[j], scores[j] = best[0], found[0]
        return rows, scores

    def search_each(self, requests: Sequence[ScanRequest]) -> list[NearestRows]:
        """What `search` finds for each of several adapted queries, which share scans though each has its k and mask."""
        return [NearestRows(rows, scores.astype(np.float32)) for rows, scores in self.ranked_each(requests)]

    def ranked_each(self, requests: Sequence[ScanRequest]) -> list[tuple[Ids, Reals]]:
        """What `ranked` finds for each, (1, k') both."""
        masks = {id(one.mask): _narrowing(one.mask, len(self._rows)) for one in requests}
        tasks = [AdaptedTask.of(one._replace(mask=masks[id(one.mask)]), self._rows) for one in requests]
        mixed = self._device is None and self._codable and all(part is not None for part in self._given)
        for some in shared_readings([task for task in tasks if task.k], len(self._rows), mixed):
            self._search(some)
        found = [task.tally.best() for task in tasks]
        return [(rows[None], scores[None]) for rows, scores in found]

    def rescore(self, adapted: AdaptedQuery, rows: Sequence[int] | Ids) -> Reals:
        """The scores of these rows by the formula in float64, (rows,)."""
        chosen = np.asarray(rows, np.int64).reshape(-1)
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < len(self._rows):
            raise UsageError(
                f"rows are numbered from 0 to {len(self._rows) - 1}; {chosen.min()} to {chosen.max()} requested"
            )
        return self._exactly(Formula.of(adapted, self._rows.dim), chosen) if chosen.size else np.empty(0)

    def _search(self, tasks: Sequence[AdaptedTask]) -> None:
        """Find the best rows of each."""
        first, looked = self._first_pass(len(tasks)), []
        for task in tasks:
            if task.count <= max(_FEW_LEFT, 4 * task.k):
                self._settle(task, np.arange(task.count) if task.mask is None else np.flatnonzero(task.mask))
                continue
            likely = None  # what a card leaves of the rows; None without one, and from when it has no room
            with self._without_card():
                if self._placed is not None:
                    likely = self._placed.candidates(task.formula, task.k, task.mask)
            if likely is None:
                looked.append((task, ways(task.formula, self.sample)))
            else:
                task.tally.add(likely, self._exactly(task.formula, likely))
                task.tally.trim()
        for rows in self._windows(union([task.mask for task, _ in looked])) if looked else ():
            ceilings = first.ceilings([way.first(_first_stage(way)) for _, way in looked], rows)
            for (task, way), ceiling in zip(looked, ceilings, strict=True):
                left = RowsLeft(rows, ceiling).among(task.mask)
                if len(left.ceilings):
                    self._score_left(task, way, left)

    @contextmanager
    def _without_card(self) -> Iterator[None]:
        """Go on without the card if it has no room."""
        try:
            yield
        except NoRoom:
            self._placed = self._device = None

    def _first_pass(self, count: int) -> PlainBounds | CodedBounds:
        """What looks at all rows first, for so many queries more."""
        self._spent += count
        if self._spent > (self._patience if self._device or any(part is None for part in self._given) else -1):
            self.prepare()
        elif self._coded is None and any(part is not None for part in self._given):
            self._use_codes(self._plain)  # those that are there, at once
        return self._ready

    def _windows(self, mask: Mask | None) -> Iterator[Ids | None]:
        """The rows let through, so many at a time; None for all there are."""
        if mask is None and len(self._rows) <= self.window:
            yield None
            return
        for start in range(0, len(self._rows), self.window):
            stop = min(start + self.window, len(self._rows))
            rows = np.arange(start, stop) if mask is None else start + np.flatnonzero(mask[start:stop])
            if len(rows):
                yield rows

    def _score_left(self, task: AdaptedTask, way: Ways, left: RowsLeft) -> None:
        """Score the likeliest rows, and whatever else could still beat the k-th best seen so far."""
        first, tally = cache(way.first), task.tally  # two steps use the second stage's directions
        left = left if np.isneginf(tally.floor) else left.reaching(tally.floor)
        if _first_stage(way) == _FEWEST or len(left.ceilings) < 4 * (_CLOSER + 2 * tally.k):
            likely = left.likeliest(tally.k + _LIKELY)
        else:  # by more directions, where the first few explain little
            some = left.likeliest(_CLOSER + 2 * tally.k)
            ceilings = self._ready.ceilings([first(_STAGES[1])], left.numbers(some))[0]
            likely = some[RowsLeft(None, ceilings).likeliest(tally.k + _LIKELY)]
        left = self._tried(task, left, likely)
        for stage, count in enumerate(_STAGES[1:]):
            if len(left.ceilings) <= _FEW_LEFT or tally.floor <= 0:
                break
            lower = self._ready.ceilings([first(count)], left.rows)[0]
            left = RowsLeft(left.rows, np.minimum(left.ceilings, lower)).reaching(tally.floor)
            left = left if stage else self._tried(task, left, left.likeliest(tally.k + _LIKELY))
        self._settle(task, left.numbers())

    def _tried(self, task: AdaptedTask, left: RowsLeft, likely: Ids) -> RowsLeft:
        """What is left when the likely rows, by their places, are scored and those below the floor are dropped."""
        rows = left.numbers(likely)
        task.tally.add(rows, self._exactly(task.formula, rows))
        return left.reaching(task.tally.floor, likely)

    def _settle(self, task: AdaptedTask, rows: Ids) -> None:
        """Score these rows, of which many are first looked at in float32."""
        tally = task.tally
        if len(rows) > max(_FEW_LEFT, 2 * tally.k):
            lows, survivors = [tally.scores], [(np.empty(0, np.int64), np.empty(0))]
            floor = tally.floor
            for start in range(0, len(rows), _BLOCK):
                part = rows[start : start + _BLOCK]
                low, high = task.formula.near(self._rows.gather(part), self.lengths[part].astype(np.float64))
                may = high >= floor
                survivors.append((part[may], high[may]))
                lows = [np.concatenate([*lows, low[may]])]
                if len(lows[0]) >= tally.k:
                    lows = [np.partition(lows[0], -tally.k)[-tally.k :]]
                    floor = max(floor, float(lows[0][0]) - TIE)
            found, highs = (np.concatenate(column) for column in zip(*survivors, strict=True))
            rows = found[highs >= floor]
        tally.add(rows, self._exactly(task.formula, rows))
        tally.trim()

    def _exactly(self, formula: Formula, rows: Ids) -> Reals:
        parts = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
        scores = np.concatenate([np.empty(0), *(formula.scores(self._rows.gather(part)) for part in parts)])
        if np.isnan(scores).any():
            raise NotFiniteVectors(NOT_FINITE)
        return scores

    @property
    def _ready(self) -> PlainBounds | CodedBounds:
        return self._coded or self._plain

    @cached_property
    def _plain(self) -> PlainBounds:
        return PlainBounds(self._rows, self.lengths)

    @cached_property
    def lengths(self) -> NDArray[np.float32]:
        pairs = zip(self._given, self._rows.blocks, strict=True)
        found = np.empty(len(self._rows), np.float32)  # a little too long
        for (part, block), first in zip(pairs, self._rows.starts.tolist(), strict=False):
            for start, stop in chunks(block):
                rows = slice(start, stop)
                lengths = short_lengths(floats(block, rows)) if part is None else part.lengths[rows]
                found[first + start : first + stop] = lengths
        return found

    @cached_property
    def sample(self) -> NDArray[np.float32]:
        """Some rows, at unit length: a score does not depend on it. Zeros for one that is not finite."""
        chosen = evenly(len(self._rows), _SAMPLE)
        lengths, rows = self.lengths[chosen][:, None], self._rows.gather(chosen)
        return np.divide(rows, np.maximum(lengths, 1e-37), out=np.zeros_like(rows), where=np.isfinite(lengths))


def _first_stage(way: Ways) -> int:
    """How many directions beside the query's own are worth their products with all rows."""
    return _FEWEST if way.energy(_FEWEST) > _ALMOST * way.energy(_STAGES[1]) else _STAGES[0]


def best_of(rows: Ids, scores: Reals, k: int) -> tuple[Ids, Reals]:
    """The k best of what several scans of parts of a gallery ranked, as one scan of it would have them."""
    tally = Tally(k)
    tally.add(rows, scores)
    return tally.best()


def _narrowing(mask: Mask | None, rows: int) -> Mask | None:
    """Which rows are let through; None if that is all of them."""
    narrow = allowed(mask, rows)
    return None if narrow is None or narrow.all() else narrow
