"""Small pictures of a gallery's photos, each made once and kept in a folder of folders.

A file is shown only if it is the one that was indexed: its bytes have the digest that is its id. What has another kind
of id (imported rows) must lie within its root, links followed. So no path leads out of the gallery's roots.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from threading import BoundedSemaphore, Lock

from eyespot.photos.pictures import BadPicture, thumbnail
from eyespot.photos.sources import read_again
from eyespot.photos.videos.facts import id_at
from eyespot.storage.atomic import write_whole
from eyespot.storage.systems import is_inside
from eyespot.types import EyespotError
from eyespot.web._problems import Problem
from eyespot.web.found.snapshot import PicturePlace, Snapshot

SIZES = (128, 200, 320, 640, 1600)  # pixels of the longer side
SMALL, SMALL_QUALITY = 320, 72  # up to this size they are for grids, of which a page has sixty and more
AT_ONCE = 4  # pictures being decoded; more would only fill the memory


class Thumbnails:
    """A folder of JPEGs by size and id."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._decoding, self._making = BoundedSemaphore(AT_ONCE), [Lock() for _ in range(64)]

    def jpeg(self, snapshot: Snapshot, id: str, size: int) -> bytes:
        """A photo at most `size` pixels wide and high; `Problem` where there is none to show."""
        row = snapshot.row_of(id)
        if row is None or size not in SIZES:
            raise Problem(404, "there is no such picture, or not in this size")
        place = self.place(id, size)
        with suppress(FileNotFoundError):
            return place.read_bytes()
        with self._making[hash(place) % len(self._making)]:  # whoever asks for the same meanwhile finds it made
            if place.exists():
                return place.read_bytes()
            places = snapshot.places(row)
            with self._decoding:
                made = _small(id, places, size)
            with suppress(OSError, EyespotError):  # a full disk costs time, not the picture
                place.parent.mkdir(parents=True, exist_ok=True)
                write_whole(place, lambda file: file.write(made))
            return made

    def place(self, id: str, size: int) -> Path:
        """Where a thumbnail lies."""
        key = key_of(id)
        return self.folder / str(size) / key[:2] / key[2:4] / f"{key}.jpg"


def key_of(id: str) -> str:
    """The id if it is a digest, else a digest of it: a file's name, whatever the id holds."""
    return id if is_digest(id) else blake2b(id.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def is_digest(id: str) -> bool:
    """Whether an id is the digest of its picture's bytes, and so names one content for ever."""
    return bool(re.fullmatch("[0-9a-f]{32}", id))


def _small(id: str, places: list[PicturePlace], size: int) -> bytes:
    for placed in places:
        with suppress(OSError, BadPicture):
            return thumbnail(bytes_of(id, placed), size, quality=SMALL_QUALITY if size <= SMALL else 85)
    raise Problem(404, "the picture is gone, or has changed since it was indexed; bring the gallery up to date")


def bytes_of(id: str, placed: PicturePlace) -> bytes:
    """The picture as it was indexed; OSError if it is not the picture that was indexed."""
    if not is_digest(id) and not _within(placed):
        raise OSError("outside of its root")
    data = read_again(placed.place)
    if is_digest(id) and id_at(placed.place, data) != id:
        raise OSError("another picture by now")
    return data


def _within(placed: PicturePlace) -> bool:
    base = placed.root.place if placed.root.kind in ("folder", "import") else os.path.dirname(placed.root.place)
    base = base if os.path.isdir(base) else os.path.dirname(base)
    real = os.path.realpath(placed.place)
    return "://" not in placed.place and is_inside(real, os.path.realpath(base))
