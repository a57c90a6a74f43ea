"""How much memory decoding may take: an estimate for each picture, and one budget that all threads share.

The estimates are measured peaks of Pillow 12 and 13 and pillow-heif 1.8 in bytes a pixel, rounded up;
tests/photos/test_memory.py holds them against the peaks of the versions that are installed.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from PIL import ExifTags, ImageFile

from eyespot.photos.colours import LARGE, conversion_bytes, reduced
from eyespot.storage.systems import group_limits, physical_memory
from eyespot.types import UsageError

VARIABLE = "EYESPOT_DECODE_MEMORY"
MOST, LEAST = 2 << 30, 512 << 20  # of the default
UNKNOWN = 4 << 30  # bytes of a machine that does not say how many it has
_UNITS = {"M": 1 << 20, "G": 1 << 30}
_TRIMMED = 32 << 20  # bytes from which on freed memory goes back to the system
_POINTER = 8  # bytes: Pillow keeps one to each row of an image
_THIN = 384  # pixels of the shorter side that an encoder scales to, with all of the longer one


class MemoryBudget:
    """Bytes that threads share: who asks for more than is free waits, first come, first served."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._used = 0

    @contextmanager
    def reserve(self, size: int, limit: int) -> Iterator[None]:
        """Hold `size` bytes, at most `limit`, until the block ends."""
        ticket, taken = object(), min(size, limit)
        with self._changed:
            self._waiting.append(ticket)
            try:
                self._changed.wait_for(lambda: self._waiting[0] is ticket and self._used + taken <= limit)
                self._used += taken
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()  # the next in line may fit as well
        try:
            yield
        finally:
            if size > _TRIMMED:
                _malloc_trim()(0)
            with self._changed:
                self._used -= taken
                self._changed.notify_all()


def decode_limit() -> int:
    """Bytes that decoding may take in all threads together: EYESPOT_DECODE_MEMORY, else a share of what is free.

    Raises UsageError for a value that is not a size.
    """
    text = os.environ.get(VARIABLE)
    if text is None:
        return _DEFAULT()
    size = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([MG])(?:i?B)?", text.strip(), re.IGNORECASE)
    if size is None or float(size[1]) == 0:
        raise UsageError(f"{VARIABLE}, or index --memory, is a size such as 800M or 2G, not {text!r}")
    return int(float(size[1]) * _UNITS[size[2].upper()])


def as_size(size: int) -> str:
    """Bytes as `decode_limit` reads them, rounded up: 800M, 2.5G."""
    unit = "G" if size >= _UNITS["G"] else "M"
    return f"{math.ceil(10 * size / _UNITS[unit]) / 10:g}{unit}"


@cache
def _malloc_trim() -> Callable[[int], int]:
    """Gives freed memory back: glibc keeps it for each thread, which comes to several times what is in use."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
        return trim
    except (AttributeError, OSError, TypeError):
        return lambda _: 0  # another C library


def free_memory() -> int:
    """Bytes that the machine has free, or that a container allows if that is less."""
    limits = [(physical_memory() or UNKNOWN) // 2]
    with suppress(OSError, AttributeError):
        free = re.search(r"MemAvailable: +([0-9]+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
        limits = [int(free[1]) << 10]  # type: ignore[index]
    for name in ("memory.max", "memory.limit_in_bytes"):
        limits += [int(limit) for limit in group_limits("memory", name) if limit.strip() != "max"]
    return min(limits)


# Half of what is free when the first picture is decoded, within bounds
_DEFAULT = cache(lambda: max(LEAST, min(MOST, free_memory() // 2)))


# -- what a picture takes -----------------------------------------------------------------------------------


def bytes_to_decode(image: ImageFile.ImageFile, data: bytes, full: tuple[int, int], factor: int) -> int:
    """The peak of decoding an opened, perhaps drafted picture of `full` pixels, and of making it upright RGB.

    factor: how many pixels become one on the way to RGB.
    """
    pixels, at_full = math.prod(image.size), math.prod(full)
    # Bytes a pixel of the decoder besides the image that it fills: at its peak, and for as long as the image lives
    peak, stays = 0.0, 0.0
    if image.format in ("JPEG", "MPO"):
        peak = 2.0 * len(image.getbands()) if _keeps_coefficients(image, data) else 0.0
    elif image.format == "TIFF":
        # libtiff decodes a strip or tile at a time, and one strip may be the whole picture
        tags = getattr(image, "tag_v2", {})
        bits = tags.get(ExifTags.Base.BitsPerSample, (8,))
        samples = max(len(bits), int(tags.get(ExifTags.Base.SamplesPerPixel, 1)))
        strip = samples * max(bits) / 8
        inside = {"jpeg": 2.0 * samples, "tiff_jpeg": 2.0 * samples, "webp": 13.0}
        peak = strip + inside.get(str(image.info.get("compression")), 0.0)
    elif image.format == "HEIF":
        peak, stays = 16.0 if image.info.get("bit_depth", 8) > 8 else 7.0, 1.0
    elif image.format == "WEBP":
        peak, stays = 13.0, 9.0
    elif image.format == "AVIF":
        peak, stays = 16.0, 8.0
    # Pillow takes four bytes for three colours too
    own = {"1": 1, "L": 1, "P": 1}.get(image.mode, 2 if image.mode.startswith("I;16") else 4) * pixels
    pointers = _POINTER * max(full)
    images = 2 if pixels > LARGE else 4 if image.has_transparency_data else 3  # that live while colours are converted
    decoding = own + peak * at_full + pointers
    converting = own + stays * at_full + conversion_bytes(image, factor) + images * pointers
    turning = 2 * (4 * math.prod(reduced(image.size, factor)) + pointers)
    return int(max(decoding, converting, turning))


def bytes_to_read(size: tuple[int, int]) -> int:
    """The peak of an encoder's own preprocessing of a picture in full: processors of transformers make floats of it."""
    shorter, longer = sorted(size)
    return 4 * shorter * longer + 12 * max(shorter * longer, _THIN * _THIN * longer // shorter)


def _keeps_coefficients(image: ImageFile.ImageFile, data: bytes) -> bool:
    """Whether libjpeg holds the whole picture while it reads: it does where colours or details come one by one."""
    at = 2
    while not image.info.get("progressive") and at + 4 < len(data) and data[at] == 0xFF:
        if data[at + 1] == 0xDA:  # the first scan; then comes its length and how many colours it holds
            return data[at + 4] < len(image.getbands())
        at += 1 if data[at + 1] == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4])
    return True
