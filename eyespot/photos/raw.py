"""RAW photos of cameras, through the preview that the camera put into the file; the extra [raw] brings the reader.

Most RAW files are TIFF files by their first bytes. The preview is what the camera showed; a file without one is
developed at half its size.
"""

from __future__ import annotations

import struct
from contextlib import ExitStack, suppress
from io import BytesIO
from typing import Any

from PIL import ExifTags, Image

SMALLEST = 160  # pixels of a preview's shorter side; a smaller one shows nothing
_MARKS = (b"FUJIFILMCCD-RAW", b"IIU\0", b"IIRO", b"IIRS", b"MMOR", b"FOVb")
_DNG_VERSION, _SUB_IFDS = 50706, 330
_ENTRIES = 512  # of a directory that are looked at


def is_raw(data: bytes) -> bool:
    """Whether a file is a RAW photo, by its first bytes and, where these are those of a TIFF file, by its tags."""
    if data.startswith(_MARKS) or data[8:10] == b"CR" or data[4:12] == b"ftypcrx ":
        return True
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(data[:4])
    at = 0 if order is None or len(data) < 8 else struct.unpack_from(f"{order}I", data, 4)[0]
    if not order or not 0 < at <= len(data) - 2:
        return False
    (count,) = struct.unpack_from(f"{order}H", data, at)
    places = range(at + 2, min(at + 2 + 12 * min(count, _ENTRIES), len(data) - 1), 12)
    tags = {struct.unpack_from(f"{order}H", data, place)[0] for place in places}  # of the first directory
    return _DNG_VERSION in tags or {_SUB_IFDS, ExifTags.Base.Make} <= tags


def raw_preview(data: bytes, most_pixels: int) -> tuple[bytes, tuple[int, int], Image.Exif] | None:
    """The preview of a RAW photo as the bytes of a picture, the size of the photo itself, and the tags of the file.

    None for what LibRaw does not know. Raises what it says of a damaged file. most_pixels: of a photo without a preview
    that is developed.
    """
    import rawpy

    with ExitStack() as opened:
        try:
            raw = opened.enter_context(rawpy.imread(BytesIO(data)))
        except rawpy.LibRawFileUnsupportedError:  # a TIFF file of several pictures, say
            return None
        size = raw.sizes.width, raw.sizes.height
        found: Any = None
        with suppress(rawpy.LibRawNoThumbnailError, rawpy.LibRawUnsupportedThumbnailError):
            thumb = raw.extract_thumb()
            found = thumb.data if thumb.format == rawpy.ThumbFormat.JPEG else _as_png(thumb.data)
        if found is None or min(Image.open(BytesIO(found)).size) < SMALLEST:
            if size[0] * size[1] > most_pixels:
                raise ValueError(f"{size[0]} x {size[1]} pixels without a preview, over the limit")
            found = _as_png(raw.postprocess(half_size=True, use_camera_wb=True, user_flip=0))
    exif = Image.Exif()
    if data[:4] in (b"II*\0", b"MM\0*"):
        with suppress(Exception):  # of damaged tags Pillow raises anything; the preview may have its own
            exif.load(data)
    return found, size, exif


def _as_png(pixels: Any) -> bytes:
    made = BytesIO()
    Image.fromarray(pixels).save(made, "PNG", compress_level=1)
    return made.getvalue()
