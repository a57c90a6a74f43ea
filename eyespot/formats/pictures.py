"""Pictures as they go out: without what their metadata tells of places and owners, and in formats that others read.

JPEG and GIF keep their pixels bit for bit, and their orientation and colour profile; PNG and WebP with metadata are
saved again without loss. What few programs read (HEIC, AVIF, TIFF) becomes a JPEG.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from io import BytesIO

from PIL import Image

from eyespot.photos.embedded_facts import Exif
from eyespot.photos.found import reason
from eyespot.photos.names import real_name, shown_name
from eyespot.photos.pictures import BadPicture, open_picture
from eyespot.photos.places import read_again

_ORIENTATION = 0x0112  # the tag of EXIF
_SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp", "GIF": ".gif", "BMP": ".bmp"}
_SIGNS = {b"\xff\xd8\xff": "JPEG", b"\x89PNG": "PNG", b"GIF8": "GIF", b"BM": "BMP"}
_TELLING = ("exif", "xmp", "XML:com.adobe.xmp", "comment", "photoshop")
_APPS = (b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012")  # how often a GIF repeats, and its colour profile
_XMP = re.compile(rb"G\0?P\0?S\0?L\0?(?:a\0?t|o\0?n\0?g)\0?i\0?t\0?u\0?d\0?e")  # in UTF-8 or UTF-16
_HEX = b"GPSL".hex()  # ImageMagick writes metadata into a PNG as lines of hex digits
_MARKER = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])", re.DOTALL)  # one that is not part of the coded pixels


@dataclass(frozen=True, slots=True)
class PictureBytes:
    """A picture's bytes and the end of its file's name."""

    data: bytes
    suffix: str


@dataclass(frozen=True)
class PictureFile:
    """A picture's bytes, the end of its name, its size in pixels, and whether its format is another than it was."""

    data: bytes
    name: str
    suffix: str
    size: tuple[int, int]
    converted: bool


def picture_of(places: list[str], bare: bool) -> PictureFile | str:
    """The first of these stored places that gives a picture, or why none does; `bare`: without telling metadata."""
    why = "only its vector is known, and no place where it lies"
    for place in places:
        if "://" in place:
            why = "only its address is known, and eyespot fetches none; download it first"
            continue
        try:
            data = read_again(real_name(place))
            shown = open_picture(data).image  # a broken picture would end the program that reads the export
        except BadPicture as error:
            why = error.reason
        except OSError as error:
            why = reason(error)
        else:
            name = os.path.basename(shown_name(place))
            return _as_file(data, name, shown, bare)
    return why


def _as_file(data: bytes, name: str, shown: Image.Image, bare: bool) -> PictureFile:
    stem, suffix = os.path.splitext(name)
    format = _format_of(data)
    if format is None:
        jpeg = BytesIO()
        shown.save(jpeg, "JPEG", quality=95)
        return PictureFile(jpeg.getvalue(), stem, ".jpg", shown.size, True)
    known = suffix.lower() in (_SUFFIXES[format], ".jpeg", ".jpe", ".jfif", ".apng")
    return PictureFile(
        _bare(data, format) if bare else data, stem, suffix.lower() if known else _SUFFIXES[format], shown.size, False
    )


def as_it_is(data: bytes, suffix: str) -> PictureBytes:
    """Byte for byte, with its position."""
    return PictureBytes(data, suffix)


def without_position(data: bytes, suffix: str) -> PictureBytes:
    """Byte for byte, or without metadata where these tell a position; HEIC, AVIF and TIFF then become a JPEG."""
    shown = open_picture(data)
    if "latitude" not in shown.facts and not _XMP.search(data) and not _tells_position(data):
        return PictureBytes(data, suffix)
    format = _format_of(data)
    if format is not None and (bare := _bare(data, format)) != data:
        return PictureBytes(bare, suffix)
    jpeg = BytesIO()
    shown.image.convert("RGB").save(jpeg, "JPEG", quality=95)
    return PictureBytes(jpeg.getvalue(), ".jpg")


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


