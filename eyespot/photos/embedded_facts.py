"""What a file says of its picture, by EXIF, IPTC and XMP: when, where and with what it was taken, its turn and texts.

Damage costs the facts in it, never the picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, cast
from xml.etree import ElementTree as ET

from PIL import ExifTags, Image, ImageFile, IptcImagePlugin

from eyespot.photos.provenance import CHANGED, EMBEDDED, RATING, best_date, best_position, read_date

MOST = 5_000  # characters of each text
# Cameras write these into the description of every picture
_OF_CAMERAS = re.compile(r"[A-Z ]*DIGITAL CAMERA|SONY DSC|DCIM.*|DIGITAL IMAGE|Exif_JPEG_PICTURE|<.*>|[\W\d_]*")
_TITLE, _HEADLINE, _CAPTION, _KEYWORDS = (2, 5), (2, 105), (2, 120), (2, 25)  # of IPTC IIM
_SEPARATORS = re.compile("[;,]")

Iptc = dict[tuple[int, int], list[str]]
Xmp = dict[str, list[str]]
"""Values by their names, such as `dc:subject`; of alternatives in languages the default comes first, as in the file."""


def embedded_texts(xmp: Xmp, iptc: Iptc, main: Mapping[int, Any], photo: Mapping[int, Any]) -> dict[str, str | None]:
    """Title, description and keywords, by their columns; XMP goes before IPTC, and IPTC before EXIF.

    Each is None where the file has none. Keywords are joined by semicolons.
    """
    titles, descriptions, keywords = xmp_texts(xmp)
    titles += [*iptc.get(_TITLE, ()), *iptc.get(_HEADLINE, ()), _windows_text(main.get(ExifTags.Base.XPTitle))]
    descriptions += [*iptc.get(_CAPTION, ()), _text(main.get(270))]
    descriptions += [_windows_text(main.get(tag)) for tag in (ExifTags.Base.XPComment, ExifTags.Base.XPSubject)]
    if isinstance(comment := photo.get(ExifTags.Base.UserComment), bytes):
        code, text = comment[:8], comment[8:]
        if code == b"UNICODE\0":
            descriptions.append(text.decode("utf-16-le" if text[1:2] == b"\0" else "utf-16-be", "ignore"))
        elif code in (b"ASCII\0\0\0", bytes(8)):
            descriptions.append(_text(text))
    keywords += iptc.get(_KEYWORDS, ())
    keywords += _SEPARATORS.split(_windows_text(main.get(ExifTags.Base.XPKeywords)))
    return dict(zip(EMBEDDED, one_line_each(titles, descriptions, keywords), strict=True))


def xmp_texts(xmp: Xmp) -> tuple[list[str], list[str], list[str]]:
    """Titles, descriptions and keywords of a packet or sidecar; of keywords in levels each level is one.

    Levels: Lightroom's `Animals|Birds|Heron`, digiKam's and Windows' `Animals/Birds/Heron`.
    """
    levels = [re.split(sign, tag) for name, sign in _LEVELS.items() for tag in xmp.get(name, ())]
    keywords = [*xmp.get("dc:subject", ()), *(level for tag in levels for level in tag)]
    titles, descriptions = (
        [text for name in names for text in xmp.get(name, ())]
        for names in (("dc:title", "photoshop:Headline"), ("dc:description", "tiff:ImageDescription"))
    )
    return titles, descriptions, keywords


def one_line_each(
    titles: Iterable[str], descriptions: Iterable[str], keywords: Iterable[str]
) -> tuple[str | None, str | None, str | None]:
    """The first title and the first description that say something, and all keywords, joined."""
    joined = "; ".join(dict.fromkeys(_clean(keywords)))[:MOST]
    return next(_clean(titles), None), next(_clean(descriptions), None), joined or None


def _clean(texts: Iterable[str]) -> Iterator[str]:
    """The texts that say something."""
    return (line for text in texts if not _OF_CAMERAS.fullmatch(line := one_line(text)))


def one_line(text: Any, most: int = MOST) -> str:
    """A text on one line and without what no table can hold; empty for other values."""
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    plain = re.sub(r"[^ -~\u00a0-\ud7ff\ue000-\U0010ffff]", " ", text) if isinstance(text, str) else ""
    return " ".join(plain.split())[:most]


def _text(value: Any) -> str:
    """EXIF promises ASCII and programs write UTF-8, which Pillow reads as Latin-1."""
    data = value
    with suppress(UnicodeError):
        data = value.encode("latin-1") if isinstance(value, str) else value
        return data.decode() if isinstance(data, bytes) else ""
    return data.decode("latin-1") if isinstance(data, bytes) else str(value)


def _windows_text(value: Any) -> str:
    """The texts of Windows, in UTF-16 with a zero at the end."""
    if isinstance(value, tuple) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
        value = bytes(value)
    return value.decode("utf-16-le", "ignore").rstrip("\0") if isinstance(value, bytes) else ""


# -- XMP, in a file or beside it: XMP Specification Part 1 (ISO 16684-1) -------------------------------------

MOST_BYTES = 4 << 20  # a sidecar with the history of a raw developer has some hundred thousand
_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_NAMESPACES = {
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://ns.adobe.com/exif/1.0/": "exif",
    "http://ns.adobe.com/lightroom/1.0/": "lr",
    "http://ns.adobe.com/photoshop/1.0/": "photoshop",
    "http://ns.adobe.com/tiff/1.0/": "tiff",
    "http://ns.adobe.com/xap/1.0/": "xmp",
    "http://ns.microsoft.com/photo/1.0/": "MicrosoftPhoto",
    "http://www.digikam.org/ns/1.0/": "digiKam",
}
_LEVELS = {"lr:hierarchicalSubject": r"\|", "digiKam:TagsList": "/", "MicrosoftPhoto:LastKeywordXMP": "/"}
# The day of the photo, the best first
DATES = ("exif:DateTimeOriginal", "photoshop:DateCreated", "exif:DateTimeDigitized", "xmp:CreateDate")
_DEGREES = re.compile(r"([0-9]{1,3}),([0-9]{1,2}(?:\.[0-9]+)?)(?:,([0-9]{1,2}(?:\.[0-9]+)?))?([NSEW])")


class _Builder(ET.TreeBuilder):
    # Entities could grow to any size; nothing else is fetched or expanded
    def doctype(self, *_: str | None) -> None:
        raise ValueError("declares a document type, which no XMP does; move it away")


def parse_xmp(data: bytes, with_comments: bool = False) -> ET.Element:
    """The tree of a packet or sidecar; `ValueError` for what is not XML, or too large."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"is larger than {MOST_BYTES >> 20} MB")
    try:
        return ET.fromstring(data, ET.XMLParser(target=_Builder(insert_comments=with_comments)))
    except (ET.ParseError, LookupError) as error:  # an encoding that nobody knows
        raise ValueError(f"is not XML ({error}); move it away") from None


