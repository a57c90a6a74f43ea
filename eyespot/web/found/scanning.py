"""Searches of several people in one scan: who comes while a scan runs shares the next one.

Each scan takes all processors, so one runs at a time. A search that comes alone waits for nobody. If a scan of several
fails, each of its searches runs again by itself, so that what is wrong with one of them is told to that one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from threading import Event, Lock
from typing import Any

import numpy as np

from eyespot.cluster.linked import LinkedIndex
from eyespot.indexes.exact import Exact
from eyespot.search.collection import Collection
from eyespot.search.searchable import Scan
from eyespot.types import AdaptedQuery, Adapter, BatchSearch, Index, Mask, NearestRows, ScanRequest, Vectors

_ADAPTING = Lock()
LINEAR = Lock()  # a linear adapter may have to adapt the whole gallery first

MOST = 64  # requests in a scan; with more the first of them would wait too long
SearchAll = Callable[[Sequence[ScanRequest]], list[NearestRows]]


class _Waiter:
    """The requests of one thread, and what became of them."""

    def __init__(self, requests: Sequence[ScanRequest]) -> None:
        self.requests, self.woken = requests, Event()
        self.found: list[NearestRows] | None = None
        self.error: BaseException | None = None

    @property
    def ended(self) -> bool:
        return self.found is not None or self.error is not None


class Batcher:
    """Puts requests that wait together into one call of `search`, which runs within `lock`.

    One of those who wait runs the scan for all. When it ends, the first who came meanwhile runs the next.
    """

    def __init__(self, search: SearchAll, lock: AbstractContextManager[Any]) -> None:
        self._search, self._lock = search, lock
        self._book, self.waiting, self._running = Lock(), list[_Waiter](), False

    def __call__(self, requests: Sequence[ScanRequest]) -> list[NearestRows]:
        """What `search` finds for each request; what it says of these alone is raised."""
        waiter = _Waiter(requests)
        with self._book:
            self.waiting.append(waiter)
            leads, self._running = not self._running, True
        if not leads:
            waiter.woken.wait()
        if not waiter.ended:
            self._lead()
        if waiter.error is not None:
            raise waiter.error
        assert waiter.found is not None
        return waiter.found

    def _lead(self) -> None:
        """Run one scan for all who wait by the time it can begin, and wake them and whoever runs the next."""
        batch: list[_Waiter] = []
        try:
            with self._lock:
                with self._book:
                    batch = self._taken()
                self._answer(batch)
        finally:
            with self._book:
                batch = batch or self._taken()  # who leads is the first of them, also where the lock was not given
                following = self.waiting[:1]
                self._running = bool(following)
            for waiter in batch:
                if not waiter.ended:
                    waiter.error = RuntimeError("the scan was broken off")
            for waiter in (*batch, *following):
                waiter.woken.set()

    def _taken(self) -> list[_Waiter]:
        """The first who wait, one at least."""
        sizes = np.cumsum([len(waiter.requests) for waiter in self.waiting])
        count = max(1, int(np.searchsorted(sizes, MOST, side="right")))
        batch, self.waiting = self.waiting[:count], self.waiting[count:]
        return batch

    def _answer(self, batch: Sequence[_Waiter]) -> None:
        requests = [request for waiter in batch for request in waiter.requests]
        try:
            found = iter(self._search(requests))
            for waiter in batch:
                waiter.found = [next(found) for _ in waiter.requests]
        except Exception as error:
            if len(batch) == 1:
                batch[0].error = error
                return
            for waiter in batch:
                waiter.found = None
                self._answer([waiter])


class SharedIndex:
    """An index whose searches share scans."""

    def __init__(self, index: BatchSearch, lock: AbstractContextManager[Any]) -> None:
        self.batcher, self.exact = Batcher(index.search_each, lock), True

    def search(self, queries: Vectors, k: int, mask: Mask | None = None) -> NearestRows:
        """As the index itself."""
        return _joined(self.batcher([ScanRequest(query, k, mask) for query in np.asarray(queries, np.float32)]))


class SharedScan:
    """A scan under adapted queries, opened when it is first needed, whose searches share readings."""

    exact = True

    def __init__(self, opened: Callable[[], Scan], lock: AbstractContextManager[Any]) -> None:
        self._opened = opened
        # A method of its own would make a circle: the files of an old snapshot would stay open until Python finds it
        self.batcher = Batcher(lambda requests: opened().search_each(requests), lock)

    def search(self, adapted: Sequence[AdaptedQuery], k: int, mask: Mask | None = None) -> NearestRows:
        """As the scan itself."""
        return _joined(self.batcher([ScanRequest(view, k, mask) for view in adapted]))

    def search_each(self, requests: Sequence[ScanRequest]) -> list[NearestRows]:
        """As the scan itself, which waits for nobody."""
        return self._opened().search_each(requests)

    def rescore(self, adapted: AdaptedQuery, rows: Sequence[int]) -> Any:
        """As the scan itself; so few rows wait for nobody."""
        return self._opened().rescore(adapted, rows)


class OneByOne:
    """An index that is searched by one thread at a time, for each scan takes all processors."""

    def __init__(self, index: Index, lock: AbstractContextManager[Any]) -> None:
        self.index, self._lock = index, lock
        self.exact = index.exact

    def search(self, queries: Vectors, k: int, mask: Mask | None = None) -> NearestRows:
        """As the index itself."""
        with self._lock:
            return self.index.search(queries, k, mask)


class OneAtATime:
    """An adapter that is asked by one thread at a time."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self.space, self.dim, self.caution = adapter.space, adapter.dim, adapter.caution
        self.card = getattr(adapter, "card", None)

    def adapt(self, queries: Vectors) -> list[AdaptedQuery]:
        """As the adapter itself."""
        with _ADAPTING:
            return self._adapter.adapt(queries)


def shared(collection: Collection, lock: AbstractContextManager[Any]) -> tuple[Index, Scan]:
    """The index of a collection and its scan under adapted queries, for several threads; scans run within `lock`.

    An approximate index answers one search at a time: what it finds is estimated for each.
    """
    index = collection.index
    shared_index: Index = OneByOne(index, lock)
    if isinstance(index, Exact | LinkedIndex):
        shared_index = SharedIndex(index, lock)
    return shared_index, SharedScan(partial(getattr, collection, "scan"), lock)


def _joined(found: Sequence[NearestRows]) -> NearestRows:
    """The answers of one search, whose k and mask were the same for all."""
    recalls = [one.recall for one in found if one.recall is not None]
    rows, scores = (np.concatenate(column) for column in zip(*((one.rows, one.scores) for one in found), strict=True))
    return NearestRows(rows, scores, min(recalls) if recalls else None)