def _format_of(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    return next((format for sign, format in _SIGNS.items() if data.startswith(sign)), None)


def _bare(data: bytes, format: str) -> bytes:
    """The same picture without EXIF, XMP, IPTC and comments; it is still shown upright."""
    if format in ("JPEG", "GIF"):
        return bare_jpeg(data) if format == "JPEG" else bare_gif(data)
    with Image.open(BytesIO(data)) as image:
        texts = getattr(image, "text", None)  # of a PNG
        if format not in ("PNG", "WEBP") or not (texts or image.getexif() or set(_TELLING) & set(image.info)):
            return data
        orientation = image.getexif().get(_ORIENTATION, 1)
        clean, out = Image.Exif(), BytesIO()
        if orientation != 1:
            clean[_ORIENTATION] = orientation
        more = {"lossless": True, "xmp": b""} if format == "WEBP" else {"pnginfo": None}
        frames = {"save_all": True} if getattr(image, "n_frames", 1) > 1 else {}
        image.info = {name: value for name, value in image.info.items() if name not in (*_TELLING, *(texts or ()))}
        image.save(out, format, exif=clean.tobytes() if orientation != 1 else b"", **more, **frames)
        return out.getvalue()


def bare_jpeg(data: bytes) -> bytes:
    """A JPEG up to its end mark, without the segments that hold metadata; nothing of its pixels changes."""
    with Image.open(BytesIO(data)) as image:
        orientation = image.getexif().get(_ORIENTATION, 1)
    parts, at = [b"\xff\xd8"], 2
    if orientation != 1:
        exif = Image.Exif()
        exif[_ORIENTATION] = orientation
        payload = exif.tobytes()
        parts.append(b"\xff\xe1" + (len(payload) + 2).to_bytes(2) + payload)
    while (found := _MARKER.search(data, at)) is not None:
        marker = found[1][0]
        if marker == 0xD9:
            break
        pixels, length = data[at : found.start()], int.from_bytes(data[found.end() : found.end() + 2])
        end = found.end() + max(length, 2)
        parts.append(pixels)
        # Comments and what applications add but JFIF, ICC and Adobe may tell of places or owners
        is_profile = data[found.end() + 2 : found.end() + 16].startswith(b"ICC_PROFILE\0")
        if marker != 0xFE and (is_profile or marker == 0xEE or not 0xE1 <= marker <= 0xEF):
            parts.append(b"\xff" + found[1] + data[found.end() : end])
        at = end
    else:
        return b"".join([*parts, data[at:], b"\xff\xd9"])  # without an end mark: everything is pixels
    return b"".join([*parts, data[at : found.start()], b"\xff\xd9"])


def bare_gif(data: bytes) -> bytes:
    """A GIF up to its end mark, without comments and what applications added, XMP say; its pictures stay bit for bit.

    What follows a block that is cut short is left out. Source: GIF89a, and XMP Part 3 for its application block.
    """
    at = 13 + _colours(data[10:11])
    parts = [data[:at]]
    while (sign := data[at : at + 1]) in (b"!", b","):
        start = at
        at += 2 if sign == b"!" else 11 + _colours(data[at + 9 : at + 10])
        while size := int.from_bytes(data[at : at + 1]):  # blocks of up to 255 bytes; none is the end
            at += 1 + size
        at += 1
        if (
            sign == b","
            or data[start + 1 : start + 2] not in (b"\xfe", b"\xff")
            or data[start + 3 : start + 14] in _APPS
        ):
            parts.append(data[start:at])
    return b"".join([*parts, b";"])


def _colours(flags: bytes) -> int:
    """The bytes of a table of colours, as the flags before it say."""
    number = int.from_bytes(flags)
    return 3 << ((number & 7) + 1) if number & 0x80 else 0
