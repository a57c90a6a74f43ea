"""Files of a published gallery on their way into a local copy: several at once, each checked, in bytes.

Small files come whole, as many at once as the store likes. Of a large file the ranges come at once. What has come of it
stays after a kill and is not sent again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from threading import Lock

from eyespot.gallery.remote.manifest import File, mended
from eyespot.gallery.remote.stores import PIECE, Store
from eyespot.parallel import ordered_map
from eyespot.storage.atomic import put_file
from eyespot.storage.digests import BLAKE2B, file_blake2b
from eyespot.types import EyespotError, Progress

LARGE = 4 * PIECE  # bytes; a larger file comes in ranges
Item = tuple[Path, File]


class ByteProgress:
    """Progress in bytes, told by several threads."""

    def __init__(self, progress: Progress, done: int, total: int) -> None:
        self._progress, self._done, self._total, self._lock = progress, done, total, Lock()

    def add(self, size: int) -> None:
        """So many more bytes have come."""
        with self._lock:
            self._done += size

    def tell(self) -> None:
        """Show it; only the thread that fetches does, for a bar may raise where Ctrl-C was pressed."""
        self._progress("fetching", self._done, self._total)


class Downloads:
    """Brings files to their places, with the times that they were published with: codes and indexes compare those."""

    def __init__(self, store: Store, bar: ByteProgress) -> None:
        self.store, self.bar = store, bar

    def bring(self, items: Iterable[Item]) -> Iterator[Item]:
        """Each file once it is in place, small ones first; `EyespotError` for one that is not what was published."""
        items = list(items)
        small = [item for item in items if item[1].size <= LARGE or not self.store.ranges]
        for item in ordered_map(self._whole, small, self.store.transfers, 64):
            self.bar.tell()
            yield item
        for item in items:
            if item[1].size > LARGE and self.store.ranges:
                self._in_ranges(*item)
                yield item

    def _whole(self, item: Item) -> Item:
        place, file = item
        place.parent.mkdir(parents=True, exist_ok=True)
        if self.store.fs is None:
            part = part_of(place, file)
            self.store.bring(file.at, part, file.size)
            self.bar.add(file.size)
            sound = part.stat().st_size == file.size and file_blake2b(part) == file.digest
        else:
            digest, part = BLAKE2B(), place.with_name(f".{place.name}.part")
            with part.open("wb") as local:
                for piece in self.store.pieces(file.at, file.size):
                    local.write(piece)
                    digest.update(piece)
                    self.bar.add(len(piece))
            sound = digest.hexdigest() == file.digest
        if not sound:
            part.unlink()
            raise self._changed(file)
        _put(part, item)
        return item

    def _in_ranges(self, place: Path, file: File) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        part = part_of(place, file)
        if not (part.exists() and self._grown(part, file)):
            part.unlink(missing_ok=True)  # what had come of it was damaged, or nothing had
            if not self._grown(part, file):
                part.unlink(missing_ok=True)
                raise self._changed(file)
        _put(part, (place, file))

    def _grown(self, part: Path, file: File) -> bool:
        """Bring the rest of a file; whether it is what was published."""
        digest = BLAKE2B()
        with part.open("a+b") as local:
            start = min(local.tell(), file.size) // PIECE * PIECE
            local.truncate(start)
            local.seek(0)
            for _ in range(0, start, PIECE):
                digest.update(local.read(PIECE))
            self.bar.add(start)
            starts = range(start, file.size, PIECE)
            read = partial(self._range, file)
            for piece in ordered_map(read, starts, self.store.transfers, 2 * self.store.transfers):
                local.write(piece)
                digest.update(piece)
                self.bar.add(len(piece))
                self.bar.tell()
        if digest.hexdigest() == file.digest:
            return True
        self.bar.add(-file.size)
        return False

    def _range(self, file: File, start: int) -> bytes:
        stop = min(start + PIECE, file.size)
        piece = self.store.range(file.at, start, stop)
        if len(piece) != stop - start:
            raise self._changed(file)
        return piece

    def _changed(self, file: File) -> EyespotError:
        return EyespotError(f"{self.store.shown}/{file.at} is not what was published; {mended(self.store.shown)}")


def part_of(place: Path, file: File) -> Path:
    """Where a large file grows: a name of its content, so that no other file is continued."""
    return place.with_name(f".{place.name}.{file.digest[:12]}.part")


def _put(part: Path, item: Item) -> None:
    """Give a file its time and its name, once its bytes are on the disk. A name that a power cut takes comes again."""
    place, file = item
    os.utime(part, ns=(file.mtime_ns, file.mtime_ns))
    put_file(part, place)
