"""Pictures that are handed on as they are, but without the position where they were taken."""

from __future__ import annotations

import re
from io import BytesIO
from typing import NamedTuple

from PIL import Image

from eyespot.gallery.exports._pictures import bare_picture
from eyespot.gallery.photos.exif import Exif
from eyespot.gallery.photos.pictures import open_picture

_XMP = re.compile(rb"GPSL(?:at|ong)itude")


class PictureBytes(NamedTuple):
    """A picture's bytes and the end of its file's name."""

    data: bytes
    suffix: str


def as_it_is(data: bytes, suffix: str) -> PictureBytes:
    """Byte for byte, with its position."""
    return PictureBytes(data, suffix)


def without_position(data: bytes, suffix: str) -> PictureBytes:
    """Byte for byte, or without metadata where these tell a position; HEIC, AVIF and TIFF then become a JPEG."""
    shown = open_picture(data)
    if shown.facts.latitude is None and not _XMP.search(data) and not _tells_position(data):
        return PictureBytes(data, suffix)
    return PictureBytes(*bare_picture(data, suffix, shown.image))


def _tells_position(data: bytes) -> bool:
    """Whether its EXIF has a block of positions, of whatever use, or its XMP names one."""
    try:
        with Image.open(BytesIO(data)) as image:
            texts = (value for value in image.info.values() if isinstance(value, str | bytes))
            raw = (value.encode("utf-8", "replace") if isinstance(value, str) else value for value in texts)
            return bool(Exif.of(image).position) or any(_XMP.search(value) for value in raw)
    except OSError:
        return False
