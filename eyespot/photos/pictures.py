"""From the bytes of a file to an upright RGB picture and its facts, or to one short reason why not.

The bytes come from anywhere: phones, scanners, the web, someone who means harm. A picture that cannot be read in full
is not a picture here: half a photo would be indexed as something it is not.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import re
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from io import BytesIO
from typing import Any, TypeAlias

from PIL import ExifTags, Image, ImageFile

from eyespot.photos.colours import LARGE, add_low_bytes, read_code_points, srgb_transform, to_rgb
from eyespot.photos.embedded_facts import Exif
from eyespot.photos.kinds import HEAD, is_picture, reads_raw
from eyespot.photos.memory import VARIABLE, MemoryBudget, as_size, bytes_to_decode, bytes_to_read, decode_limit
from eyespot.photos.raw import is_raw, raw_preview
from eyespot.types import EyespotError, UsageError

# Pillow warns about every odd tag of every odd file. Its warnings are silenced for its own modules only and behind
# every filter the user has set; `warnings.catch_warnings` around a call would not be safe with many reading threads.
warnings.filterwarnings("ignore", module=r"PIL\.", append=True)
logging.getLogger("PIL").addHandler(logging.NullHandler())  # or Python prints its errors where nobody set up logging


_OTHER_BYTE = {  # how Pillow is told to read the other byte of 16-bit colour
    "RGB;16L": "RGB;16B",
    "RGB;16B": "RGB;16L",
    "RGB;16N": "RGB;16B" if sys.byteorder == "little" else "RGB;16L",
}


_FRAMES = 10  # of an animation, among which one may show something
_OF_CODECS = ("decoder error", "Input/output error")  # what libheif and LibRaw call a damaged or cut file
_OF_PYTHON = (AttributeError, TypeError, LookupError, ArithmeticError, AssertionError, struct.error)


class BadPicture(EyespotError):
    """These bytes give no picture; `reason` says why in a few words, without a path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TooLarge(BadPicture):
    """A picture that may be sound, but takes more memory than there is for it."""


@dataclass(frozen=True, slots=True)
class DecodedPicture:
    """An upright RGB picture, free of its file and of metadata, and its facts by columns (`embedded_facts.py`)."""

    image: Image.Image
    facts: dict[str, Any]


def id_of(data: bytes) -> str:
    """The id of a picture: 32 hex digits (128 bits of SHA-256) of the file's bytes, whatever its name."""
    return hashlib.sha256(data).hexdigest()[:32]


def open_picture(data: bytes, min_side: int | None = None) -> DecodedPicture:
    """The first picture of a file, upright, in sRGB by its colour profile, over white where it is transparent.

    A profile that is broken is ignored. With `min_side` a JPEG, a picture above 25 megapixels, and one in another
    colour space may come at a reduced scale while its shorter side keeps at least that many pixels; the facts give the
    full size. Many threads may read at once: a picture waits until the others leave it enough of the memory that
    decoding may take (EYESPOT_DECODE_MEMORY). What callers then hold is their own affair; `picture_in_memory` is for
    those who soon let go of it.

    Raises BadPicture for everything that is not a whole picture of at most 150 megapixels (EYESPOT_MAX_PIXELS),
    TooLarge for one that takes more memory than decoding may, and UsageError if a variable is not a number.
    """
    with picture_in_memory(data, min_side) as opened:
        return opened


@contextmanager
def picture_in_memory(data: bytes, min_side: int | None = None) -> Iterator[DecodedPicture]:
    """What `open_picture` gives; its memory is counted until the block ends, with room to scale the picture down."""
    with ExitStack() as memory:
        try:
            with _LINES.caught():
                opened = _opened(data, min_side, memory)
        except EyespotError:
            raise
        except MemoryError as error:
            raise TooLarge("too large for the memory at hand") from error
        except Exception as error:  # Pillow's plugins raise a dozen kinds for damaged files, most of them undocumented
            if isinstance(error, Image.DecompressionBombError):
                text = f"over the limit of {_pixel_limit() / _MEGAPIXEL:g} megapixels"
            elif "not identified by this driver" in str(error):
                text = "damaged: its header gives no size or no colours"
            else:
                message = " ".join(re.sub("<[^>]*>|^b'|'$", "", str(error)).split())[:120]  # LibRaw's are bytes
                if not message.strip("-0123456789") or isinstance(error, _OF_PYTHON) or message.startswith(_OF_CODECS):
                    message = "its pixels cannot be decoded"
                text = f"{'truncated' if 'truncat' in message.lower() else 'damaged'}: {message}"
            raise BadPicture(text) from error
        yield opened


