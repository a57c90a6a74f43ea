"""Approximate indexes in a folder, whose parts are searched by workers: the answers of one process.

A worker names the likeliest rows of its parts, in the order and with the scores that the index has for them; the first
of all of these are what one process would have named.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.cluster.calls import PendingCall, answered, hired, host
from eyespot.cluster.starting import Cluster
from eyespot.indexes.faiss import LAYOUT, Parts, Scored, likeliest, open_parts
from eyespot.storage.digests import file_blake2b
from eyespot.types import EyespotError, Mask


class Share(NamedTuple):
    """The parts of an index that one worker searches, sent with each request."""

    folder: str
    seal: str  # the digest of the layout (kind, rows of the parts, vectors), so that a worker knows the index is meant
    first: int
    stop: int


class ShardActor:
    """One worker, which opens its parts with the first question."""

    def __init__(self) -> None:
        self._parts: Parts | None = None

    def pulse(self) -> str:
        """A sign of life."""
        return host()

    def scored(
        self, share: Share, queries: NDArray[np.float32], wanted: tuple[int, int], bits: NDArray[np.uint8] | None
    ) -> Scored:
        """So many of the likeliest rows of these parts, numbered from 0 there; bits: a mask, eight rows a byte."""
        if self._parts is None:
            folder, shared = Path(share.folder), "the gallery on a disk that all machines of the cluster see"
            if not (folder / LAYOUT).is_file():
                raise EyespotError(f"{folder} is not there on {host()}; keep {shared}")
            if file_blake2b(folder / LAYOUT) != share.seal:
                problem = f"{folder} on {host()} holds another index than the one that was opened"
                raise EyespotError(f"{problem}; run the same line again, with {shared}")
            self._parts = open_parts(folder, slice(share.first, share.stop))
        mask = None if bits is None else np.unpackbits(bits, count=self._parts.rows).astype(bool)
        return self._parts.scored(queries, *wanted, mask)


class RayParts:
    """The parts of an index, whose rows are `sizes`, shared out evenly; fewer workers where there are fewer parts."""

    def __init__(self, cluster: Cluster, folder: Path, sizes: Sequence[int]) -> None:
        cuts = np.linspace(0, len(sizes), min(cluster.workers, len(sizes)) + 1).astype(int).tolist()
        starts, seal = [0, *accumulate(sizes)], file_blake2b(folder / LAYOUT)
        self._shares = [Share(str(folder.resolve()), seal, *span) for span in pairwise(cuts)]
        self._spans = [(starts[first], starts[stop]) for first, stop in pairwise(cuts)]  # rows
        self._patience = cluster.patience
        self.workers = hired(ShardActor, Cluster(cluster.workers, cluster.cpus), [()] * len(self._shares))

    def __call__(self, queries: NDArray[np.float32], count: int, probes: int, mask: Mask | None) -> Scored:
        """The likeliest rows of all parts, as `eyespot.indexes.faiss.Parts` has them."""
        calls = []
        for worker, share, (start, stop) in zip(self.workers, self._shares, self._spans, strict=True):
            bits = None if mask is None else np.packbits(mask[start:stop])
            answer = worker.scored.remote(share, queries, (count, probes), bits)
            calls.append(PendingCall(worker, answer, self._patience))
        found = zip(answered(calls), self._spans, strict=True)
        return likeliest(
            [(scores, np.where(rows < 0, -1, rows + start)) for (scores, rows), (start, _) in found], count
        )
