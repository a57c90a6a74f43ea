"""What a file says of its picture in words: title, description and keywords, from EXIF, IPTC and XMP."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, cast
from xml.etree import ElementTree

from PIL import ExifTags, Image, ImageFile, IptcImagePlugin

EMBEDDED = ("embedded_title", "embedded_description", "embedded_keywords")  # names of their columns
MOST = 5_000  # characters of each text
XMP_BYTES = 1 << 20
# Cameras write these into the description of every picture
_OF_CAMERAS = re.compile(r"[A-Z ]*DIGITAL CAMERA|SONY DSC|DCIM.*|DIGITAL IMAGE|Exif_JPEG_PICTURE|<.*>|[\W\d_]*")
_DC, _RDF = "{http://purl.org/dc/elements/1.1/}", "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_TITLE, _HEADLINE, _CAPTION, _KEYWORDS = (2, 5), (2, 105), (2, 120), (2, 25)  # of IPTC IIM
_SEPARATORS = re.compile("[;,]")


class EmbeddedTexts(NamedTuple):
    """The texts of a picture; each is None where the file has none. Keywords are joined by semicolons."""

    title: str | None = None
    description: str | None = None
    keywords: str | None = None

    @classmethod
    def of(cls, image: object, main: Mapping[int, Any], photo: Mapping[int, Any]) -> EmbeddedTexts:
        """The texts of a picture with these EXIF tags; XMP goes before IPTC, and IPTC before EXIF.

        A damaged block costs the texts in it, never the picture.
        """
        xmp, iptc = (_xmp(image), _iptc(image)) if isinstance(image, Image.Image) else ({}, {})  # RAW has EXIF only
        keywords = [*xmp.get("subject", ()), *iptc.get(_KEYWORDS, ())]
        keywords += _SEPARATORS.split(_windows_text(main.get(ExifTags.Base.XPKeywords)))
        titles = [*xmp.get("title", ()), *iptc.get(_TITLE, ()), *iptc.get(_HEADLINE, ())]
        descriptions = [*xmp.get("description", ()), *iptc.get(_CAPTION, ()), _text(main.get(270))]
        descriptions += [_windows_text(main.get(tag)) for tag in (ExifTags.Base.XPComment, ExifTags.Base.XPSubject)]
        comment = photo.get(ExifTags.Base.UserComment)
        descriptions += [_user_comment(comment)] if isinstance(comment, bytes) else []
        return cls(
            next(_clean([*titles, _windows_text(main.get(ExifTags.Base.XPTitle))]), None),
            next(_clean(descriptions), None),
            "; ".join(dict.fromkeys(_clean(keywords)))[:MOST] or None,
        )


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


def _iptc(image: Image.Image) -> dict[tuple[int, int], list[str]]:
    with suppress(Exception):
        found = IptcImagePlugin.getiptcinfo(cast(ImageFile.ImageFile, image)) or {}
        lists = {key: value if isinstance(value, list) else [value] for key, value in found.items()}
        return {key: [_decoded(text) for text in texts if isinstance(text, bytes)] for key, texts in lists.items()}
    return {}


def _xmp(image: Image.Image) -> dict[str, list[str]]:
    """Dublin Core's title, description and subject; English or the default first, as the file orders them."""
    packet = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp") or b""
    data = packet.encode() if isinstance(packet, str) else bytes(packet)
    # Entities make small files large, and no camera or photo program writes them
    if not data or len(data) > XMP_BYTES or b"<!" in data:
        return {}
    found: dict[str, list[str]] = {}
    with suppress(ElementTree.ParseError, ValueError):
        root = ElementTree.fromstring(data.strip(b"\0 \n\r\t"))
        for name in ("title", "description", "subject"):
            items = [item.text or "" for block in root.iter(_DC + name) for item in block.iter(_RDF + "li")]
            found[name] = items
    return found