def thumbnail(data: bytes, side: int, quality: int = 85) -> bytes:
    """A JPEG in sRGB, at most `side` pixels wide and high, upright, without EXIF, comment or colour profile."""
    jpeg = BytesIO()
    with picture_in_memory(data, min_side=side) as opened:
        opened.image.thumbnail((side, side), Image.Resampling.LANCZOS)
        opened.image.save(jpeg, "JPEG", quality=quality, optimize=True)
        opened.image.close()  # here, while its memory is counted
    return jpeg.getvalue()


@contextmanager
def memory_for(need: int, size: tuple[int, int]) -> Iterator[None]:
    """Hold bytes of what decoding may take until the block ends; TooLarge for a picture that needs more."""
    limit = decode_limit()
    if need > limit:
        raise TooLarge(
            f"{size[0]} x {size[1]} pixels take {as_size(need)} of memory to decode, over the limit of"
            f" {as_size(limit)}; allow more with eyespot index --memory {as_size(need)}, or {VARIABLE}={as_size(need)}"
        )
    with _DECODING.reserve(need, limit):
        yield


def _opened(data: bytes, min_side: int | None, memory: ExitStack) -> DecodedPicture:
    raw = raw_preview(data, _pixel_limit()) if is_raw(data) and reads_raw() else None
    data, photo_size, tags_of_file = raw or (data, None, None)
    image = _recognised(data)
    pages = 1
    with suppress(Exception):  # of a damaged list of pages the first may be sound
        pages = int(getattr(image, "n_frames", 1)) if image.format == "TIFF" and not raw else 1
    read_code_points(image, data)
    # The size the header promises, before anything is decoded
    width, height = size = image.size
    # Pixels of one tile of a TIFF: a small picture may claim huge tiles, and libtiff decodes whole ones
    tags = getattr(image, "tag_v2", {})
    tile = int(tags.get(ExifTags.Base.TileWidth, 0)) * int(tags.get(ExifTags.Base.TileLength, 0))
    if max(width * height, tile) > _pixel_limit():
        raise BadPicture(f"{width} x {height} pixels, over the limit of {_pixel_limit() / _MEGAPIXEL:g} megapixels")
    factor, least = 1, max(1, min_side or 1)
    if min_side is not None:
        if image.format in ("JPEG", "MPO"):  # decoded at 1/2, 1/4 or 1/8 where its shorter side allows it
            image.draft("RGB", (least, least))
        # Of what is still large or has to be converted some pixels become one; the shorter side keeps `min_side`
        if image.width * image.height > LARGE or (image.mode in ("RGB", "CMYK") and srgb_transform(image)):
            factor = max(1, min(image.size) // least)
    need = max(bytes_to_decode(image, data, size, factor), bytes_to_read(image.size) if min_side is None else 0)
    memory.enter_context(memory_for(need, size))
    _load(image, data)
    # A preview lies as the sensor did; when and how the photo was taken, its file says
    exif = Exif.of(image, tags_of_file)
    rgb = to_rgb(image, factor)
    image.close()  # frees its pixels, for turning makes another copy
    facts = exif.facts(photo_size or size, "RAW" if raw else str(image.format))
    return DecodedPicture(exif.upright(rgb), facts | ({"pages": pages} if pages > 1 else {}))


def _load(image: ImageFile.ImageFile, data: bytes) -> None:
    """Decode the pixels; Pillow takes the high bytes of 16-bit colour, which are dark where it has 10 to 14 bits."""
    first = [tile.args if isinstance(tile.args, str) else str((tile.args or [""])[0]) for tile in image.tile]
    deep = image.mode == "RGB" and bool(first) and _OTHER_BYTE.keys() >= {*first}
    image.load()
    may_move = image.format in ("GIF", "PNG", "WEBP") and image.mode in ("L", "P", "RGB", "RGBA")
    blank = may_move and bool(image.getcolors(1))
    for frame in range(1, min(_FRAMES, getattr(image, "n_frames", 1))) if blank else ():
        image.seek(frame)
        image.load()
        if not image.getcolors(1):
            break
    if deep and max(most for _, most in image.getextrema()) < 64:  # type: ignore[misc]
        low = _recognised(data)
        for at, (tile, raw) in enumerate(zip(low.tile, first, strict=True)):
            rest = () if isinstance(tile.args, str) else (tile.args or ())[1:]
            low.tile[at] = tile._replace(args=(_OTHER_BYTE[raw], *rest) if rest else _OTHER_BYTE[raw])
        low.load()
        add_low_bytes(image, low)


# -- which formats ------------------------------------------------------------------------------------------

_Reader: TypeAlias = Callable[..., ImageFile.ImageFile]

_PLUGINS = {  # all that may be tried; never EPS, PSD, ...; MPO comes through JPEG
    "JPEG": "PIL.JpegImagePlugin",
    "PNG": "PIL.PngImagePlugin",
    "WEBP": "PIL.WebPImagePlugin",
    "GIF": "PIL.GifImagePlugin",
    "BMP": "PIL.BmpImagePlugin",
    "TIFF": "PIL.TiffImagePlugin",
    "AVIF": "PIL.AvifImagePlugin",
}


def _recognised(data: bytes) -> ImageFile.ImageFile:
    if not data:
        raise BadPicture("empty file")
    fault: Exception | None = None
    # `Image.open` is not used: its limit of pixels is one for the whole process, and it hides the size it refuses
    for reader, knows in _readers():
        if knows(data[:16]) is not True:  # a text here says that the reader is not compiled in
            continue
        try:
            return reader(BytesIO(data), "")
        except Exception as error:  # another reader may know the same first bytes: AVIF and HEIC share theirs
            fault = fault or error
    if fault and is_picture(data[:HEAD]):
        raise fault
    if data.startswith((b"\xff\x0a", b"\0\0\0\x0cJXL ")):  # a bare code stream, and one in boxes
        raise BadPicture("JPEG XL, which no library of eyespot reads; save it as JPEG or PNG, as djxl does")
    raise BadPicture(f"not a picture eyespot reads ({', '.join(_PLUGINS)}, HEIF)")


@cache
def _readers() -> list[tuple[_Reader, Callable[[bytes], bool | str]]]:
    """What may read a picture, each with what says whether it knows the first bytes of a file."""
    for module in _PLUGINS.values():
        import_module(module)
    pillow = [(reader, knows) for reader, knows in map(Image.OPEN.__getitem__, _PLUGINS) if knows is not None]
    # Which takes 0.1 s, so only on need
    return [*pillow, (lambda *of: import_module("pillow_heif").HeifImageFile(*of), lambda head: head[4:8] == b"ftyp")]


# -- what libraries print -----------------------------------------------------------------------------------


class _LibraryLines:
    """What LibRaw, libjpeg and libtiff print of a damaged file, without its name; the reason of the failure says it."""

    def __init__(self) -> None:
        self._lock, self._readers = threading.Lock(), 0

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Nobody reads these lines while the block, or that of another thread, runs."""
        with self._lock:
            self._readers += 1
            self._exchange(self._readers == 1)
        try:
            yield
        finally:
            with self._lock:
                self._readers -= 1
                self._exchange(self._readers == 0)

    def _exchange(self, is_outermost: bool) -> None:
        for shown, other in self._streams if is_outermost else ():
            shown.value, other.value = other.value, shown.value

    @cached_property
    def _streams(self) -> list[tuple[Any, Any]]:
        """C's own `stderr`, which Python does not print to, and a file in its place, as glibc alone allows."""
        with suppress(AttributeError, OSError, TypeError):
            library = ctypes.CDLL(None)
            if library.gnu_get_libc_version:
                library.fopen.restype = ctypes.c_void_p
                nowhere = ctypes.c_void_p(library.fopen(os.devnull.encode(), b"w"))
                # a file that cannot be opened is no place to print to
                return [(ctypes.c_void_p.in_dll(library, "stderr"), nowhere)] * bool(nowhere.value)
        return []


_LINES = _LibraryLines()

# -- how large ----------------------------------------------------------------------------------------------

_MEGAPIXEL = 1_000_000
_DECODING = MemoryBudget()


def _pixel_limit() -> int:
    text = os.environ.get("EYESPOT_MAX_PIXELS", str(150 * _MEGAPIXEL))
    if not re.fullmatch("[0-9]{1,18}", text) or int(text) == 0:
        raise UsageError(f"EYESPOT_MAX_PIXELS is a whole number of pixels such as 150000000, not {text!r}")
    return int(text)
