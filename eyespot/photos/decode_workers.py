"""The workers that read, decode and embed pictures while a gallery is indexed: threads of this process; others are
processes (`decode_processes.py`) and workers on Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from eyespot.parallel import ordered_map
from eyespot.photos.found import MAX_FILE_BYTES, KnownPictures, PlannedPicture, Seen
from eyespot.photos.hashes import COLUMNS, signature
from eyespot.photos.memory import MemoryBudget
from eyespot.photos.pictures import BadPicture, TooLarge, id_of, picture_in_memory
from eyespot.photos.places import Root, full_path, read_bytes
from eyespot.photos.videos.addresses import VIDEO, frame_of, frame_path, place_of_frame
from eyespot.types import Encoder, PixelReader, Pixels, Vectors

if TYPE_CHECKING:
    from PIL.Image import Image

_FILES = MemoryBudget()  # the bytes of all files that threads hold: as many as the largest file may have
Readers: TypeAlias = Mapping[str, PixelReader]
Later = Callable[[], Vectors]  # vectors (n, dim) that may still be in the making


@dataclass(frozen=True)
class ReadPicture:
    """One picture as whoever read it hands it over; `pixels` is empty for one that is known or bad."""

    planned: PlannedPicture
    id: str | None = None
    failed: str | None = None
    out_of_reach: bool = False
    measured: dict[str, Any] = field(default_factory=dict)
    hashes: tuple[int, ...] = ()  # what copies of it are known by: `hashes.py`
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


OpenKnown: TypeAlias = Callable[[], KnownPictures]


class ThreadedReader:
    """Threads that read, hash and decode pictures ahead of the encoder, in order and in bounded memory.

    known: opens what is known already.
    """

    def __init__(self, known: OpenKnown, encoders: Mapping[str, Encoder], workers: int) -> None:
        self.encoders = encoders
        self.window = 2 * max((encoder.batch for encoder in encoders.values()), default=1) + 2 * workers
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="eyespot-read")
        self.known = known()

    def __enter__(self) -> ThreadedReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)
        self.known.close()

    def read_all(self, planned: Iterable[PlannedPicture], roots: Mapping[int, Root]) -> Iterator[ReadPicture]:
        """Every planned picture, read, in the order of the plan; a video when its turn comes, frame by frame."""
        read = partial(read_planned, readers=self.encoders, known=self.known)
        every = ordered_map(lambda one: read(one, roots[one.root]), planned, self.pool, self.window)
        return chain.from_iterable(every)

    def embed(self, stem: str, pixels: Sequence[Pixels]) -> Later:
        """The vectors of one batch, made now."""
        vectors = self.encoders[stem].encode_pixels(np.stack(pixels))
        return lambda: vectors


def read_planned(planned: PlannedPicture, root: Root, readers: Readers, known: KnownPictures) -> Iterable[ReadPicture]:
    """What a planned file gives: a picture, or the frames of a video and then the video, read as they are taken."""
    if planned.seen.offset > VIDEO:
        return [read_one(planned, root, readers, known)]
    if planned.seen.offset == VIDEO:
        return _read_video(planned, root, readers, known)
    return [_read_frame(planned, root, readers, known)]


def read_one(planned: PlannedPicture, root: Root, readers: Readers, known: KnownPictures) -> ReadPicture:
    """One planned picture as all models take it; of one that has a row only its id, and what was not measured yet."""
    try:
        with _FILES.reserve(planned.seen.size, MAX_FILE_BYTES):
            data = read_bytes(root, planned.seen)
            id = id_of(data)
            measured, read = known.is_measured(id), ReadPicture(planned, id)
            if measured:
                return read
            readers = readers if measured is None else {}
            sides = [reader.min_side for reader in readers.values()] or [1]
            side = None if None in sides else max((side for side in sides if side), default=None)
            with picture_in_memory(data, side) as picture:
                pixels = _pixels(picture.image, readers)
                hashes = signature(picture.image)
                picture.image.close()  # here, while its memory is counted
            return replace(read, measured=_stored(picture.facts), hashes=hashes, pixels=pixels)
    except (BadPicture, OSError, MemoryError) as error:
        return _not_read(planned, error)


def _not_read(planned: PlannedPicture, error: Exception) -> ReadPicture:
    if isinstance(error, BadPicture):
        return ReadPicture(planned, failed=error.reason, out_of_reach=isinstance(error, TooLarge))
    if isinstance(error, OSError):
        return ReadPicture(planned, failed=(error.strerror or str(error)).lower(), out_of_reach=True)
    return ReadPicture(planned, failed="too large for this machine's memory", out_of_reach=True)


def _stored(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts as the ledger holds them."""
    known = {name: value for name, value in facts.items() if value is not None}
    return known | ({"taken": known["taken"].isoformat()} if "taken" in known else {})


# -- videos -------------------------------------------------------------------------------------------------


def _read_video(planned: PlannedPicture, root: Root, readers: Readers, known: KnownPictures) -> Iterator[ReadPicture]:
    """A frame of each shot, and then the video itself with what went wrong in it; of a known one only the ids."""
    from eyespot.photos.videos.decoding import frame_id, open_video, video_id
    from eyespot.photos.videos.shots import shots

    place, (path, size, mtime, *_) = full_path(root, planned.seen.path), planned.seen
    try:
        id = video_id(place)
        for fragment, at, frame in (frames := known.frames(id)):
            yield ReadPicture(planned._replace(seen=Seen(path + fragment, size, mtime, at)), frame)
        if frames:
            yield ReadPicture(planned, id)
            return
        with open_video(place) as video:
            for sample in shots(video.samples()):
                seen = Seen(frame_path(path, sample.ms), size, mtime, place_of_frame(sample.ms))
                facts = _stored(video.frame_facts(sample, id))
                pixels = _pixels(sample.picture(), readers)
                read = ReadPicture(planned._replace(seen=seen), frame_id(id, sample.ms), measured=facts, pixels=pixels)
                yield replace(read, hashes=(0,) * COLUMNS)  # frames are grouped by their video, and are not copies
            yield ReadPicture(planned, id, failed=video.fault)
    except (BadPicture, OSError, MemoryError) as error:
        yield _not_read(planned, error)


def _read_frame(planned: PlannedPicture, root: Root, readers: Readers, known: KnownPictures) -> ReadPicture:
    """A frame by its time: once more, or because a list names it."""
    from eyespot.photos.videos.decoding import frame_id, open_video, video_id

    frame = frame_of(full_path(root, planned.seen.path))
    try:
        if frame is None:
            raise BadPicture("no frame of a video")
        video = video_id(frame.video)
        read = ReadPicture(planned, frame_id(video, frame.ms), hashes=(0,) * COLUMNS)
        if known.is_measured(read.id or ""):
            return read
        with open_video(frame.video) as opened:
            sample = opened.at(frame.ms)
            facts = _stored(opened.frame_facts(sample, video))
            return replace(read, measured=facts, pixels=_pixels(sample.picture(), readers))
    except (BadPicture, OSError, MemoryError) as error:
        return _not_read(planned, error)


def _pixels(picture: Image, readers: Readers) -> dict[str, Pixels]:
    return {stem: reader.read(picture) for stem, reader in readers.items()}
