"""The workers that read, decode and embed pictures while a gallery is indexed: threads of this process, or Ray."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from eyespot.gallery.groups.hashes import signature
from eyespot.gallery.index_db import MEASURED, PlannedPicture
from eyespot.gallery.photos.found import MAX_FILE_BYTES
from eyespot.gallery.photos.memory import MemoryBudget
from eyespot.gallery.photos.pictures import BadPicture, TooLarge, id_of, picture_in_memory
from eyespot.gallery.photos.places import Root, read_bytes
from eyespot.parallel import ordered_map
from eyespot.storage import sqlite
from eyespot.types import Encoder, Pixels, Vectors

_FILES = MemoryBudget()  # the bytes of all files that threads hold: as many as the largest file may have
Later = Callable[[], Vectors]  # vectors (n, dim) that may still be in the making


@dataclass(frozen=True)
class ReadPicture:
    """One picture as whoever read it hands it over; `pixels` is empty for one that is known or bad."""

    planned: PlannedPicture
    id: str | None = None
    failed: str | None = None
    out_of_reach: bool = False
    measured: dict[str, Any] = field(default_factory=dict)
    hashes: tuple[int, ...] = ()  # what copies of it are known by: `groups/hashes.py`
    pixels: dict[str, Pixels] = field(default_factory=dict)  # by space; what the `embed` of the same reader takes


class Reader(Protocol):
    """Who reads pictures and embeds them, by encoders that are given by the stems of their spaces."""

    def __enter__(self) -> Reader: ...

    def __exit__(self, *_: object) -> None: ...

    def read_all(self, planned: Iterable[PlannedPicture], roots: Mapping[int, Root]) -> Iterator[ReadPicture]:
        """Every planned picture, read, in the order of the plan and in bounded memory."""
        ...

    def embed(self, stem: str, pixels: Sequence[Pixels]) -> Later:
        """The vectors of one batch; batches of a space are asked for in order."""
        ...


class ThreadedReader:
    """Threads that read, hash and decode pictures ahead of the encoder, in order and in bounded memory."""

    def __init__(self, gallery: Path | None, encoders: Mapping[str, Encoder], workers: int) -> None:
        self.encoders = encoders
        self.window = 2 * max((encoder.batch for encoder in encoders.values()), default=1) + 2 * workers
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="eyespot-read")
        self.sql = None if gallery is None else sqlite.connect(gallery / "ledger.sqlite")
        self.turn = threading.Lock()  # many threads ask through one connection

    def __enter__(self) -> ThreadedReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)
        if self.sql:
            self.sql.close()

    def read_all(self, planned: Iterable[PlannedPicture], roots: Mapping[int, Root]) -> Iterator[ReadPicture]:
        """Every planned picture, read, in the order of the plan."""
        return ordered_map(
            lambda picture: read_one(picture, roots[picture.root], self.encoders, self._is_measured),
            planned,
            self.pool,
            self.window,
        )

    def _is_measured(self, id: str) -> bool | None:
        """Whether the row of a picture of these bytes says what was measured of it; None if it has no row."""
        with self.turn:
            row = None if self.sql is None else self.sql.execute(MEASURED, (id,)).fetchone()
        return None if row is None else bool(row[0])

    def embed(self, stem: str, pixels: Sequence[Pixels]) -> Later:
        """The vectors of one batch, made now."""
        vectors = self.encoders[stem].encode_pixels(np.stack(pixels))
        return lambda: vectors


def read_one(
    planned: PlannedPicture,
    root: Root,
    encoders: Mapping[str, Encoder],
    is_measured: Callable[[str], bool | None] = lambda _id: None,
) -> ReadPicture:
    """One planned picture as all encoders take it; of one that has a row only its id, and what was not measured yet."""
    try:
        with _FILES.reserve(planned.seen.size, MAX_FILE_BYTES):
            data = read_bytes(root, planned.seen)
            id = id_of(data)
            measured, read = is_measured(id), ReadPicture(planned, id)
            if measured:
                return read
            encoders = encoders if measured is None else {}
            sides = [encoder.min_side for encoder in encoders.values()] or [1]
            side = None if None in sides else max((side for side in sides if side), default=None)
            with picture_in_memory(data, side) as picture:
                pixels = {stem: encoder.read(picture.image) for stem, encoder in encoders.items()}
                hashes = signature(picture.image)
                picture.image.close()  # here, while its memory is counted
            facts = {name: value for name, value in asdict(picture.facts).items() if value is not None}
            if "taken" in facts:
                facts["taken"] = facts["taken"].isoformat()
            return replace(read, measured=facts, hashes=hashes, pixels=pixels)
    except BadPicture as bad:
        return ReadPicture(planned, failed=bad.reason, out_of_reach=isinstance(bad, TooLarge))
    except OSError as error:
        return ReadPicture(planned, failed=(error.strerror or str(error)).lower(), out_of_reach=True)
    except MemoryError:
        return ReadPicture(planned, failed="too large for this machine's memory", out_of_reach=True)
