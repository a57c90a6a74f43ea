"""What a file says of its picture in words: title, description and keywords, from EXIF, IPTC and XMP."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

from PIL import ExifTags, Image, ImageFile, IptcImagePlugin

from eyespot.photos.xmp import Xmp

EMBEDDED = ("embedded_title", "embedded_description", "embedded_keywords")  # names of their columns
MOST = 5_000  # characters of each text
# Cameras write these into the description of every picture
_OF_CAMERAS = re.compile(r"[A-Z ]*DIGITAL CAMERA|SONY DSC|DCIM.*|DIGITAL IMAGE|Exif_JPEG_PICTURE|<.*>|[\W\d_]*")
_TITLE, _HEADLINE, _CAPTION, _KEYWORDS = (2, 5), (2, 105), (2, 120), (2, 25)  # of IPTC IIM
_SEPARATORS = re.compile("[;,]")

Iptc = dict[tuple[int, int], list[str]]


def embedded_texts(xmp: Xmp, iptc: Iptc, main: Mapping[int, Any], photo: Mapping[int, Any]) -> dict[str, str | None]:
    """Title, description and keywords, by their columns; XMP goes before IPTC, and IPTC before EXIF.

    Each is None where the file has none. Keywords are joined by semicolons.
    """
    titles = [*xmp.get("dc:title", ()), *iptc.get(_TITLE, ()), *iptc.get(_HEADLINE, ())]
    titles.append(_windows_text(main.get(ExifTags.Base.XPTitle)))
    descriptions = [*xmp.get("dc:description", ()), *iptc.get(_CAPTION, ()), _text(main.get(270))]
    descriptions += [_windows_text(main.get(tag)) for tag in (ExifTags.Base.XPComment, ExifTags.Base.XPSubject)]
    comment = photo.get(ExifTags.Base.UserComment)
    descriptions += [_user_comment(comment)] if isinstance(comment, bytes) else []
    keywords = [*xmp.get("dc:subject", ()), *iptc.get(_KEYWORDS, ())]
    keywords += _SEPARATORS.split(_windows_text(main.get(ExifTags.Base.XPKeywords)))
    return dict(zip(EMBEDDED, one_line_each(titles, descriptions, keywords), strict=True))


def one_line_each(
    titles: Iterable[str], descriptions: Iterable[str], keywords: Iterable[str]
) -> tuple[str | None, str | None, str | None]:
    """The first title and the first description that say something, and all keywords, joined."""
    joined = "; ".join(dict.fromkeys(_clean(keywords)))[:MOST]
    return next(_clean(titles), None), next(_clean(descriptions), None), joined or None


def _clean(texts: Iterable[str]) -> Iterator[str]:
    """The texts that say something, on one line and without what no table can hold."""
    for text in texts:
        line = " ".join(re.sub("[\\x00-\\x1f\\x7f\ud800-\udfff]", " ", text).split())[:MOST]
        if not _OF_CAMERAS.fullmatch(line):
            yield line


def _text(value: Any) -> str:
    """EXIF promises ASCII and programs write UTF-8, which Pillow reads as Latin-1."""
    if isinstance(value, bytes):
        return _decoded(value)
    if not isinstance(value, str):
        return ""
    with suppress(UnicodeError):
        return value.encode("latin-1").decode()
    return value


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _windows_text(value: Any) -> str:
    """The texts of Windows, in UTF-16 with a zero at the end."""
    if isinstance(value, tuple) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
        value = bytes(value)
    return value.decode("utf-16-le", "ignore").rstrip("\0") if isinstance(value, bytes) else ""


def _user_comment(value: bytes) -> str:
    code, text = value[:8], value[8:]
    if code == b"UNICODE\0":
        return text.decode("utf-16-le" if text[1:2] == b"\0" else "utf-16-be", "ignore")
    return _decoded(text) if code in (b"ASCII\0\0\0", bytes(8)) else ""


def read_iptc(image: Image.Image) -> Iptc:
    """The texts of IPTC IIM in a picture, by record and number."""
    with suppress(Exception):
        found = IptcImagePlugin.getiptcinfo(cast(ImageFile.ImageFile, image)) or {}
        lists = {key: value if isinstance(value, list) else [value] for key, value in found.items()}
        return {key: [_decoded(text) for text in texts if isinstance(text, bytes)] for key, texts in lists.items()}
    return {}
