"""Indexing with workers on a Ray cluster: they read and embed, and the gallery is written here as ever.

The ledger stays with the process that writes, and it alone says what is new, known or bad. A batch is made of the same
pictures as on one machine, so that its vectors have the same bits and the gallery the same bytes. Pixels travel from
worker to worker, not through this process.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import numpy as np
import ray

from eyespot import rooms
from eyespot.cluster.calls import BEGIN, PendingCall, answered, awaited, dismissed, hired, host
from eyespot.cluster.starting import Cluster
from eyespot.parallel import batches
from eyespot.photos.decode_workers import Later, Reader, ReadPicture, read_planned
from eyespot.photos.found import KnownPictures, PlannedPicture
from eyespot.photos.places import Root
from eyespot.photos.sources import is_there
from eyespot.types import Encoder, EyespotError, Pixels, Vectors

READING = "reading"
_AHEAD = 2  # batches that each worker may be embedding, and as many that it has read


class Embedder:
    """One worker: the encoders of a gallery, and threads that read for them.

    names: encoders by the stems of their spaces, each with the digest that its space must have.
    """

    def __init__(self, names: Mapping[str, tuple[str, str]], threads: int) -> None:
        os.environ.setdefault("EYESPOT_THREADS", str(threads))  # of the built-in encoder; Ray tells others
        self._known: dict[str, Encoder] = {}
        for stem, (name, digest) in names.items():
            self._known[stem] = rooms.load("encoders", name)
            if self._known[stem].space.digest != digest:
                raise EyespotError(f"{name} on {host()} is another revision than here; install one on all machines")
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="eyespot-read")
        self._there: set[Root] = set()

    def pulse(self) -> str:
        """A sign of life."""
        return host()

    def read(
        self, stems: Sequence[str], planned: Sequence[PlannedPicture], roots: Mapping[int, Root]
    ) -> tuple[list[ReadPicture], dict[str, Pixels]]:
        """Pictures read for these spaces, in order; and the pixels of the good ones for each space, (good, ...)."""
        for root in set(roots.values()) - self._there:
            if not is_there(root):
                raise EyespotError(f"{root.place} is not there on {host()}; keep photos where all machines see them")
            self._there.add(root)
        encoders = {stem: self._known[stem] for stem in stems}
        every = self._pool.map(lambda one: list(read_planned(one, roots[one.root], encoders, KnownPictures())), planned)
        reads = list(chain.from_iterable(every))
        good = [read.pixels for read in reads if read.measured]
        pixels = {stem: np.stack([read[stem] for read in good]) for stem in (stems if good else ())}
        return [replace(read, pixels={}) for read in reads], pixels

    def embed(self, stem: str, parts: Sequence[tuple[Any, list[int]]]) -> Vectors:
        """The vectors of one batch, (n, dim); parts: what a worker has read, which may be several, and rows of it."""
        pixels = [ray.get(held)[stem][rows] for held, rows in parts]
        return self._known[stem].encode_pixels(pixels[0] if len(pixels) == 1 else np.concatenate(pixels))


class WorkerPool:
    """Workers that index in place of threads here. They begin with the first picture and stay as long as this is open.

    As `Options.reader_factory` it reads and embeds for an indexing run.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._stems: set[str] = set()
        self._workers: list[Any] = []

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        dismissed(self._workers)
        self._workers = []

    def __call__(self, encoders: Mapping[str, Encoder]) -> Reader:
        """Who reads and embeds for these encoders, by the stems of their spaces."""
        return _RayReader(self, encoders)

    def workers(self, encoders: Mapping[str, Encoder]) -> list[Any]:
        """Workers that have these encoders, and perhaps more."""
        if not (self._workers and self._stems.issuperset(encoders)):
            dismissed(self._workers)
            names = {stem: (encoder.space.encoder, encoder.space.digest) for stem, encoder in encoders.items()}
            self._workers = hired(
                Embedder, self._cluster, [(names, self._cluster.cpus)] * self._cluster.workers, READING
            )
            self._stems = set(encoders)
        return self._workers

    def call(self, worker: Any, answer: Any) -> PendingCall:
        """A call to one of them; one that was killed has its models to load before it gives a sign of life."""
        return PendingCall(worker, answer, self._cluster.patience, BEGIN)


class _RayReader:
    """A pool at work for some encoders."""

    def __init__(self, pool: WorkerPool, encoders: Mapping[str, Encoder]) -> None:
        self._pool, self._encoders = pool, encoders
        self._open: deque[PendingCall] = deque()  # batches that are being embedded

    def __enter__(self) -> _RayReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.clear()

    def read_all(self, planned: Iterable[PlannedPicture], roots: Mapping[int, Root]) -> Iterator[ReadPicture]:
        """Every planned picture, read, in the order of the plan."""
        waiting: deque[tuple[PendingCall, Any]] = deque()
        size = max((encoder.batch for encoder in self._encoders.values()), default=1)
        for number, some in enumerate(batches(planned, size)):
            workers = self._pool.workers(self._encoders)
            worker = workers[number % len(workers)]
            needed, stems = {one.root: roots[one.root] for one in some}, list(self._encoders)
            reading = worker.read.options(num_returns=2, concurrency_group=READING)
            reads, pixels = reading.remote(stems, some, needed)
            waiting.append((self._pool.call(worker, reads), pixels))
            if len(waiting) >= _AHEAD * len(workers):
                yield from self._placed(*waiting.popleft())
        while waiting:
            yield from self._placed(*waiting.popleft())

    def embed(self, stem: str, pixels: Sequence[Any]) -> Later:
        """The vectors of one batch, by the places of its pixels: the worker that read them, what it holds, and the row.

        The worker that read the first of it makes them.
        """
        while len(self._open) >= _AHEAD * len(self._pool.workers(self._encoders)):
            awaited([self._open.popleft()])
        worker = pixels[0][0]
        parts = [(held, [row for *_, row in some]) for held, some in groupby(pixels, itemgetter(1))]
        call = self._pool.call(worker, worker.embed.remote(stem, parts))
        self._open.append(call)

        def vectors() -> Vectors:
            found: Vectors = answered([call])[0]
            return found

        return vectors

    def _placed(self, call: PendingCall, pixels: Any) -> Iterator[ReadPicture]:
        """What was read, with the places of its pixels."""
        (reads,), row = answered([call]), 0
        for read in reads:
            if not read.measured:
                yield read
                continue
            yield replace(read, pixels=dict.fromkeys(self._encoders, (call.worker, pixels, row)))
            row += 1
