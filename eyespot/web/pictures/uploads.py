"""Pictures that people bring to search with: looked through before they are kept, named by their bytes alone."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from threading import Lock

from eyespot.photos.pictures import BadPicture, id_of, thumbnail
from eyespot.storage.atomic import write_whole
from eyespot.web._problems import Problem

KEPT = 500  # pictures; the longest unused goes first
SIDE = 320  # pixels
_changing = Lock()  # two who bring pictures at once would write, and count, over each other


def keep(folder: Path, data: bytes, most: int) -> str:
    """The digest under which a picture is kept; `Problem` for what is too large or no whole picture."""
    if len(data) > most:
        raise Problem(413, f"the picture has more than {most >> 20} MiB; send a smaller one")
    try:
        small = thumbnail(data, SIDE)
    except BadPicture as bad:
        raise Problem(422, f"this cannot be searched with: {bad.reason}") from None
    digest = id_of(data)
    place = _place(folder, digest)
    with _changing:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(_small(place), lambda file: file.write(small))
        write_whole(place, lambda file: file.write(data))
        # The longest unused of too many; one of them may be gone already by another server's hand
        places = [place for place in folder.glob("??/*") if not place.suffix and not place.name.startswith(".")]
        for place in sorted(places, key=_last_use)[: max(0, len(places) - KEPT)]:
            place.unlink(missing_ok=True)
            _small(place).unlink(missing_ok=True)
    return digest


def upload_jpeg(folder: Path, digest: str) -> bytes:
    """A kept picture as a small JPEG; `Problem` if it is not kept."""
    if not re.fullmatch("[0-9a-f]{32}", digest):
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


def _last_use(place: Path) -> int:
    try:
        return place.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