def read_xmp(data: bytes) -> Xmp:
    """The values that eyespot may use, simple ones and lists alike; `ValueError` as `parse_xmp`."""
    found: Xmp = {}
    for element in parse_xmp(data).iter():
        named = [*element.attrib.items()]
        # Items lie two levels down, in a list; all further ones would take quadratic time in a hostile file
        items = [item.text or "" for item in element.iterfind(f"*/{_RDF}li")]
        named += [(element.tag, text) for text in items or [element.text or ""]]
        for name, text in named:
            namespace, _, local = name.removeprefix("{").partition("}")
            if text.strip() and (prefix := _NAMESPACES.get(namespace)):
                found.setdefault(f"{prefix}:{local}", []).append(text)
    return found


def degrees_in(xmp: Xmp) -> tuple[float, float] | None:
    """Latitude and longitude of `48,51.5N` and `2,17,42E`."""
    found = [_DEGREES.fullmatch(next(iter(xmp.get(f"exif:GPS{name}", ())), "")) for name in ("Latitude", "Longitude")]
    values = [
        (float(match[1]) + float(match[2]) / 60 + float(match[3] or 0) / 3600) * (-1 if match[4] in "SW" else 1)
        for match in found
        if match
    ]
    return (values[0], values[1]) if len(values) == 2 else None


