"""The rows that pass a filter, remembered for each table of facts: after an index run only new tables are read.

A filter runs in the background, some millions of rows at a time, in turn with other filters, so that a slow one holds
nobody up. Who asks for it waits some seconds and then learns how far it is; what it has found by then is not lost.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import NamedTuple, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import filters
from eyespot.gallery.filters import Condition
from eyespot.types import Mask
from eyespot.web._problems import Problem
from eyespot.web.found.facts import Facts, RowGroups, ShardFacts, TableStamp

PATIENCE = 10.0  # seconds that somebody waits for a filter; then it goes on without them
MASKS = 256 << 20  # bytes of remembered masks
AT_ONCE = 2  # filters that run at the same time
RUNS = 64  # filters that run or wait for their turn; what they have found meanwhile takes memory beside `MASKS`
STRETCH = 1 << 25  # rows that a filter looks at before it is another one's turn
FILES = 512  # tables, likewise


class PackedMask(NamedTuple):
    """A mask of so many rows in few bytes: a bit for each row, or the numbers of the rows where that is less."""

    length: int
    bits: NDArray[np.uint8] | None
    rows: NDArray[np.uint32] | None

    @classmethod
    def of(cls, mask: Mask) -> PackedMask:
        """The same mask, (rows,)."""
        if np.count_nonzero(mask) * 32 < len(mask):
            return cls(len(mask), None, np.flatnonzero(mask).astype(np.uint32))
        return cls(len(mask), np.packbits(mask), None)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return 200 + sum(array.nbytes for array in (self.bits, self.rows) if array is not None)

    def unpack(self, into: Mask) -> None:
        """Write a flag for each row, (rows,)."""
        if self.bits is not None:
            into[:] = np.unpackbits(self.bits, count=self.length).view(np.bool_)
        elif self.rows is not None:
            into[:] = False
            into[self.rows] = True


# A condition over a table; the types of its columns are those of all tables of the gallery
MaskKey: TypeAlias = "tuple[TableStamp, Condition, tuple[str, ...]]"


@dataclass
class FilterRun:
    """A filter on its way over the tables that nobody asked yet."""

    condition: Condition
    kinds: Mapping[str, str]
    tables: list[ShardFacts]
    stretches: Iterator[list[ShardFacts]]  # the same in parts of some millions of rows
    found: dict[TableStamp, PackedMask] = field(default_factory=dict)
    over: Event = field(default_factory=Event)
    error: Exception | None = None

    @property
    def percent(self) -> int:
        """How many of the rows it has looked at."""
        done = sum(mask.length for mask in list(self.found.values()))
        return 100 * done // max(1, sum(table.rows for table in self.tables))


class MaskStore:
    """Masks of filters, as many as fit into so many bytes; what was not used for longest goes first."""

    def __init__(self, limit: int = MASKS, patience: float = PATIENCE, stretch: int = STRETCH) -> None:
        self.limit, self.patience, self.stretch, self.size = limit, patience, stretch, 0
        self._masks: OrderedDict[MaskKey, PackedMask] = OrderedDict()
        self._runs: dict[tuple[MaskKey, ...], FilterRun] = {}
        self._lock, self._closing = Lock(), False
        self._threads = ThreadPoolExecutor(AT_ONCE, "filter")

    def mask(self, tables: Sequence[ShardFacts], condition: Condition, kinds: Mapping[str, str]) -> Mask:
        """A flag for each row of the tables, whose columns have these types together, (rows,).

        Raises `UsageError` if the condition does not fit the data, `Problem` if it is not through after `patience`.
        """
        found: dict[TableStamp, PackedMask] = {}
        lacking = []
        with self._lock:
            for table, key in zip(tables, _keys(tables, condition, kinds), strict=True):
                if (known := self._masks.get(key)) is None:
                    lacking.append(table)
                else:
                    self._masks.move_to_end(key)
                    found[table.stamp] = known
        if lacking:
            run = self.start(lacking, condition, kinds)
            if not run.over.wait(self.patience):
                raise Problem(
                    503,
                    f"this filter takes long, {run.percent} % of the photos are looked at so far; it goes on without"
                    " you: open the same page again in a while",
                    {"Retry-After": "10"},
                )
            if run.error is not None:
                raise run.error
            found |= run.found
        mask: Mask = np.empty(sum(table.rows for table in tables), np.bool_)
        start = 0
        for table in tables:
            found[table.stamp].unpack(mask[start : start + table.rows])
            start += table.rows
        return mask

    def start(self, tables: list[ShardFacts], condition: Condition, kinds: Mapping[str, str]) -> FilterRun:
        """The run of a filter over these tables: one that somebody else waits for, or a new one."""
        key = tuple(_keys(tables, condition, kinds))
        with self._lock:
            if (run := self._runs.get(key)) is None:
                # When another one began, less was known
                run = next((one for other, one in self._runs.items() if set(key).issubset(other)), None)
            if run is None and len(self._runs) >= RUNS:
                raise Problem(503, "many filters run now; search again in a while", {"Retry-After": "10"})
            if run is None:
                run = self._runs[key] = FilterRun(condition, dict(kinds), tables, _stretches(tables, self.stretch))
                self._threads.submit(self._advance, key, run)
        return run

    def _advance(self, key: tuple[MaskKey, ...], run: FilterRun) -> None:
        """Look at some millions of rows, then it is the turn of who waits."""
        try:
            part = next(run.stretches, None)
            if part is not None:
                self._filter(run, part)
                self._threads.submit(self._advance, key, run)
                return
        except Exception as error:  # for whoever asked, whatever it is
            run.error = error
        with self._lock:
            self._runs.pop(key, None)
        run.over.set()

    def _filter(self, run: FilterRun, part: list[ShardFacts]) -> None:
        """Filter some tables; `Problem` if one was written anew or merged meanwhile."""
        paths = [table.stamp.path for table in part]
        try:
            masks = filters.file_masks(paths, run.condition, run.kinds, progress=self._go_on)
        finally:
            if not all(table.is_current() for table in part):  # checked last: what was read before is of that table
                raise Problem(503, "the gallery has changed while this filter ran; search again", {"Retry-After": "1"})
        for table, key, mask in zip(part, _keys(part, run.condition, run.kinds), masks, strict=True):
            packed = run.found[table.stamp] = PackedMask.of(mask)
            with self._lock:
                self.size += packed.nbytes - (self._masks[key].nbytes if key in self._masks else 0)
                self._masks[key] = packed
                while self.size > self.limit and self._masks:
                    self.size -= self._masks.popitem(last=False)[1].nbytes

    def _go_on(self, *_: object) -> None:
        if self._closing:
            raise Problem(503, "the server ends")

    def close(self) -> None:
        """Begin nothing more, and stop what runs: the end of the process would wait for it."""
        self._closing = True
        self._threads.shutdown(wait=False, cancel_futures=True)


def _keys(tables: Sequence[ShardFacts], condition: Condition, kinds: Mapping[str, str]) -> list[MaskKey]:
    folded = {name.casefold(): kind for name, kind in kinds.items()}  # as a condition finds its columns
    own = tuple(folded.get(name.casefold(), "") for name in (*condition.columns, "paths"))
    return [(table.stamp, condition, own) for table in tables]


def _stretches(tables: Sequence[ShardFacts], rows: int) -> Iterator[list[ShardFacts]]:
    part: list[ShardFacts] = []
    for table in tables:
        if part and (sum(one.rows for one in part) + table.rows > rows or len(part) == FILES):
            yield part
            part = []
        part.append(table)
    if part:
        yield part


class FactStore:
    """All tables of facts that somebody holds open, and the masks of filters over them."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[TableStamp, ShardFacts] = WeakValueDictionary()
        self.groups, self.masks = RowGroups(), MaskStore()

    def open(self, shards: Sequence[Path]) -> Facts:
        """The facts of these shards as they are now; those that somebody holds are not opened again."""
        tables = []
        for shard in shards:
            stamp = TableStamp.of(shard)
            known = self._known.get(stamp) or ShardFacts(stamp, self.groups)
            tables.append(self._known.setdefault(stamp, known))
        return Facts(tables)
