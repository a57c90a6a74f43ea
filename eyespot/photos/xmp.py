"""What XMP says of a photo, in the file or beside it. Source: XMP Specification Part 1 (ISO 16684-1).

A document type is refused, for its entities could grow to any size; nothing else is fetched or expanded.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

MOST_BYTES = 4 << 20  # a sidecar with the history of a raw developer has some hundred thousand
_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_NAMESPACES = {
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://ns.adobe.com/exif/1.0/": "exif",
    "http://ns.adobe.com/photoshop/1.0/": "photoshop",
    "http://ns.adobe.com/xap/1.0/": "xmp",
}
# The day of the photo, the best first
DATES = ("exif:DateTimeOriginal", "photoshop:DateCreated", "exif:DateTimeDigitized", "xmp:CreateDate")
_DEGREES = re.compile(r"([0-9]{1,3}),([0-9]{1,2}(?:\.[0-9]+)?)(?:,([0-9]{1,2}(?:\.[0-9]+)?))?([NSEW])")

Xmp = dict[str, list[str]]
"""Values by their names, such as `dc:subject`; of alternatives in languages the default comes first, as in the file."""


class _Builder(ET.TreeBuilder):
    def doctype(self, *_: str | None) -> None:
        raise ValueError("declares a document type, which no XMP does; move it away")


def parse_xmp(data: bytes, with_comments: bool = False) -> ET.Element:
    """The tree of a packet or sidecar; `ValueError` for what is no XML, or too large."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"is larger than {MOST_BYTES >> 20} MB")
    try:
        return ET.fromstring(data, ET.XMLParser(target=_Builder(insert_comments=with_comments)))
    except (ET.ParseError, LookupError) as error:  # an encoding that nobody knows
        raise ValueError(f"is no XML ({error}); move it away") from None


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
