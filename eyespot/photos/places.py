"""Where pictures lie, and their bytes: in folders, in tars and parquet files, and as lists name them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from eyespot.photos.names import NamedFiles, real_name, stored_name
from eyespot.photos.videos.addresses import FRAGMENT, file_of, frame_at, frame_of, is_video
from eyespot.storage.parquet_bytes import read_row
from eyespot.types import Note, UsageError, quantity

if TYPE_CHECKING:
    from PIL.Image import Image

    from eyespot.photos.found import Seen


ARCHIVES = ("tar", "parquet")  # kinds of roots whose pictures are not files of their own


class Root(NamedTuple):
    """One place that was indexed; its kind says how to read it again."""

    path: str  # absolute, as `names.py` stores it
    kind: str  # folder | tar | parquet | list | file

    @property
    def place(self) -> str:
        """The path as functions of the file system take it."""
        return real_name(self.path)


def full_path(root: Root, path: str) -> str:
    """Where a picture lies, as the file system names it; inside a tar or parquet file it is `archive.tar/member`."""
    if root.kind == "file":
        return root.place + (path[-FRAGMENT:] if frame_of(path) else "")
    if root.kind in ARCHIVES:
        return f"{root.place}/{real_name(path)}"  # not joined: a member may call itself /etc/passwd
    base = os.path.dirname(root.place) if root.kind in ("list", "facts") else root.place
    return os.path.join(base, real_name(path))


def read_bytes(root: Root, seen: Seen) -> bytes:
    """The picture's bytes as they are now; OSError if they are gone."""
    if root.kind == "tar":
        with open(root.place, "rb") as archive:
            archive.seek(seen.offset)
            return archive.read(seen.size)
    if root.kind == "parquet":
        return bytes(read_row(root.place, seen.offset))
    place = full_path(root, seen.path)
    stat_of(place)
    return Path(place).read_bytes()


def read_again(place: str) -> bytes:
    """The bytes of a picture by its full path; OSError if it is gone.

    Inside a tar or parquet file that path is `archive.tar/member`; of a frame of a video, `clip.mp4#t=00:01:23.500`, it
    is a JPEG.
    """
    if (archive := archive_of(place)) is not None:
        from eyespot.photos.tars import read_member

        inside = place[len(archive) + 1 :]
        row = None if archive.lower().endswith(".tar") else inside.partition("/")[0]
        return read_member(archive, inside) if row is None else bytes(read_row(archive, int(row)))
    if frame := frame_at(place):
        from eyespot.photos.videos.decoding import frame_bytes

        return frame_bytes(*frame)
    from eyespot.photos.found import Seen  # with all that a walk finds, which a search does not need

    return read_bytes(Root(stored_name(place), "file"), Seen("", 0, 0))


def picture_of(place: Path | str) -> Image:
    """A picture of a gallery, upright, in RGB, also inside a tar; OSError or `BadPicture` if it cannot be read."""
    from eyespot.photos.pictures import open_picture

    return open_picture(read_again(str(place))).image


def id_at(place: str, data: bytes) -> str:
    """The id of what lies at a full path and was read as these bytes: of a frame, by its video and its time."""
    if (frame := frame_at(place)) is None:
        from eyespot.photos.pictures import id_of

        return id_of(data)
    from eyespot.photos.videos.decoding import frame_id, video_id

    return frame_id(video_id(frame.video), frame.ms)


@dataclass(frozen=True)
class NotReread:
    """Why there is no picture; `passing` if it may be there another time: a disk is away, or the file has changed."""

    reason: str
    passing: bool


def reread(id: str, places: Sequence[str], min_side: int | None) -> Image | NotReread:
    """The picture, upright in RGB."""
    from eyespot.photos.found import reason
    from eyespot.photos.pictures import BadPicture, open_picture

    whys, passing = [], False
    for place in places:
        try:
            data = read_again(place)
            # Whether these are not the bytes that were indexed; an imported row whose id is not a digest is believed
            if re.fullmatch("[0-9a-f]{32}", id) is None or id_at(place, data) == id:
                return open_picture(data, min_side).image
            whys.append("changed since it was indexed; run eyespot index first")
            passing = True
        except BadPicture as bad:
            whys.append(bad.reason)
        except OSError as error:
            whys.append(reason(error))
            passing = True
        except MemoryError:
            whys.append("too large for this machine's memory")
    return NotReread(whys[0], passing)


def archive_of(place: str) -> str | None:
    """The tar or parquet file that a full path leads into; None for a file of its own."""
    ends = (end.end() for end in re.finditer(r"\.(?:tar(?=/)|parquet(?=/\d))", place, re.IGNORECASE))
    return next((place[:end] for end in ends if os.path.isfile(place[:end])), None)


def absent_notes(places: Sequence[str | None], gallery: Path) -> list[Note]:
    """What to do about pictures of which no file is there any more; none for one without a place of its own."""
    known = [one for one in places if one and os.path.isabs(one)]
    absent = [one for one in known if not os.path.lexists(file_of(one)) and archive_of(one) is None]
    if not absent:
        return []
    line = f"index the new place: eyespot index PHOTOS -g {quote(str(gallery))}"
    count = f"not where they were: {len(absent)} of {quantity(len(places), 'photo')}, such as {absent[0]}"
    return [Note("absent", f"{count}; if you moved them, {line}; or is a disk not mounted?")]


def place_alike(place: str) -> str | None:
    """The only path that is this one in another spelling; None where it is there as it is, or none or several fit."""
    above, name = os.path.split(place)
    if os.path.lexists(place) or above == place:
        return None
    folder = above if os.path.isdir(above) else place_alike(above)
    if folder is None:
        return None
    found = _files_in(folder, os.stat(folder).st_mtime_ns).called(name)
    return os.path.join(folder, found[0]) if len(found) == 1 else None


@lru_cache(maxsize=16)
def _files_in(folder: str, _changed: int) -> NamedFiles:
    with suppress(OSError):
        return NamedFiles(os.listdir(folder))
    return NamedFiles(())


def stat_of(place: str) -> os.stat_result:
    """Size and time of a file; OSError for a pipe or device, and for a file that no photo is as large as.

    A video may have any size: it is not read as a whole.
    """
    status = os.stat(place)
    if not stat.S_ISREG(status.st_mode):
        raise OSError("not a regular file")
    if not is_video(place):
        from eyespot.photos.found import refuse_size

        refuse_size(status.st_size)
    return status


def numbers_of(path: str, roots: Mapping[int, Root]) -> list[int]:
    """The root at this path, and the tars of a folder that were indexed with it."""
    place = stored_name(os.path.abspath(os.path.expanduser(path)))
    matching = {
        number: root
        for number, root in roots.items()
        if root.path in (path, place) or (root.kind == "tar" and os.path.dirname(root.path) == place)
    }
    if not matching:
        known = ", ".join(root.place for root in roots.values()) or "none"
        raise UsageError(f"{path} is not a root of this gallery, so it cannot be taken out; its roots are: {known}")
    if any(root.kind == "import" for root in matching.values()):
        raise UsageError(f"{path} was imported with its vectors; make a gallery without it to be rid of it")
    return list(matching)
