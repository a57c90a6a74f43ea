"""Frames of a video by FFmpeg, through PyAV (extra [video]): samples of all of it, and the one at a time.

A file is opened as bytes and by a list of formats: a playlist that calls itself `clip.mp4` would make FFmpeg read other
files and addresses. How much is decoded is bounded by pixels, not by a clock, so that every run gives
the same frames.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from functools import cached_property, lru_cache
from io import BytesIO
from itertools import chain
from typing import Any, BinaryIO

from eyespot.photos.pictures import BadPicture, memory_for
from eyespot.photos.videos.addresses import LATEST, clock, frame_path
from eyespot.photos.videos.metadata import movie_header, video_facts
from eyespot.photos.videos.shots import VideoSample

MOST_FRAMES = 300  # samples of a video: one a second of five minutes, fewer for each second of a longer one
STEP = 1000  # milliseconds between two samples, at least
MOST_PIXELS = 36_000_000  # of a frame: 8K, and DCI's 8K
_LIMIT = f"{MOST_PIXELS // 1_000_000} megapixels a frame"
DENSE_PIXELS = 20_000_000_000  # that are decoded between key frames: 10,000 frames of 1080p
BYTES_A_PIXEL = 60  # of a decoder with its frames of reference
_WAITING, _PACKETS = 64 << 20, 1000  # bytes and packets from a key frame on that are held
_WHOLE, _PIECE, _PIECES = 64 << 20, 1 << 20, 32  # bytes of a file that are all digested, and of a larger one
_FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,asf,flv,ogg,mxf"
# What PyAV raises over damage, besides the errors of FFmpeg; an OSError is the disk's own
_DAMAGE = (ValueError, LookupError, ArithmeticError, RuntimeError)
_SHARES = 0.9  # of its length that a whole video gives frames for


@contextmanager
def open_video(place: str) -> Iterator[Video]:
    """A video to take frames from. Raises BadPicture for what is none or too large, OSError if it is gone."""
    import av

    with ExitStack() as opened:
        file = opened.enter_context(open_regular(place))
        if not os.fstat(file.fileno()).st_size:
            raise BadPicture("empty file")
        try:
            options = {"format_whitelist": _FORMATS, "max_pixels": str(MOST_PIXELS)}
            container = opened.enter_context(av.open(file, options=options, metadata_errors="replace"))
            video = Video(container, file)
        except (av.error.FFmpegError, *_DAMAGE) as error:
            raise BadPicture(_unreadable(file)) from error
        opened.enter_context(memory_for(video.size[0] * video.size[1] * BYTES_A_PIXEL, video.size))
        yield video


class Video:
    """An open video. `fault` is what went wrong in the midst of it, None as long as nothing did."""

    def __init__(self, container: Any, file: BinaryIO) -> None:
        self.container, self.file = container, file
        streams = [one for one in container.streams.video if "attached_pic" not in str(one.disposition)]
        if not streams:
            raise BadPicture("sound without a picture" if container.streams.audio else "no video in it")
        self.stream = streams[0]
        self.stream.thread_type = "SLICE"  # with threads for frames, damaged VP9 crashes the process in FFmpeg 8.1
        coder = self.stream.codec_context
        if coder is None:
            raise BadPicture("a codec that FFmpeg does not know")
        self.size: tuple[int, int] = (coder.width, coder.height)
        if self.size[0] * self.size[1] > MOST_PIXELS:
            raise BadPicture(f"{self.size[0]} x {self.size[1]} pixels, over the limit of {_LIMIT}")
        if self.size[0] * self.size[1] == 0:
            raise BadPicture(_unreadable(file))
        self.fault: str | None = None
        self._start = self.stream.start_time or 0
        self._left = DENSE_PIXELS

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What its metadata says, by columns."""
        at = self.file.tell()  # where FFmpeg reads on
        self.file.seek(0)
        try:
            begun = movie_header(self.file)[1]
        finally:
            self.file.seek(at)
        return video_facts({**self.stream.metadata, **self.container.metadata}, begun)

    @cached_property
    def length(self) -> int | None:
        """Milliseconds; None if it does not say."""
        if self.container.duration and self.container.duration > 0:
            return int(min(self.container.duration // 1000, LATEST - 1))
        return None

    def frame_facts(self, sample: VideoSample, id: str) -> dict[str, Any]:
        """What is known of a frame of this video, which has an id: facts as of a picture, and those of a video."""
        facts = dict(self.facts)
        with suppress(OverflowError, KeyError):
            facts["taken"] = (facts["taken"] + timedelta(milliseconds=sample.ms)).replace(microsecond=0)
        width, height = sample.size
        own = {"video_id": id, "video_time": sample.ms / 1000, "video_length": self.length and self.length / 1000}
        return facts | {"width": width, "height": height, "format": "video"} | own

    # -- samples --------------------------------------------------------------------------------------------

    def samples(self) -> Iterator[VideoSample]:
        """Frames at least a second apart over the whole video; raises BadPicture where there is none."""
        latest = -1
        few = self.length is None or self.length <= MOST_FRAMES * STEP
        for count, sample in enumerate(self._in_turn() if few else self._far_apart(self.length or 0)):
            if count == MOST_FRAMES or sample.ms >= LATEST:
                break
            latest = sample.ms
            yield sample
        if latest < 0:
            raise BadPicture(_unreadable(self.file, self.fault))
        if self.length and self._last < min(_SHARES * self.length, self.length - 2 * STEP - self.length / MOST_FRAMES):
            self.fault = f"cut short: of {clock(self.length)} only {clock(self._last)} can be read"

    _last = 0  # milliseconds of the last packet

    def _in_turn(self) -> Iterator[VideoSample]:
        """One frame a second; where key frames come as often, no other is decoded."""
        waiting: list[Any] = []  # packets from a key frame on, as long as the next one may come soon
        dense = False
        for packet in self._packets():
            if packet.is_keyframe:
                yield from self._due_of(self._key(waiting), end=True)
                waiting, dense = [packet], False
            elif dense and self._left > 0:
                yield from self._due_of([packet])
            elif waiting and len(waiting) < _PACKETS and sum(one.size for one in waiting) < _WAITING:
                waiting.append(packet)
                if self._ms(packet.pts) - self._ms(waiting[0].pts) > 2 * STEP and self._left > 0:
                    yield from self._due_of(waiting)
                    waiting, dense = [], True
        yield from self._due_of(self._key(waiting), end=True)

    def _key(self, packets: list[Any]) -> list[Any]:
        """The first packet, if its frame is due."""
        return [packet for packet in packets[:1] if self._ms(packet.pts) >= self._due]

    _due = 0  # milliseconds from which on the next sample is taken

    def _due_of(self, packets: list[Any], end: bool = False) -> Iterator[VideoSample]:
        """The samples among the frames of some packets."""
        for sample in self._decoded(packets, end):
            if sample.ms >= self._due:
                self._due = sample.ms + STEP
                yield sample

    def _far_apart(self, length: int) -> Iterator[VideoSample]:
        """The key frames before a number of times, evenly spaced."""
        latest = -1
        for at in range(0, length, max(length // MOST_FRAMES, 1)):
            if not self._seek(at):
                return
            key = next((packet for packet in self._packets() if packet.is_keyframe), None)
            if key is not None and self._ms(key.pts) > latest:
                for sample in self._decoded([key], end=True):
                    latest = max(latest, sample.ms)
                    yield sample

    def at(self, ms: int) -> VideoSample:
        """The frame at exactly this time; BadPicture if there is none."""
        # Streams for broadcast may be searched past what is searched for
        for start in dict.fromkeys((ms, max(0, ms - 10 * STEP), -STEP)):
            if self._seek(start):
                parts = chain(([packet] for packet in self._packets()), [None])  # and what the decoder still holds
                samples = (one for part in parts for one in self._decoded(part or [], end=part is None))
                found = next((sample for sample in samples if sample.ms >= ms), None)
                if found is not None and found.ms == ms:
                    return found
        raise BadPicture(self.fault or "changed since it was indexed; run eyespot index first")

    # -- FFmpeg ---------------------------------------------------------------------------------------------

    def _ms(self, pts: int | None) -> int:
        """A time of the stream in milliseconds from its start."""
        return 0 if pts is None else max(0, round((pts - self._start) * self.stream.time_base * 1000))

    def _packets(self) -> Iterator[Any]:
        import av

        try:
            for packet in self.container.demux(self.stream):
                if packet.pts is None:
                    packet.pts = packet.dts  # as AVI has it
                if packet.size and packet.pts is not None:
                    self._last = max(self._last, self._ms(packet.pts))
                    yield packet
        except (av.error.FFmpegError, *_DAMAGE) as error:  # a LookupError: of streams that damage announces
            self.fault = f"damaged: {_message(error)}"

    def _decoded(self, packets: list[Any], end: bool = False) -> Iterator[VideoSample]:
        """The sound frames of some packets; at their end also those that the decoder still holds."""
        import av

        coder, aspect = self.stream.codec_context, float(self.stream.sample_aspect_ratio or 1)  # of a pixel
        aspect = aspect if 0.25 <= aspect <= 4 else 1.0
        for packet in [*packets, None] if end else packets:
            try:
                frames = coder.decode(packet)
            except av.error.EOFError:
                frames = []
            except (av.error.FFmpegError, *_DAMAGE, MemoryError) as error:
                self.fault = f"damaged: {_message(error)}"
                continue
            for frame in frames:
                self._left -= frame.width * frame.height
                if frame.pts is not None and not frame.is_corrupt and frame.width * frame.height <= MOST_PIXELS:
                    yield VideoSample(self._ms(frame.pts), frame, aspect)
        if end:
            coder.flush_buffers()

    def _seek(self, ms: int) -> bool:
        import av

        try:
            self.container.seek(int(ms / 1000 / self.stream.time_base) + self._start, stream=self.stream)
            self.stream.codec_context.flush_buffers()
        except (av.error.FFmpegError, *_DAMAGE) as error:
            self.fault = f"damaged: {_message(error)}"
            return False
        return True


def _message(error: Exception) -> str:
    text = getattr(error, "strerror", None) or "its frames cannot be decoded"  # in FFmpeg's words, not in Python's
    return " ".join(str(text).lower().split())[:100]


def _unreadable(file: BinaryIO, fault: str | None = None) -> str:
    """Why nothing of a file can be decoded, as far as its first and last bytes say."""
    size = os.fstat(file.fileno()).st_size
    ends = b""
    for start in (0, max(0, size - _PIECE)):
        file.seek(start)
        ends += file.read(_PIECE)
    if ends[4:8] == b"ftyp" and (b"encv" in ends or b"pssh" in ends):
        return "encrypted"
    return fault or f"damaged, cut short or over {_LIMIT}: FFmpeg finds no video in it"


# -- files --------------------------------------------------------------------------------------------------


@contextmanager
def open_regular(place: str) -> Iterator[BinaryIO]:
    """A file to read; OSError for a pipe or device."""
    if not stat.S_ISREG(os.stat(place).st_mode):
        raise OSError("not a regular file")
    with open(place, "rb") as file:
        yield file


def video_id(place: str) -> str:
    """The id of a video: 32 hex digits of all bytes of its file, of one above 64 MiB of its size and 64 MiB of it."""
    status = os.stat(place)
    return _digest(place, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4096)
def _digest(place: str, mtime: int, size: int) -> str:
    """Of a file as it is now, made once while it stays so."""
    digest = hashlib.sha256()
    with open_regular(place) as file:
        if size <= _WHOLE:
            digest.update(file.read(_WHOLE))
        else:
            digest.update(b"%d " % size)
            ends = (_WHOLE - _PIECE * _PIECES) // 2
            places = [(0, ends), (size - ends, ends)]
            places += [(ends + (size - 2 * ends - _PIECE) * at // (_PIECES - 1), _PIECE) for at in range(_PIECES)]
            for start, count in places:
                file.seek(start)
                digest.update(file.read(count))
    return digest.hexdigest()[:32]


def frame_id(video: str, ms: int) -> str:
    """The id of a frame of a video with this id."""
    return hashlib.sha256(frame_path(video, ms).encode()).hexdigest()[:32]


def frame_bytes(place: str, ms: int) -> bytes:
    """The frame at a time as a JPEG, upright; OSError if it is gone."""
    made = BytesIO()
    try:
        with open_video(place) as video:
            video.at(ms).picture().save(made, "JPEG", quality=95, subsampling=0)
    except BadPicture as bad:
        raise OSError(bad.reason) from bad
    return made.getvalue()
