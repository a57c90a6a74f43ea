"""What a file says about its picture: when, where and with which camera it was taken, which side is up, and texts."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from PIL import ExifTags, Image

from eyespot.photos.embedded_texts import DATES, Iptc, Xmp, degrees_in, embedded_texts, read_iptc, read_xmp
from eyespot.photos.provenance import best_date, best_position, read_date
from eyespot.photos.raw import RawPreview


@dataclass(frozen=True)
class PictureFacts:
    """What a file says about its picture; sizes in pixels of the upright picture at full scale."""

    width: int
    height: int
    taken: datetime | None  # the camera's local time; EXIF seldom knows the zone, so none is given
    latitude: float | None  # degrees, north positive
    longitude: float | None  # degrees, east positive; there only together with the latitude
    camera: str | None
    format: str  # Pillow's name: "JPEG", "PNG", ...
    embedded_title: str | None = None  # these three by EXIF, IPTC or XMP
    embedded_description: str | None = None
    embedded_keywords: str | None = None  # joined by semicolons
    taken_from: str | None = None  # what says when and where it was taken: `provenance.py`
    position_from: str | None = None
    date_changed: str | None = None  # when a program last changed the picture, in ISO's spelling
    gps_doubtful: str | None = None  # a position that is none, and why
    pages: int | None = None  # of a TIFF file of several, of which the first is read


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
    def of(cls, image: Image.Image | RawPreview) -> Exif:
        """The tags of each block that can be read, of a picture or of a RAW file."""
        main: dict[int, Any] = {}
        photo: dict[int, Any] = {}
        position: dict[int, Any] = {}
        for tags, block in ((main, None), (photo, ExifTags.IFD.Exif), (position, ExifTags.IFD.GPSInfo)):
            with suppress(Exception):
                exif = image.getexif()
                tags.update(dict(exif if block is None else exif.get_ifd(block)))
        orientation = main.get(ExifTags.Base.Orientation)
        if not isinstance(orientation, int) or orientation not in _TURNS:
            orientation = 1
        info = image.info if isinstance(image, Image.Image) else {}  # which a RAW file lacks
        packet = info.get("xmp") or info.get("XML:com.adobe.xmp") or main.get(_XMP)
        xmp: Xmp = {}
        with suppress(ValueError, TypeError):
            data = packet.encode("utf-8", "replace") if isinstance(packet, str) else bytes(memoryview(packet or b""))
            xmp = read_xmp(data.strip(b"\0 \n\r\t"))
        iptc = read_iptc(image) if isinstance(image, Image.Image) else {}
        return cls(main, photo, position, orientation, xmp, iptc, _clean(info.get("Creation Time")))

    def upright(self, image: Image.Image) -> Image.Image:
        """The picture these tags belong to, turned and flipped as they say, without any metadata."""
        turn = _TURNS.get(self.orientation)
        upright = image if turn is None else image.transpose(turn)
        upright.info = {}  # or whoever saves it would hand on the EXIF, the comment and the colour profile
        return upright

    def facts(self, size: tuple[int, int], format: str) -> PictureFacts:
        """What is known of a picture of this size, (width, height), and format."""
        width, height = size[::-1] if self.orientation > 4 else size  # on their side
        make, model = _clean(self.main.get(ExifTags.Base.Make)), _clean(self.main.get(ExifTags.Base.Model))
        named = bool(make) and model.lower().startswith(make.lower().split()[0])  # "NIKON CORPORATION", "NIKON D90"
        camera = (model if named else f"{make} {model}".strip()) or None
        date = best_date(self._dates())
        changes = [_clean(self.main.get(ExifTags.Base.DateTime)), *self.xmp.get("xmp:ModifyDate", ())]
        changed = next(filter(None, (read_date(text, "") for text in changes)), None)
        tags, gps = self.position, ExifTags.GPS
        latitude = _degrees(tags.get(gps.GPSLatitude), tags.get(gps.GPSLatitudeRef), "NS")
        longitude = _degrees(tags.get(gps.GPSLongitude), tags.get(gps.GPSLongitudeRef), "EW")
        void = _clean(tags.get(gps.GPSStatus)).upper().startswith("V")
        texts: dict[str, Any] = dict(embedded_texts(self.xmp, self.iptc, self.main, self.photo))
        place = best_position({"GPS": (latitude, longitude), "XMP": degrees_in(self.xmp)}, void)
        return PictureFacts(
            width=width,
            height=height,
            taken=date.when if date else None,
            latitude=place.pop("latitude", None),
            longitude=place.pop("longitude", None),
            camera=camera,
            format=format,
            taken_from=date.source if date else None,
            date_changed=changed.when.isoformat() if changed else None,
            **place,
            **texts,
        )

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
            "camera": [_clean(block.get(tags.DateTimeOriginal)) for block in blocks],
            "digitised": [_clean(block.get(tags.DateTimeDigitized)) for block in blocks],
            "XMP": [text for name in DATES for text in self.xmp.get(name, ())],
            "IPTC": iptc,
            "PNG": [png],
            "GPS (UTC)": [f"{_clean(stamp)} {clock}"],
        }


def _clean(text: Any) -> str:
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    return " ".join(re.sub(r"[^ -~\u00a0-\U0010ffff]", " ", text).split())[:100] if isinstance(text, str) else ""


def _degrees(parts: Any, reference: Any, signs: str) -> float | None:
    """Degrees, minutes, seconds to degrees; None without a hemisphere, which would be wrong for half the world."""
    sign = {signs[0]: 1.0, signs[1]: -1.0}.get(_clean(reference)[:1].upper())
    if sign is None or not isinstance(parts, tuple):
        return None
    with suppress(TypeError, ValueError, ArithmeticError):
        value = sum(float(part) / 60**power for power, part in enumerate(parts))
        return sign * value if value >= 0 else None  # neither NaN, from a zero denominator, nor a second sign
    return None
