"""Pictures that are handed on as they are, but without the position where they were taken."""

from __future__ import annotations

import re
from io import BytesIO
from typing import NamedTuple

from PIL import Image

from eyespot.formats.exports._pictures import bare_picture
from eyespot.photos.exif import Exif
from eyespot.photos.pictures import open_picture

_XMP = re.compile(rb"G\0?P\0?S\0?L\0?(?:a\0?t|o\0?n\0?g)\0?i\0?t\0?u\0?d\0?e")  # in UTF-8 or UTF-16
_HEX = b"GPSL".hex()  # ImageMagick writes metadata into a PNG as lines of hex digits


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
            image.load()  # a PNG may have texts behind its pixels
            texts = [value for value in image.info.values() if isinstance(value, str | bytes)]
            raw = [value.encode("utf-8", "replace") if isinstance(value, str) else value for value in texts]
            hexadecimal = any(_HEX in "".join(value.split()).lower() for value in texts if isinstance(value, str))
            return bool(Exif.of(image).position) or hexadecimal or any(_XMP.search(value) for value in raw)
    except OSError:
        return False
