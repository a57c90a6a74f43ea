"""Indexes and scans of a server whose vectors are searched by workers on Ray, or by itself while these are away."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from eyespot.cluster.link import DriverProcess, RayLink, RowsClosedError, UnreadableRowsError
from eyespot.cluster.wire import mapping_of
from eyespot.kernels.codes import Block, Codes
from eyespot.kernels.rows import Ids, Reals, allowed, positive
from eyespot.types import AdaptedQuery, Mask, NearestRows, ScanRequest


class LinkedRows:
    """The rows of some blocks, which the workers open at their first request."""

    def __init__(self, link: RayLink, blocks: Sequence[Block], codes: Sequence[Codes | None] | None) -> None:
        self._link, self.blocks, self.codes, self._name = link, blocks, codes, uuid4().hex
        self.count, self._opening = sum(map(len, blocks)), threading.Lock()
        prefixes = [
            str(Path(one.prefix).absolute()) if one and one.prefix else "" for one in codes or [None] * len(blocks)
        ]
        sources = [(mapping_of(block), prefix) for block, prefix in zip(blocks, prefixes, strict=True) if len(block)]
        self._mapped = all(source is not None for source, _ in sources)
        self._sources = [[*source[:4], source.seal.hex()] for source, _ in sources if source is not None]
        self._prefixes = [prefix for _, prefix in sources]

    def open(self, driver: DriverProcess) -> None:
        """Let the workers open the rows; `UnreadableRowsError` for what lies in no file."""
        if not self._mapped:
            raise UnreadableRowsError("some vectors lie in no file")
        with self._opening:
            if self._name not in driver.opened:
                driver.ask({"do": "open", "gallery": self._name, "blocks": self._sources, "codes": self._prefixes})
                driver.opened.add(self._name)

    def hold(self) -> None:
        """The same now, so that the first search need not wait."""
        self._link.ask(self.open, lambda: None)

    def ask(
        self, question: dict[str, Any], arrays: Sequence[NDArray[Any]], instead: Callable[[], Any]
    ) -> Sequence[NDArray[Any]] | Any:
        """The arrays of the workers' answer; or what is found `instead`."""
        named = question | {"gallery": self._name}

        def work(driver: DriverProcess) -> Sequence[NDArray[Any]]:
            self.open(driver)
            try:
                return driver.ask(named, arrays)
            except RowsClosedError:
                driver.opened.discard(self._name)
            self.open(driver)
            return driver.ask(named, arrays)

        return self._link.ask(work, instead)

    def question(self, do: str, requests: Sequence[ScanRequest]) -> tuple[dict[str, Any], list[NDArray[np.uint8]]]:
        """The request for all queries, and their masks, eight rows a byte."""
        masks = {id(one.mask): one.mask for one in requests if one.mask is not None}
        place = {mask: at for at, mask in enumerate(masks)}
        chosen = [place.get(id(one.mask), -1) for one in requests]
        head = {"do": do, "rows": self.count, "ks": [int(one.k) for one in requests], "masks": chosen}
        return head, [np.packbits(mask) for mask in masks.values()]


class ByRequests(ABC):
    """Exact search of many queries with one k and one mask, by a request for each; `rows` are where these go."""

    exact = True

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __len__(self) -> int:
        count: int = self._rows.count
        return count

    @abstractmethod
    def search_each(self, requests: Sequence[ScanRequest]) -> list[NearestRows]:
        """For each request its k best rows, (1, k') both."""

    def search(self, queries: Any, k: int, mask: Mask | None = None) -> NearestRows:
        """The k best rows for each query (m, dim), or each adapted query, best first; of equals the lower row.

        As one process finds them, with its errors.
        """
        if isinstance(queries, np.ndarray):
            queries = np.ascontiguousarray(queries, np.float32)
        if not len(queries):
            mask = allowed(mask, len(self))
            none = 0, min(positive(k), len(self) if mask is None else int(np.count_nonzero(mask)))
            return NearestRows(np.empty(none, np.int64), np.empty(none, np.float32))
        found = self.search_each([ScanRequest(one, k, mask) for one in queries])
        return NearestRows(np.concatenate([one.rows for one in found]), np.concatenate([one.scores for one in found]))


class LinkedIndex(ByRequests):
    """Exact search by inner product, by workers or by this process."""

    @cached_property
    def here(self) -> Any:
        """The index of this process, opened when the workers are away."""
        from eyespot.indexes.exact import Exact

        return Exact(self._rows.blocks, self._rows.codes)

    def search_each(self, requests: Sequence[ScanRequest]) -> list[NearestRows]:
        head, masks = self._rows.question("search", requests)
        queries = np.stack([one.query for one in requests])
        found = self._rows.ask(head, [queries, *masks], lambda: self.here.search_each(requests))
        return _answers(found, len(requests))


class LinkedScan(ByRequests):
    """Exact search under adapted queries, by workers or by this process."""

    @cached_property
    def here(self) -> Any:
        """The scan of this process, opened when the workers are away."""
        from eyespot.adapters.quari.scoring import AdaptedIndex

        return AdaptedIndex(self._rows.blocks, self._rows.codes)

    def search_each(self, requests: Sequence[ScanRequest]) -> list[NearestRows]:
        head, masks = self._rows.question("scan", requests)
        head["identities"] = [float(one.query.identity) for one in requests]
        views = [part for one in requests for part in one.query[:3]]
        return _answers(self._rows.ask(head, [*views, *masks], lambda: self.here.search_each(requests)), len(requests))

    def rescore(self, adapted: AdaptedQuery, rows: Sequence[int] | Ids) -> Reals:
        """The scores of these rows, (rows,)."""
        chosen = np.asarray(rows, np.int64).reshape(-1)
        head = {"do": "rescore", "identity": float(adapted.identity)}
        found = self._rows.ask(head, [*adapted[:3], chosen], lambda: [self.here.rescore(adapted, chosen)])
        scores: Reals = found[0]
        return scores


class LinkedBackend:
    """Who searches in place of a server's process, while a cluster answers."""

    def __init__(self, link: RayLink) -> None:
        self.link, self._held = link, list[LinkedRows]()  # the latest first
        link.on_connect = self.hold

    @property
    def notes(self) -> Sequence[str]:
        """What readers of an answer should know while the workers are away."""
        return self.link.notes

    def index(self, blocks: Sequence[Block], codes: Sequence[Codes | None] | None = None) -> LinkedIndex:
        """Exact search by inner product."""
        rows = self._rows(blocks, codes)
        rows.hold()
        return LinkedIndex(rows)

    def scan(self, blocks: Sequence[Block], codes: Sequence[Codes | None] | None = None) -> LinkedScan:
        """Exact search under adapted queries."""
        return LinkedScan(self._rows(blocks, codes))

    def hold(self) -> None:
        """Let new workers open what is searched."""
        for held in self._held:
            held.hold()

    def _rows(self, blocks: Sequence[Block], codes: Sequence[Codes | None] | None) -> LinkedRows:
        for held in self._held:
            if held.blocks is blocks:
                return held
        self._held = [LinkedRows(self.link, blocks, codes), *self._held[:3]]
        return self._held[0]


def _answers(found: Any, count: int) -> list[NearestRows]:
    if len(found) == count and all(isinstance(one, NearestRows) for one in found):
        return list(found)
    return [NearestRows(found[2 * at], found[2 * at + 1]) for at in range(count)]
