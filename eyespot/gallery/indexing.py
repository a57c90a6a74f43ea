"""Indexing: from photos where they lie to a gallery, again and again, each time only what is new or changed.

Killed at any moment and run again, it ends in the same gallery as a run that was left alone: the plan of shards is
written first, a shard appears whole or not at all, and a shard that was cut is done again from its plan.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from eyespot import ledger
from eyespot.gallery import disk
from eyespot.gallery.fingerprints import fingerprints
from eyespot.gallery.photos.pictures import BadPicture, id_of, open_picture
from eyespot.gallery.photos.sources import Root, is_there, read_bytes, root_of
from eyespot.gallery.record import Failure, Kept, Ledger, Outcome, Planned
from eyespot.gallery.recovery import recover
from eyespot.types import Encoder, EyespotError, Mask, Pixels, Vectors

A = TypeVar("A")
B = TypeVar("B")
Progress = Callable[[str, int, int], None]  # what is being done, how many are done, of how many
GONE_LIMIT = 0.2  # more than this share of a root gone at once is asked about


@dataclass(frozen=True)
class Options:
    """How to index; the defaults are what most people want."""

    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    retry_failed: bool = False
    forget: bool = False
    shard_rows: int | None = None  # None: by the size of the job
    progress: Progress = lambda _what, _done, _total: None


@dataclass
class Summary:
    """What an indexing run did; `notes` are sentences for the user."""

    pictures: int = 0
    paths: int = 0
    embedded: int = 0
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Read:
    """One picture as a reading thread hands it over; `pixels` is empty for one that is known or bad."""

    planned: Planned
    id: str | None = None
    failed: str | None = None
    out_of_reach: bool = False
    measured: dict[str, Any] = field(default_factory=dict)
    pixels: dict[str, Pixels] = field(default_factory=dict)


def index(gallery: Path, paths: Sequence[str], encoders: Sequence[Encoder], options: Options | None = None) -> Summary:
    """Bring the gallery up to date with the photos under `paths` (all its roots if none are named).

    Every encoder gives the gallery one space. Raises `UsageError` for paths that cannot be indexed, `EyespotError` when
    another run holds the gallery or the disk is full; whatever was finished by then stays.
    """
    try:
        with ExitStack() as open_things:
            open_things.enter_context(disk.locked(gallery))
            job = _Job(gallery, encoders, options or Options())
            open_things.callback(job.ledger.close)
            return job.run([root_of(path) for path in paths])
    except (OSError, sqlite3.OperationalError) as error:
        raise EyespotError(_no_room(gallery, error)) from error


def _no_room(gallery: Path, error: Exception) -> str:
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    if "locked" in reason:
        return f"another program has {gallery / 'ledger.sqlite'} open for writing; close it and run again"
    if isinstance(error, PermissionError):
        return f"{gallery} may not be written ({reason}); choose another place with -g"
    return f"cannot write to {gallery} ({reason}); make room and run the same line again, what is done so far is kept"


class _Job:
    """One run of `index` over one gallery."""

    def __init__(self, gallery: Path, encoders: Sequence[Encoder], options: Options) -> None:
        self.gallery = gallery
        self.ledger = Ledger(gallery / "ledger.sqlite")
        self.encoders = {disk.stem_of(encoder.space): encoder for encoder in encoders}
        self.options = options
        self.summary = Summary()
        self.fingerprints: dict[str, list[list[float]]] = {}

    def run(self, roots: list[Root]) -> Summary:
        if recover(self.gallery, self.ledger):
            self.summary.notes.append("the ledger did not know all shards; it was made again from them")
        self._write_header()
        self._embed_planned()  # what a killed run left
        looked = self._look(roots or [root for root in self.ledger.roots().values() if root.kind != "import"])
        self.ledger.make_plan(self.options.shard_rows, self.options.retry_failed)
        self._write_header()
        self._embed_planned()
        self._forget_gone(looked)
        self._refresh_facts()
        self._fill_spaces()
        self._write_header()
        self.summary.pictures, self.summary.paths = self.ledger.counts()
        self.summary.failures = self.ledger.failures()
        return self.summary

    # -- what there is to do --------------------------------------------------------------------------------

    def _look(self, roots: Sequence[Root]) -> dict[int, Root]:
        """Look through the roots that are there; those looked at, by number."""
        self.ledger.begin_looking()
        looked = {}
        for root in roots:
            if not is_there(root):
                self._note_absent(root)
                continue
            number = self.ledger.add_root(root)
            looked[number] = root
            self.options.progress(f"looking through {root.path}", 0, 0)
            self.ledger.look(number, root)
        return looked

    def _note_absent(self, root: Root) -> None:
        known = root in self.ledger.roots().values()
        tail = "its pictures are kept" if known else "nothing to index there"
        self.summary.notes.append(f"{root.path} is missing or empty (an unplugged disk?); {tail}")

    def _forget_gone(self, looked: Mapping[int, Root]) -> None:
        """After embedding, when it is known which of the missing files have only moved."""
        for number, root in looked.items():
            gone = self.ledger.gone(number)
            if gone.not_seen and (self.options.forget or gone.lost <= GONE_LIMIT * gone.known):
                self.ledger.forget_gone(number)
                self.summary.notes += [f"{gone.lost} pictures are gone from {root.path}"] if gone.lost else []
            elif gone.not_seen:
                self.summary.notes.append(
                    f"{gone.lost} of {gone.known} pictures are gone from {root.path}; "
                    "they are kept until you run with --forget"
                )

    def _write_header(self) -> None:
        header = disk.read_or_rebuild_header(self.gallery)
        header.roots = self.ledger.roots()
        header.spaces |= {stem: encoder.space for stem, encoder in self.encoders.items()}
        header.default = self._default(header)
        header.rows = self.ledger.counts()[0]
        disk.write_header(self.gallery, header)

    def _default(self, header: disk.Header) -> str:
        """The space searched unasked: the first there was, in its encoder's present revision."""
        if header.default not in header.spaces:
            return next(iter(self.encoders), "")
        name, revision = header.spaces[header.default].encoder, header.spaces[header.default].revision
        if revision == "imported":  # most pictures are there, and no encoder installed here gives that very space
            return header.default
        return next((stem for stem, encoder in self.encoders.items() if encoder.space.encoder == name), header.default)

    # -- new and changed pictures ---------------------------------------------------------------------------

    def _embed_planned(self) -> None:
        self._leave_out_absent()
        total, done = self.ledger.planned(), 0
        shards = self.ledger.planned_shards()
        planned = (planned for shard in shards for planned in self.ledger.plan_of(shard))
        with _Readers(self.gallery, self.encoders, self.options.workers) as readers:
            reads = readers.read_all(planned, self.ledger.roots())
            for shard, group in _by_shard(reads):
                building = _Building(self.encoders)
                for read in group:
                    building.add(read, self.ledger.is_known)
                    done += 1
                    self.options.progress("embedding", done, total)
                self._commit(shard, building)

    def _leave_out_absent(self) -> None:
        """A planned picture whose root is away would only fail; the next look plans it again."""
        roots = self.ledger.roots()
        for number in self.ledger.planned_roots():
            if not is_there(roots[number]):
                self.ledger.unplan(number)

    def _commit(self, shard: int, building: _Building) -> None:
        vectors = building.vectors()
        self.summary.embedded += len(building.measured)
        with ledger.transaction(self.ledger.sql):
            self.ledger.record(shard, building.outcomes, building.measured)
            if not building.measured:
                disk.clear_shard(self.gallery, shard)
                return
            with disk.new_shard(self.gallery, shard) as folder:
                self._write_items(folder, shard)
                for stem, rows in vectors.items():
                    self._write_vectors(folder, stem, rows)

    def _write_items(self, folder: Path, shard: int) -> None:
        from eyespot.gallery.facts import table_of

        disk.write_items(folder, table_of(self.ledger.rows_of(shard), self.ledger.columns()))

    def _write_vectors(self, folder: Path, stem: str, vectors: Vectors) -> None:
        """Vectors of a shard; a row without a finite one is written as zeros and named in the note."""
        good: Mask = np.logical_and(np.isfinite(vectors).all(axis=1), vectors.any(axis=1))  # (rows,)
        vectors = np.where(good[:, None], vectors, np.float32(0))
        if stem not in self.fingerprints:
            self.fingerprints[stem] = fingerprints(self.encoders[stem])
        note = disk.SpaceNote(self.encoders[stem].space, np.flatnonzero(~good).tolist(), self.fingerprints[stem])
        disk.write_vectors(folder, vectors, note)

    # -- facts and spaces of what is there already ----------------------------------------------------------

    def _refresh_facts(self) -> None:
        stale = self.ledger.stale_shards()
        for done, shard in enumerate(stale, 1):
            folder = disk.shard_path(self.gallery, shard)
            if folder.is_dir():
                self._write_items(folder, shard)
            self.ledger.refreshed(shard)
            self.options.progress("refreshing facts", done, len(stale))

    def _fill_spaces(self) -> None:
        """Vectors that a space lacks: of older shards, and of pictures that were out of reach when it was added."""
        for stem in self.encoders:
            for shard in self.ledger.shards():
                note = disk.read_note(disk.shard_path(self.gallery, shard), stem)
                if note is None or note.missing:
                    kept = list(self.ledger.rows_of(shard))
                    lacking = [row for row in (note.missing if note else range(len(kept))) if kept[row].paths]
                    self._fill(shard, stem, kept, lacking)

    def _fill(self, shard: int, stem: str, kept: Sequence[Kept], lacking: Sequence[int]) -> None:
        """Embed these rows from the first of their paths that still holds the picture; the others stay as they are."""
        encoder, folder = self.encoders[stem], disk.shard_path(self.gallery, shard)
        vectors = np.zeros((len(kept), encoder.space.dim), np.float32)  # (rows, dim)
        if disk.read_note(folder, stem):
            vectors = np.array(disk.map_vectors(folder, stem))
        planned = [planned for row in lacking for planned in self._planned_again(shard, kept[row])]
        row_of, batches = {kept[row].id: row for row in lacking}, _Batches(encoder)
        rows: list[int] = []
        with _Readers(None, {stem: encoder}, self.options.workers) as readers:
            for read in readers.read_all(planned, self.ledger.roots()):
                self.options.progress(f"adding {encoder.space.encoder}", self.summary.embedded + len(rows), 0)
                if (row := row_of.pop(read.id or "", None)) is not None:
                    rows.append(row)
                    batches.add(read.pixels[stem])
        if rows or not disk.read_note(folder, stem):
            vectors[rows] = batches.vectors()
            self._write_vectors(folder, stem, vectors)
        self.summary.embedded += len(rows)

    def _planned_again(self, shard: int, kept: Kept) -> list[Planned]:
        return [
            Planned(shard, root, self.ledger.seen(root, path))
            for root, path in zip(kept.roots, kept.paths, strict=True)
        ]


