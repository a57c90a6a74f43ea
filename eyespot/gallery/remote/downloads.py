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
        small = [item for item in items if not self._is_large(item[1])]
        for item in ordered_map(self._brought, small, self.store.transfers, 64):
            self.bar.tell()
            yield item
        yield from (self._brought(item) for item in items if self._is_large(item[1]))

    def _is_large(self, file: File) -> bool:
        return self.store.ranges and file.size > LARGE

    def _brought(self, item: Item) -> Item:
        place, file = item
        place.parent.mkdir(parents=True, exist_ok=True)
        part = part_of(place, file)
        for _ in range(1 + part.exists()):  # what had come of it may be damaged
            if (self._in_ranges if self._is_large(file) else self._whole)(part, file):
                os.utime(part, ns=(file.mtime_ns, file.mtime_ns))
                put_file(part, place)  # a name that a power cut takes comes again
                return item
            part.unlink()
            self.bar.add(-file.size)
        raise EyespotError(f"{self.store.shown}/{file.at} is not what was published; {mended(self.store.shown)}")

    def _whole(self, part: Path, file: File) -> bool:
        """Bring a file; whether it is what was published. A web server goes on where it was cut."""
        came = 0

        def tell(_unit: str, done: int, _total: int) -> None:
            nonlocal came
            self.bar.add(done - came)
            came = done

        if self.store.fs is None:
            self.store.bring(file.at, part, file.size, tell)
        else:
            with part.open("wb") as local:
                for piece in self.store.pieces(file.at, file.size):
                    local.write(piece)
                    tell("", came + len(piece), file.size)
        tell("", file.size, file.size)
        return file_blake2b(part) == file.digest

    def _in_ranges(self, part: Path, file: File) -> bool:
        """Bring the rest of a large file; whether it is what was published."""
        digest = BLAKE2B()
        with part.open("a+b") as local:
            start = min(local.tell(), file.size) // PIECE * PIECE
            local.truncate(start)
            local.seek(0)
            for _ in range(0, start, PIECE):
                digest.update(local.read(PIECE))
            self.bar.add(start)
            read, starts = partial(self._range, file), range(start, file.size, PIECE)
            for piece in ordered_map(read, starts, self.store.transfers, 2 * self.store.transfers):
                if not piece:  # the list of files states more than there is
                    return False
                local.write(piece)
                digest.update(piece)
                self.bar.add(len(piece))
                self.bar.tell()
        return digest.hexdigest() == file.digest

    def _range(self, file: File, start: int) -> bytes:
        return self.store.range(file.at, start, min(start + PIECE, file.size))


def part_of(place: Path, file: File) -> Path:
    """Where a file grows: a name of its content, so that no other file is continued."""
    return place.with_name(f".{place.name}.{file.digest[:12]}.part")
