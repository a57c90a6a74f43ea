"""Where photos come from: folders of this machine, and what people bring."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from io import BytesIO
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import NamedTuple

from eyespot.photos.pictures import BadPicture, id_of, thumbnail
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.storage.systems import is_inside
from eyespot.web._problems import Problem

UPLOADS = "uploads"  # the gallery's folder of what people bring
LISTED = 300  # folders
COUNTED = 5000  # files of a folder that are looked at to count its photos
SIDE = 320  # pixels, to see whether a picture is whole
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".tif", ".tiff", ".bmp", ".heic", ".heif", ".avif")
_WRITING = Lock()  # two photos of one name have one name while they are written
OF_FORMAT = {"JPEG": ".jpg", "MPO": ".jpg", "PNG": ".png", "WEBP": ".webp", "GIF": ".gif", "TIFF": ".tif"}


class Folder(NamedTuple):
    """A folder to choose, with how many photos lie right in it."""

    path: str
    name: str
    photos: int


class Listing(NamedTuple):
    """A folder of the home, the one above it if that is of the home too, and those in it."""

    here: Folder
    above: str | None
    folders: list[Folder]


def list_folders(under: str | None) -> Listing:
    """The folders of a folder of the home; `Problem` for one that is not of the home."""
    home = os.path.realpath(Path.home())
    here = os.path.realpath(under) if under and "\0" not in under else home
    if "\0" in (under or "") or not is_inside(here, home) or not os.path.isdir(here):
        raise Problem(422, "this folder is not in your home; type its whole path")
    above = os.path.dirname(here) if here != home else None
    found = []
    with suppress(OSError), os.scandir(here) as entries:
        found = sorted((entry for entry in entries if _is_listed(entry)), key=lambda one: one.name.casefold())
    folders = [Folder(entry.path, entry.name, _count(entry.path)) for entry in found[:LISTED]]
    return Listing(Folder(here, os.path.basename(here) or here, _count(here)), above, folders)


def _is_listed(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
    return False


def _count(folder: str) -> int:
    """How many photos lie right in a folder, of its first files."""
    with suppress(OSError), os.scandir(folder) as entries:
        names = (entry.name for entry, _ in zip(entries, range(COUNTED), strict=False))
        return sum(name.lower().endswith(SUFFIXES) for name in names)
    return 0


def chosen_folder(path: str, gallery: Path) -> Path:
    """A folder that somebody typed or chose; `Problem` for what is none."""
    text = path.strip()
    if not text or "\0" in text:
        raise Problem(422, "type the path of a folder, such as /home/ada/Pictures")
    with suppress(RuntimeError):  # of a user that does not exist
        folder = Path(text).expanduser()
        if folder.is_absolute() and folder.is_dir():
            if is_inside(os.path.realpath(folder), os.path.realpath(gallery)):
                raise Problem(422, "this folder is of the gallery itself; choose the folder of your photos")
            return folder
    raise Problem(422, f"there is no folder {text}; type its whole path, such as /home/ada/Pictures")


# -- what people bring ----------------------------------------------------------------------------------------


def uploads_of(gallery: Path) -> Path:
    """The gallery's folder for what people bring."""
    return (gallery / UPLOADS).absolute()


def write_photo(folder: Path, name: str, data: bytes, most: int) -> str:
    """Keep a photo under a name of its own, which is returned; `Problem` for what is too large or no whole picture."""
    if len(data) > most:
        raise Problem(413, f"the photo has more than {most >> 20} MiB; raise the limit with --max-upload")
    try:
        thumbnail(data, SIDE)
    except BadPicture as bad:
        raise Problem(422, bad.reason) from None
    place = folder / safe_name(name, data)
    try:
        with _WRITING:
            if place.exists() and place.read_bytes() != data:
                place = place.with_name(f"{place.stem}-{id_of(data)[:8]}{place.suffix}")
            make_folder(folder)
            write_whole(place, lambda file: file.write(data))
    except OSError as error:
        raise Problem(507, f"the photo cannot be stored ({(error.strerror or str(error)).lower()})") from None
    return place.name


def safe_name(name: str, data: bytes) -> str:
    """A file name without a path, a hidden start or signs that systems refuse, and with the suffix of a picture."""
    base = PurePosixPath(name.replace("\\", "/")).name.lstrip(". ")
    stem, dot, suffix = base.rpartition(".")
    plain = re.sub(r"[^\w .()-]", "_", stem if dot else base).strip(" .")[:80]
    suffix = f".{suffix.lower()}"
    return f"{plain or 'photo'}{suffix if suffix in SUFFIXES else _suffix_of(data)}"


def _suffix_of(data: bytes) -> str:
    from PIL import Image

    with suppress(Exception), Image.open(BytesIO(data)) as image:
        return OF_FORMAT.get(image.format or "", ".jpg")
    return ".jpg"
