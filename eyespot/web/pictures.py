"""Small pictures of a gallery's photos, each made once and kept in a folder of folders; pictures to search with.

A file is shown only if it is the one that was indexed: its bytes have the digest that is its id. What has another kind
of id (imported rows) must lie within its root, links followed. So no path leads out of the gallery's roots.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from threading import BoundedSemaphore, Lock

from fastapi.responses import FileResponse

from eyespot.photos.pictures import BadPicture, id_of, thumbnail
from eyespot.photos.places import id_at, read_again
from eyespot.photos.videos.addresses import frame_of
from eyespot.storage.atomic import trouble, write_whole
from eyespot.storage.systems import is_inside
from eyespot.types import EyespotError
from eyespot.web._problems import Problem
from eyespot.web._recent import RecentAnswers
from eyespot.web.found.snapshot import PicturePlace, Snapshot

SIZES = (128, 200, 320, 640, 1600)  # pixels of the longer side
SMALL, SMALL_QUALITY = 320, 65  # up to this size they are for grids, of which a page has sixty and more
GONE = "the picture is gone, or has changed since it was indexed; bring the gallery up to date"
ZIPS = 64  # whose lengths are remembered
AT_ONCE = 4  # pictures being decoded; more would only fill the memory


class Thumbnails:
    """A folder of JPEGs by size and id."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._decoding, self._making = BoundedSemaphore(AT_ONCE), [Lock() for _ in range(64)]

    def jpeg(self, snapshot: Snapshot, id: str, size: int, *, row: int | None = None) -> bytes:
        """A photo at most `size` pixels wide and high; `Problem` where there is none to show.

        `row`: where the snapshot has it (-1: nowhere), if that is known.
        """
        row = snapshot.row_of(id) if row is None else row
        if row is None or row < 0 or size not in SIZES:
            raise Problem(404, "there is no such picture, or not in this size")
        place = self.place(id, size)
        with suppress(FileNotFoundError):
            return place.read_bytes()
        with self._making[hash(place) % len(self._making)]:  # whoever asks for the same meanwhile finds it made
            if place.exists():
                return place.read_bytes()
            with self._decoding:
                _, data = read_original(id, snapshot.places(row))
                try:
                    made = thumbnail(data, size, quality=SMALL_QUALITY if size <= SMALL else 85)
                except BadPicture:
                    raise Problem(404, GONE) from None
            with suppress(OSError, EyespotError):  # a full disk costs time, not the picture
                place.parent.mkdir(parents=True, exist_ok=True)
                write_whole(place, lambda file: file.write(made))
            return made

    def place(self, id: str, size: int) -> Path:
        """Where a thumbnail lies."""
        # The id if it is a digest, else a digest of it: a file's name, whatever the id holds
        key = id if is_digest(id) else blake2b(id.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
        return self.folder / str(size) / key[:2] / key[2:4] / f"{key}.jpg"


class CacheFolder:
    """A folder for thumbnails and uploads; a passing one where it may not be written. Made when first needed."""

    def __init__(self, place: Path) -> None:
        self._place, self.lengths = place, RecentAnswers[int](ZIPS)

    @cached_property
    def path(self) -> Path:
        """The folder."""
        with suppress(OSError):
            self._place.mkdir(parents=True, exist_ok=True)
            if os.access(self._place, os.W_OK):
                return self._place
        self._temporary = tempfile.TemporaryDirectory(prefix="eyespot-web-")
        return Path(self._temporary.name)

    @property
    def uploads(self) -> Path:
        """Where uploaded pictures lie."""
        return self.path / "pictures"

    @cached_property
    def thumbnails(self) -> Thumbnails:
        """The small pictures."""
        return Thumbnails(self.path / "thumbnails")


def is_digest(id: str) -> bool:
    """Whether an id is the digest of its picture's bytes, and so names one content for ever."""
    return bool(re.fullmatch("[0-9a-f]{32}", id))


def read_original(id: str, places: Iterable[PicturePlace]) -> tuple[str, bytes]:
    """Where the picture that was indexed lies, and its bytes; `Problem` if it is gone or another one by now."""
    for placed in places:
        with suppress(OSError, BadPicture):
            return placed.place, bytes_of(id, placed)
    raise Problem(404, GONE)


def bytes_of(id: str, placed: PicturePlace) -> bytes:
    """The picture as it was indexed; OSError if it is not the picture that was indexed."""
    if not is_digest(id):
        base = placed.root.place if placed.root.kind in ("folder", "import") else os.path.dirname(placed.root.place)
        base = base if os.path.isdir(base) else os.path.dirname(base)
        if "://" in placed.place or not is_inside(os.path.realpath(placed.place), os.path.realpath(base)):
            raise OSError("outside of its root")
    data = read_again(placed.place)
    if is_digest(id) and id_at(placed.place, data) != id:
        raise OSError("another picture by now")
    return data


_TYPES = {".m4v": "video/mp4", ".mkv": "video/x-matroska", ".mov": "video/quicktime", ".mp4": "video/mp4"}
_TYPES |= {".ogv": "video/ogg", ".webm": "video/webm"}


def video_response(id: str, places: Iterable[PicturePlace]) -> FileResponse:
    """The first of these files that holds the frame with this id; `Problem` where none does."""
    for placed in places:
        frame = frame_of(placed.place)
        with suppress(OSError):
            if frame is not None and id_at(placed.place, b"") == id:
                ending = os.path.splitext(frame.video)[1].lower()
                return FileResponse(
                    frame.video,
                    media_type=_TYPES.get(ending, "video/mpeg"),
                    stat_result=os.stat(frame.video),
                    headers={"Content-Disposition": "inline"},
                )
    raise Problem(404, "there is no such video, or it has changed since it was indexed; bring the gallery up to date")


# -- pictures that people bring, looked through before they are kept, named by their bytes alone -------------------

KEPT = 500  # pictures; the longest unused goes first
_changing = Lock()  # two who bring pictures at once would write, and count, over each other


def keep(folder: Path, data: bytes, most: int) -> str:
    """The digest under which a picture is kept; `Problem` for what is too large or no whole picture."""
    if len(data) > most:
        raise Problem(413, f"the picture has more than {most >> 20} MiB; send a smaller one")
    try:
        small = thumbnail(data, SMALL)
    except BadPicture as bad:
        raise Problem(422, f"this cannot be searched with: {bad.reason}") from None
    digest = id_of(data)
    place = _place(folder, digest)
    with _changing:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(_small(place), lambda file: file.write(small))
            write_whole(place, lambda file: file.write(data))
        except OSError as error:
            raise Problem(507, f"the picture cannot be stored {trouble(error)}") from None
        # The longest unused of too many; one of them may be gone already by another server's hand
        used: dict[Path, int] = {}
        for one in folder.glob("??/*"):
            with suppress(FileNotFoundError):
                if not one.suffix and not one.name.startswith("."):
                    used[one] = one.stat().st_mtime_ns
        for one in sorted(used, key=lambda one: used[one])[: max(0, len(used) - KEPT)]:
            one.unlink(missing_ok=True)
            _small(one).unlink(missing_ok=True)
    return digest


def upload_jpeg(folder: Path, digest: str) -> bytes:
    """A kept picture as a small JPEG; `Problem` if it is not kept."""
    if not is_digest(digest):
        raise Problem(404, "there is no such picture")
    try:
        small = _small(_place(folder, digest)).read_bytes()
    except OSError:
        raise Problem(404, "the picture is not kept any more; bring it again") from None
    _used(folder, digest)
    return small


def searched_with(folder: Path, digest: str) -> Path:
    """Where a kept picture lies; `Problem` if it is not kept."""
    place = _place(folder, digest)
    if not place.is_file():
        raise Problem(404, "the picture that was searched with is not kept any more; drop it into the page again")
    _used(folder, digest)
    return place


def _used(folder: Path, digest: str) -> None:
    """From now on others are longer unused; where nothing may be written nothing is forgotten either."""
    with suppress(OSError):
        os.utime(_place(folder, digest))


def _place(folder: Path, digest: str) -> Path:
    return folder / digest[:2] / digest


def _small(place: Path) -> Path:
    return place.with_name(f"{place.name}.jpg")
