"""The rows that pass a filter, remembered for each table of facts: after an index run only new tables are read.

A filter runs in the background, some millions of rows at a time, in turn with other filters, so that a slow one holds
nobody up. Who asks for it waits some seconds and then learns how far it is; what it has found by then is not lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import filters
from eyespot.gallery.filters import Condition
from eyespot.types import Mask
from eyespot.web._problems import Problem
from eyespot.web._recent import RecentAnswers
from eyespot.web.found.facts import Facts, ShardFacts, TableStamp

if TYPE_CHECKING:
    import pyarrow as pa

PATIENCE = 10.0  # seconds that somebody waits for a filter; then it goes on without them
MASKS = 256 << 20  # bytes of remembered masks
GROUPS = 128 << 20  # bytes of decoded groups of rows that stay in memory
AT_ONCE = 2  # filters that run at the same time
RUNS = 64  # filters that run or wait for their turn; what they have found meanwhile takes memory beside `MASKS`
STRETCH = 1 << 25  # rows that a filter looks at before it is another one's turn
FILES = 512  # tables, likewise


# A condition over a table; the types of its columns are those of all tables of the gallery
MaskKey: TypeAlias = "tuple[TableStamp, Condition, tuple[str, ...]]"
PackedMask: TypeAlias = NDArray[np.uint8]  # a bit for each row


@dataclass(eq=False)
class FilterRun:
    """A filter on its way over tables that nobody asked yet."""

    condition: Condition
    kinds: Mapping[str, str]
    tables: Mapping[MaskKey, ShardFacts]
    found: dict[MaskKey, PackedMask] = field(default_factory=dict)
    over: Event = field(default_factory=Event)
    error: Exception | None = None

    @property
    def percent(self) -> int:
        """How many of the rows it has read."""
        done = sum(self.tables[key].rows for key in list(self.found))
        return 100 * done // max(1, sum(table.rows for table in self.tables.values()))


class MaskStore:
    """Masks of filters, as many as fit into so many bytes."""

    def __init__(self, limit: int = MASKS, patience: float = PATIENCE, stretch: int = STRETCH) -> None:
        self.patience, self.stretch = patience, stretch
        self.masks: RecentAnswers[PackedMask] = RecentAnswers(limit, lambda mask: 200 + mask.nbytes)
        self._runs: list[FilterRun] = []
        self._lock, self._closing = Lock(), False
        self._threads = ThreadPoolExecutor(AT_ONCE, "filter")

    def mask(self, tables: Sequence[ShardFacts], condition: Condition, kinds: Mapping[str, str]) -> Mask:
        """A flag for each row of the tables, whose columns have these types together, (rows,).

        Raises `UsageError` if the condition does not fit the data, `Problem` if it is not through after `patience`.
        """
        keys = mask_keys(tables, condition, kinds)
        found = {key: mask for key in keys if (mask := self.masks.known(key)) is not None}
        if lacking := {key: table for key, table in keys.items() if key not in found}:
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
        flags: Mask = np.empty(sum(table.rows for table in tables), np.bool_)
        start = 0
        for key, table in keys.items():
            flags[start : start + table.rows] = np.unpackbits(found[key], count=table.rows)
            start += table.rows
        return flags

    def start(self, tables: Mapping[MaskKey, ShardFacts], condition: Condition, kinds: Mapping[str, str]) -> FilterRun:
        """The run of a filter over these tables: one that somebody else waits for, or a new one."""
        with self._lock:
            # When another one began, less was known
            run = next((run for run in self._runs if tables.keys() <= run.tables.keys()), None)
            if run is None:
                if len(self._runs) >= RUNS:
                    raise Problem(503, "many filters run now; search again in a while", {"Retry-After": "10"})
                run = FilterRun(condition, dict(kinds), tables)
                self._runs.append(run)
                self._threads.submit(self._advance, run)
        return run

    def _advance(self, run: FilterRun) -> None:
        """Filter some millions of rows, then it is the turn of who waits."""
        try:
            left = [key for key in run.tables if key not in run.found][:FILES]
            sizes = np.cumsum([run.tables[key].rows for key in left])
            part = left[: max(1, int(np.searchsorted(sizes, self.stretch, side="right")))]
            tables = [run.tables[key] for key in part]
            try:
                paths = [table.stamp.path for table in tables]
                masks = filters.file_masks(paths, run.condition, run.kinds, progress=self._refuse_at_end)
            finally:
                if not all(table.is_current() for table in tables):  # checked last: what was read before is of that
                    changed = "the gallery has changed while this filter ran; search again"
                    raise Problem(503, changed, {"Retry-After": "1"})
            for key, mask in zip(part, masks, strict=True):
                run.found[key] = np.packbits(mask)
                self.masks.put(key, run.found[key])
            if len(run.found) < len(run.tables):
                self._threads.submit(self._advance, run)
                return
        except Exception as error:  # for whoever asked, whatever it is
            run.error = error
        with self._lock:
            self._runs.remove(run)
        run.over.set()

    def _refuse_at_end(self, *_: object) -> None:
        if self._closing:
            raise Problem(503, "the server ends")

    def close(self) -> None:
        """Begin nothing more, and stop what runs: the end of the process would wait for it."""
        self._closing = True
        self._threads.shutdown(wait=False, cancel_futures=True)


def mask_keys(
    tables: Sequence[ShardFacts], condition: Condition, kinds: Mapping[str, str]
) -> dict[MaskKey, ShardFacts]:
    """The tables by what a mask of each is remembered under."""
    folded = {name.casefold(): kind for name, kind in kinds.items()}  # as a condition finds its columns
    used = tuple(folded.get(name.casefold(), "") for name in (*condition.columns, "paths"))
    return {(table.stamp, condition, used): table for table in tables}


class FactStore:
    """All tables of facts that somebody holds open, and the masks of filters over them."""

    def __init__(self, groups: int = GROUPS) -> None:
        self._open: WeakValueDictionary[TableStamp, ShardFacts] = WeakValueDictionary()
        self.groups: RecentAnswers[pa.RecordBatch] = RecentAnswers(groups, lambda batch: batch.nbytes)
        self.masks = MaskStore()

    def open(self, shards: Sequence[Path]) -> Facts:
        """The facts of these shards as they are now; those that somebody holds are not opened again."""
        tables = []
        for shard in shards:
            stamp = TableStamp.of(shard)
            known = self._open.get(stamp) or ShardFacts(stamp, self.groups)
            tables.append(self._open.setdefault(stamp, known))
        return Facts(tables)