class _Readers:
    """Threads that read, hash and decode pictures ahead of the encoder, in order and in bounded memory."""

    def __init__(self, gallery: Path | None, encoders: Mapping[str, Encoder], workers: int) -> None:
        self.encoders = encoders
        self.window = 2 * max((encoder.batch for encoder in encoders.values()), default=1) + 2 * workers
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="eyespot-read")
        self.known = None if gallery is None else _Known(gallery / "ledger.sqlite")

    def __enter__(self) -> _Readers:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)
        if self.known:
            self.known.close()

    def read_all(self, planned: Iterable[Planned], roots: Mapping[int, Root]) -> Iterator[_Read]:
        """Every planned picture, read, in the order of the plan."""
        return _ahead(self.pool, lambda one: self._read(one, roots[one.root]), planned, self.window)

    def _read(self, planned: Planned, root: Root) -> _Read:
        try:
            data = read_bytes(root, planned.seen)
            id = id_of(data)
            if self.known and self.known(id):
                return _Read(planned, id)
            return self._decode(planned, id, data)
        except BadPicture as bad:
            return _Read(planned, failed=bad.reason)
        except OSError as error:
            return _Read(planned, failed=(error.strerror or str(error)).lower(), out_of_reach=True)
        except MemoryError:
            return _Read(planned, failed="too large for this machine's memory", out_of_reach=True)

    def _decode(self, planned: Planned, id: str, data: bytes) -> _Read:
        sides = [encoder.min_side for encoder in self.encoders.values()]
        side = None if None in sides else max((side for side in sides if side), default=None)
        picture = open_picture(data, side)
        pixels = {stem: encoder.read(picture.image) for stem, encoder in self.encoders.items()}
        facts = {name: value for name, value in asdict(picture.facts).items() if value is not None}
        if "taken" in facts:
            facts["taken"] = facts["taken"].isoformat()
        return _Read(planned, id, measured=facts, pixels=pixels)


