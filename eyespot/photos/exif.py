"""What a file says about its picture: when, where and with which camera it was taken, which side is up, and texts."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from PIL import ExifTags, Image

from eyespot.photos.embedded_texts import EmbeddedTexts


class Tagged(Protocol):
    """What has EXIF tags, as Pillow's images have them."""

    def getexif(self) -> Image.Exif: ...


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


_TURNS = {  # what undoes each EXIF orientation; 1 and anything unknown is upright
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SIDEWAYS = (5, 6, 7, 8)


@dataclass(frozen=True)
class Exif:
    """The tags of a picture that was loaded; a damaged EXIF block costs the facts in it, never the picture."""

    main: dict[int, Any]
    photo: dict[int, Any]
    position: dict[int, Any]
    orientation: int  # 1 to 8, of the pixels as Pillow gives them: some of its readers turn the picture themselves
    texts: EmbeddedTexts

    @classmethod
    def of(cls, image: Tagged) -> Exif:
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
        return cls(main, photo, position, orientation, EmbeddedTexts.of(image, main, photo))

    def upright(self, image: Image.Image) -> Image.Image:
        """The picture these tags belong to, turned and flipped as they say, without any metadata."""
        turn = _TURNS.get(self.orientation)
        upright = image if turn is None else image.transpose(turn)
        upright.info = {}  # or whoever saves it would hand on the EXIF, the comment and the colour profile
        return upright

    def facts(self, size: tuple[int, int], format: str) -> PictureFacts:
        width, height = size[::-1] if self.orientation in _SIDEWAYS else size
        tags = self.position
        latitude = _degrees(tags.get(ExifTags.GPS.GPSLatitude), tags.get(ExifTags.GPS.GPSLatitudeRef), "NS")
        longitude = _degrees(tags.get(ExifTags.GPS.GPSLongitude), tags.get(ExifTags.GPS.GPSLongitudeRef), "EW")
        if latitude is None or longitude is None or abs(latitude) > 90 or abs(longitude) > 180:
            latitude, longitude = None, None
        taken = _time(self.photo.get(ExifTags.Base.DateTimeOriginal)) or _time(self.main.get(ExifTags.Base.DateTime))
        make, model = _clean(self.main.get(ExifTags.Base.Make)), _clean(self.main.get(ExifTags.Base.Model))
        named = bool(make) and model.lower().startswith(make.lower().split()[0])  # "NIKON CORPORATION", "NIKON D90"
        camera = (model if named else f"{make} {model}".strip()) or None
        return PictureFacts(width, height, taken, latitude, longitude, camera, format, *self.texts)


def _clean(text: Any) -> str:
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    return " ".join(re.sub(r"[^ -~\u00a0-\U0010ffff]", " ", text).split())[:100] if isinstance(text, str) else ""


def _time(text: Any) -> datetime | None:
    """EXIF writes 2021:05:31 18:02:11; some programs use dashes, append fractions or a zone, or leave it blank."""
    parts = re.match(r"([0-9]{4})[:/-]([0-9]{2})[:/-]([0-9]{2})[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})", _clean(text))
    with suppress(ValueError):
        return datetime(*map(int, parts.groups())) if parts else None  # type: ignore[arg-type]
    return None


def _degrees(parts: Any, reference: Any, signs: str) -> float | None:
    """Degrees, minutes, seconds to degrees; None without a hemisphere, which would be wrong for half the world."""
    sign = {signs[0]: 1.0, signs[1]: -1.0}.get(_clean(reference)[:1].upper())
    if sign is None or not isinstance(parts, tuple):
        return None
    with suppress(TypeError, ValueError, ArithmeticError):
        value = sum(float(part) / 60**power for power, part in enumerate(parts))
        return sign * value if value >= 0 else None  # neither NaN, from a zero denominator, nor a second sign
    return None
