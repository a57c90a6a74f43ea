"""What a file says about its picture: when, where and with which camera it was taken, which side is up, and texts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from PIL import ExifTags, Image

from eyespot.photos.embedded_texts import (
    DATES,
    RATING,
    Iptc,
    Xmp,
    degrees_in,
    embedded_texts,
    one_line,
    rating_in,
    read_iptc,
    read_xmp,
)
from eyespot.photos.provenance import CHANGED, best_date, best_position, read_date

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
    """The tags of a picture that was loaded; a damaged EXIF block costs the facts in it, never the picture."""

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
        blocks: list[dict[int, Any]] = [{}, {}, {}]
        for tags, block in zip(blocks, (None, ExifTags.IFD.Exif, ExifTags.IFD.GPSInfo), strict=True):
            with suppress(Exception):
                exif = of_file or image.getexif()
                tags.update(dict(exif if block is None else exif.get_ifd(block)))
        orientation = blocks[0].get(ExifTags.Base.Orientation)
        if not isinstance(orientation, int) or orientation not in _TURNS:
            orientation = 1
        info: Mapping[Any, Any] = {} if of_file else image.info
        packet = info.get("xmp") or info.get("XML:com.adobe.xmp") or blocks[0].get(_XMP)
        xmp: Xmp = {}
        with suppress(ValueError, TypeError):
            data = packet.encode("utf-8", "replace") if isinstance(packet, str) else bytes(memoryview(packet or b""))
            xmp = read_xmp(data.strip(b"\0 \n\r\t"))
        iptc = {} if of_file else read_iptc(image)
        return cls(*blocks, orientation, xmp, iptc, one_line(info.get("Creation Time"), _SHORT))

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
        facts = {"camera": camera_name(make, model), **embedded_texts(self.xmp, self.iptc, self.main, self.photo)}
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