class _Known:
    """Whether a picture of these bytes has a row already, asked from many threads."""

    def __init__(self, path: Path) -> None:
        self.sql, self.turn = ledger.connect(path), threading.Lock()

    def __call__(self, id: str) -> bool:
        with self.turn:
            return self.sql.execute("SELECT 1 FROM items WHERE id = ?", (id,)).fetchone() is not None

    def close(self) -> None:
        self.sql.close()


def _ahead(pool: ThreadPoolExecutor, work: Callable[[A], B], items: Iterable[A], window: int) -> Iterator[B]:
    """`map` over a pool that never runs more than `window` items ahead of its reader."""
    waiting: deque[Future[B]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) >= window:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _by_shard(reads: Iterator[_Read]) -> Iterator[tuple[int, Iterator[_Read]]]:
    return groupby(reads, key=lambda read: read.planned.shard)


class _Batches:
    """Pixels of one encoder, embedded a full batch at a time."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.waiting: list[Pixels] = []
        self.done: list[Vectors] = []

    def add(self, pixels: Pixels) -> None:
        self.waiting.append(pixels)
        if len(self.waiting) == self.encoder.batch:
            self._embed()

    def vectors(self) -> Vectors:
        """All of them, (n, dim)."""
        if self.waiting:
            self._embed()
        return np.concatenate([np.zeros((0, self.encoder.space.dim), np.float32), *self.done])

    def _embed(self) -> None:
        self.done.append(self.encoder.encode_pixels(np.stack(self.waiting)))
        self.waiting.clear()


class _Building:
    """A shard in the making: outcomes of all its pictures, and rows for those that are good and new."""

    def __init__(self, encoders: Mapping[str, Encoder]) -> None:
        self.outcomes: list[Outcome] = []
        self.measured: dict[str, dict[str, Any]] = {}
        self.batches = {stem: _Batches(encoder) for stem, encoder in encoders.items()}

    def add(self, read: _Read, is_known: Callable[[str], bool]) -> None:
        self.outcomes.append(Outcome(read.planned, read.id, read.failed, read.out_of_reach))
        # Asked again here: a shard that was committed since the picture was read ahead may hold the same bytes.
        if read.id is None or not read.measured or read.id in self.measured or is_known(read.id):
            return
        self.measured[read.id] = read.measured
        for stem, batches in self.batches.items():
            batches.add(read.pixels[stem])

    def vectors(self) -> dict[str, Vectors]:
        return {stem: batches.vectors() for stem, batches in self.batches.items()}