def rating_in(xmp: Xmp) -> int | None:
    """The stars, 0 to 5, or -1 for a rejected photo."""
    with suppress(ValueError, OverflowError):
        rating = int(float(xmp.get("xmp:Rating", [""])[0]))
        return rating if -1 <= rating <= 5 else None
    return None


# -- all facts of a file ----------------------------------------------------------------------------------------

_TURNS = {  # what undoes each EXIF orientation; 1 and anything unknown is upright
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_XMP = 700  # the tag of a packet in TIFF and DNG
_SHORT = 100  # characters of a maker, a model and a time


@dataclass(frozen=True)
class Exif:
    """The tags of a picture that was loaded."""

    main: dict[int, Any]
    photo: dict[int, Any]
    position: dict[int, Any]
    orientation: int  # 1 to 8, of the pixels as Pillow gives them: some of its readers turn the picture themselves
    xmp: Xmp
    iptc: Iptc
    png_time: str

    @classmethod
    def of(cls, image: Image.Image, of_file: Image.Exif | None = None) -> Exif:
        """The tags of each block that can be read, of a picture, or of the RAW file whose preview it is."""
        main: dict[int, Any] = {}
        photo: dict[int, Any] = {}
        position: dict[int, Any] = {}
        for tags, block in ((main, None), (photo, ExifTags.IFD.Exif), (position, ExifTags.IFD.GPSInfo)):
            with suppress(Exception):
                exif = of_file or image.getexif()
                tags.update(dict(exif if block is None else exif.get_ifd(block)))
        orientation = main.get(ExifTags.Base.Orientation)
        if not isinstance(orientation, int) or orientation not in _TURNS:
            orientation = 1
        info: Mapping[Any, Any] = {} if of_file else image.info
        packet = info.get("xmp") or info.get("XML:com.adobe.xmp") or main.get(_XMP)
        xmp: Xmp = {}
        with suppress(ValueError, TypeError):
            data = packet.encode("utf-8", "replace") if isinstance(packet, str) else bytes(memoryview(packet or b""))
            xmp = read_xmp(data.strip(b"\0 \n\r\t"))
        iptc: Iptc = {}
        with suppress(Exception):
            found = {} if of_file else IptcImagePlugin.getiptcinfo(cast(ImageFile.ImageFile, image)) or {}
            lists = {key: value if isinstance(value, list) else [value] for key, value in found.items()}
            iptc = {key: [_text(text) for text in texts if isinstance(text, bytes)] for key, texts in lists.items()}
        return cls(main, photo, position, orientation, xmp, iptc, one_line(info.get("Creation Time"), _SHORT))

    def upright(self, image: Image.Image) -> Image.Image:
        """The picture these tags belong to, turned and flipped as they say, without any metadata."""
        turn = _TURNS.get(self.orientation)
        upright = image if turn is None else image.transpose(turn)
        upright.info = {}  # or whoever saves it would hand on the EXIF, the comment and the colour profile
        return upright

    def facts(self, size: tuple[int, int], format: str) -> dict[str, Any]:
        """What is known of a picture of this size, (width, height), and format, by columns.

        `width` and `height` in pixels of the upright picture, `format` as Pillow calls it. Where the file says so:
        `taken`, the camera's local time; `latitude` and `longitude`, degrees north and east, never one alone; `camera`;
        texts and a rating; `date_changed`, when a program last changed it; and the columns of `provenance.py`.
        """
        width, height = size[::-1] if self.orientation > 4 else size  # on their side
        make, model = (one_line(self.main.get(tag), _SHORT) for tag in (ExifTags.Base.Make, ExifTags.Base.Model))
        changes = [one_line(self.main.get(ExifTags.Base.DateTime)), *self.xmp.get("xmp:ModifyDate", ())]
        changed = next(filter(None, (read_date(text, "") for text in changes)), None)
        tags, gps = self.position, ExifTags.GPS
        latitude = _degrees(tags.get(gps.GPSLatitude), tags.get(gps.GPSLatitudeRef), "NS")
        longitude = _degrees(tags.get(gps.GPSLongitude), tags.get(gps.GPSLongitudeRef), "EW")
        void = one_line(tags.get(gps.GPSStatus)).upper().startswith("V")
        stars = self.main.get(ExifTags.Base.Rating)
        rated = rating_in(self.xmp) if "xmp:Rating" in self.xmp or stars not in range(6) else stars
        facts: dict[str, Any] = {
            "camera": camera_name(make, model),
            **embedded_texts(self.xmp, self.iptc, self.main, self.photo),
        }
        facts |= {CHANGED: changed and changed["taken"].isoformat(), RATING: rated}
        facts |= best_position({"GPS": (latitude, longitude), "XMP": degrees_in(self.xmp)}, void)
        known = {name: value for name, value in facts.items() if value not in (None, "")}
        return known | best_date(self._dates()) | {"width": width, "height": height, "format": format}

    def _dates(self) -> dict[str, list[str]]:
        """What the file says of when it was taken, by source."""
        blocks, tags = (self.photo, self.main), ExifTags.Base
        png = self.png_time
        with suppress(ValueError, TypeError, IndexError):  # "Sun, 06 May 2001 07:08:09 +0000"
            png = parsedate_to_datetime(png).isoformat()
        stamp, time = self.position.get(ExifTags.GPS.GPSDateStamp), self.position.get(ExifTags.GPS.GPSTimeStamp)
        clock = ""
        with suppress(TypeError, ValueError, ArithmeticError):
            clock = ":".join(f"{int(float(part)):02d}" for part in time or ())
        iptc = []
        for fields in ((55, 60), (62, 63)):  # created, and digitised; the time is 070809+0200
            day, clock_time = ("".join(self.iptc.get((2, number), ())[:1]) for number in fields)
            hours = ":".join(clock_time[at : at + 2] for at in (0, 2, 4))
            iptc.append(f"{day[:4]}-{day[4:6]}-{day[6:8]} {hours}")
        return {
            "camera": [one_line(block.get(tags.DateTimeOriginal)) for block in blocks],
            "digitised": [one_line(block.get(tags.DateTimeDigitized)) for block in blocks],
            "XMP": [text for name in DATES for text in self.xmp.get(name, ())],
            "IPTC": iptc,
            "PNG": [png],
            "GPS (UTC)": [f"{one_line(stamp)} {clock}"],
        }


def camera_name(make: str, model: str) -> str:
    """A camera by its maker and model, which often names the maker: "NIKON CORPORATION", "NIKON D90"."""
    named = bool(make) and model.lower().startswith(make.lower().split()[0])
    return (model if named else f"{make} {model}").strip()


def _degrees(parts: Any, reference: Any, signs: str) -> float | None:
    """Degrees, minutes, seconds to degrees; None without a hemisphere, which would be wrong for half the world."""
    sign = {signs[0]: 1.0, signs[1]: -1.0}.get(one_line(reference)[:1].upper())
    if sign is None or not isinstance(parts, tuple):
        return None
    with suppress(TypeError, ValueError, ArithmeticError):
        value = sum(float(part) / 60**power for power, part in enumerate(parts))
        return sign * value if value >= 0 else None  # neither NaN, from a zero denominator, nor a second sign
    return None
