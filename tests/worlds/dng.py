"""A DNG made by hand: a sensor's 16-bit mosaic, and a preview as a JPEG, as the DNG specification has them."""

from __future__ import annotations

import struct
from io import BytesIO

import numpy as np
from PIL import Image

_BYTE, _ASCII, _SHORT, _LONG, _RATIONAL, _SRATIONAL = 1, 2, 3, 4, 5, 10
Entry = tuple[int, int, int, bytes]


def _entry(tag: int, kind: int, *values: int | str) -> Entry:
    if kind == _ASCII:
        text = str(values[0]).encode() + b"\0"
        return tag, kind, len(text), text
    forms = {_BYTE: "B", _SHORT: "H", _LONG: "I", _RATIONAL: "II", _SRATIONAL: "ii"}
    pairs = [(value, 1) if kind in (_RATIONAL, _SRATIONAL) else (value,) for value in values]
    return tag, kind, len(values), b"".join(struct.pack("<" + forms[kind], *pair) for pair in pairs)


def _directory(entries: list[Entry], at: int) -> bytes:
    """A directory at this place of the file, with the values that do not fit into it behind it."""
    head, behind = struct.pack("<H", len(entries)), b""
    start = at + 2 + 12 * len(entries) + 4
    for tag, kind, count, value in sorted(entries):
        if len(value) > 4:
            place = struct.pack("<I", start + len(behind))
            behind += value + b"\0" * (len(value) % 2)
        else:
            place = value.ljust(4, b"\0")
        head += struct.pack("<HHI", tag, kind, count) + place
    return head + struct.pack("<I", 0) + behind


def dng(preview: Image.Image | None, size: tuple[int, int] = (640, 480), orientation: int = 1) -> bytes:
    """The bytes of a DNG whose sensor has `size` pixels; its preview lies as the sensor does."""
    width, height = size
    y, x = np.mgrid[0:height, 0:width]
    mosaic = ((x * 90 + y * 60) % 60_000).astype("<u2").tobytes()
    jpeg = BytesIO()
    if preview is not None:
        preview.save(jpeg, "JPEG", quality=90)
    body = jpeg.getvalue() + b"\0" * (len(jpeg.getvalue()) % 2)
    first, strip = 8, 8 + 4096
    sub = strip + len(mosaic) + len(body)
    sensor = [
        _entry(254, _LONG, 0),
        *(_entry(tag, _LONG, value) for tag, value in ((256, width), (257, height), (273, strip), (279, len(mosaic)))),
        *(_entry(tag, _SHORT, value) for tag, value in ((258, 16), (259, 1), (262, 32803), (277, 1), (284, 1))),
        _entry(278, _LONG, height),
        _entry(33421, _SHORT, 2, 2),
        _entry(33422, _BYTE, 0, 1, 1, 2),
        _entry(50717, _LONG, 65535),
    ]
    about = [
        _entry(271, _ASCII, "Eyespot"),
        _entry(272, _ASCII, "Hand Made 1"),
        _entry(274, _SHORT, orientation),
        _entry(306, _ASCII, "2021:05:31 18:02:11"),
        _entry(50706, _BYTE, 1, 4, 0, 0),
        _entry(50707, _BYTE, 1, 1, 0, 0),
        _entry(50708, _ASCII, "Hand Made 1"),
        _entry(50721, _SRATIONAL, 1, 0, 0, 0, 1, 0, 0, 0, 1),
        _entry(50728, _RATIONAL, 1, 1, 1),
        _entry(50778, _SHORT, 21),
    ]
    if preview is None:
        entries = sensor + about
    else:
        sizes = ((256, preview.width), (257, preview.height), (273, strip + len(mosaic)), (279, len(jpeg.getvalue())))
        shorts = ((259, 7), (262, 6), (277, 3), (284, 1))
        entries = [_entry(254, _LONG, 1), *(_entry(tag, _LONG, value) for tag, value in sizes), *about]
        entries += [_entry(tag, _SHORT, value) for tag, value in shorts]
        entries += [_entry(258, _SHORT, 8, 8, 8), _entry(278, _LONG, preview.height), _entry(330, _LONG, sub)]
    head = struct.pack("<2sHI", b"II", 42, first) + _directory(entries, first)
    return head.ljust(strip, b"\0") + mosaic + body + (_directory(sensor, sub) if preview is not None else b"")
