"""From whatever a decoder gives to sRGB: by the profile of the file, any depth, over white where it is transparent."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from io import BytesIO
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageChops

if TYPE_CHECKING:
    from PIL.ImageCms import ImageCmsTransform

LARGE = 25_000_000  # pixels; what has more goes to RGB strip by strip and may be reduced on the way
_STRIP = 2_000_000
_PROFILE_BYTES = 8 << 20  # of a profile that is used, at most
_SPACES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}  # of profiles, each with Pillow's mode
_CONTRAST = 128  # of 255 between the darkest and the brightest colour, at least
_NEAR = 2  # of 255: a profile that changes no colour by more is sRGB
_DEEPEST_CAMERA = 14  # bits; data with more of the 16 used fills all of them
_MAX_SAMPLE = 281  # TIFF's tag
# By ISO/IEC 23091-2: red, green and blue in XYZ under D50 of BT.2020 and of P3, and the curves that are shown as sRGB's
_PRIMARIES = {
    9: ((0.67348, 0.27904, -0.00193), (0.16566, 0.67534, 0.02998), (0.12505, 0.04561, 0.79686)),
    12: ((0.51512, 0.24120, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407)),
}
_OF_SRGB = (1, 6, 13, 14, 15)
_D50, _CURVE = (0.9642, 1.0, 0.8249), (2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)


def to_rgb(image: Image.Image, factor: int = 1) -> Image.Image:
    """A picture in sRGB, averaged down by `factor` if it is large or has a profile to convert by."""
    transform = srgb_transform(image)
    deep = image.mode.startswith("I;16")
    white = white_of(image, max(int(rows.max()) for _, rows in _arrays(image))) if deep else 0
    if image.width * image.height <= LARGE:
        source = image.reduce(factor) if factor > 1 and image.mode in ("RGB", "CMYK") else image
        return _rgb(source, white, transform)
    source = _stretched(image) if image.mode in ("I", "F") else image
    made = Image.new("RGB", reduced(image.size, factor))
    for top, strip in _strips(source, factor):
        part = _rgb(strip, white, transform)
        made.paste(part.reduce(factor) if factor > 1 else part, (0, top // factor))
    return made


def reduced(size: tuple[int, int], factor: int) -> tuple[int, int]:
    """The size of a picture of which `factor` by `factor` pixels became one."""
    return -(-size[0] // factor), -(-size[1] // factor)


def conversion_bytes(image: Image.Image, factor: int) -> int:
    """The peak of `to_rgb` besides the image itself, its result included."""
    pixels = image.width * image.height
    each = 9 if image.has_transparency_data else 5 if image.mode.startswith("I;16") else 4
    if pixels <= LARGE and image.mode not in ("I", "F"):
        return each * pixels
    strip = image.width * _rows(image.width, factor)
    grey = (pixels + 12 * min(strip, pixels)) if image.mode in ("I", "F") else 0
    if pixels <= LARGE:
        return each * pixels + grey
    width, height = reduced(image.size, factor)
    return 4 * width * height + (each + 4) * strip + grey


def _rgb(image: Image.Image, white: int, transform: ImageCmsTransform | None) -> Image.Image:
    mode, flat = transform.input_mode if transform else "RGB", image
    if image.mode.startswith("I;16"):
        # Pillow would cut off every value above 255
        table = np.minimum(np.arange(1 << 16) * 256 // (white + 1), 255).astype(np.uint8)
        flat = Image.fromarray(table[np.asarray(image)])
    elif image.mode in ("I", "F"):
        flat = _stretched(image)
    elif image.has_transparency_data:
        layer = image.convert("RGBA")
        flat = Image.new("RGB", layer.size, "white")
        flat.paste(layer, mask=layer.getchannel("A"))
        del layer
    source = flat if flat is not image and flat.mode == mode else flat.convert(mode)  # never the decoder's own pixels
    if transform is None:
        return source
    return transform.apply_in_place(source) if mode == "RGB" else transform.apply(source)


def srgb_transform(image: Image.Image) -> ImageCmsTransform | None:
    """What turns the colours of a picture into sRGB; None where they are, or its profile is broken or does not fit."""
    profile = image.info.get("icc_profile") or _profile_of(image.info.get("nclx_profile") or {})
    if not isinstance(profile, bytes) or not 128 <= len(profile) <= _PROFILE_BYTES:
        return None
    transform = _transform_of(profile, get_ident())
    mode = transform.input_mode if transform else None
    grey = image.mode in ("1", "L", "LA", "I", "F") or image.mode.startswith("I;16")
    fits = {"L": grey, "CMYK": image.mode == "CMYK", "RGB": image.mode not in ("CMYK", "LAB")}
    return transform if fits.get(str(mode)) else None


@lru_cache(maxsize=64)
def _transform_of(profile: bytes, thread: int) -> ImageCmsTransform | None:
    """The transform of a profile to sRGB for one thread, by perceptual intent; None for sRGB and broken profiles."""
    try:
        from PIL import ImageCms

        opened = ImageCms.ImageCmsProfile(BytesIO(profile))
        mode = _SPACES[opened.profile.xcolor_space.strip()]
        made = ImageCms.buildTransform(opened, ImageCms.createProfile("sRGB"), mode, "RGB")
        if mode == "CMYK":
            return made
        steps = np.linspace(0, 255, 9 if mode == "RGB" else 256).round().astype(np.uint8)
        colours = (
            np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(1, -1, 3) if mode == "RGB" else steps[None]
        )
        palette = Image.fromarray(colours)
        seen = made.apply(palette)
        moved = ImageChops.difference(palette.convert("RGB"), seen).getextrema()
    except Exception:  # littlecms refuses in several ways, Pillow may be built without it, and the picture is sound
        return None
    # Without light and dark no picture is left: a damaged curve makes all white, a damaged matrix all black
    is_sound = all(most - least > _CONTRAST for least, most in seen.getextrema())  # type: ignore[misc]
    return made if is_sound and max(most for _, most in moved) > _NEAR else None  # type: ignore[misc]


def _profile_of(nclx: Mapping[str, Any]) -> bytes | None:
    """A profile with the colours that a HEIF file names by numbers; None for sRGB, and for high dynamic range."""
    matrix = _PRIMARIES.get(nclx.get("color_primaries", 0))
    if matrix is None or nclx.get("transfer_characteristics") not in _OF_SRGB:
        return None
    fixed = [np.round(np.array(row) * 65536).astype(">i4").tobytes() for row in (*matrix, _D50, _CURVE)]
    names = (b"rXYZ", b"gXYZ", b"bXYZ", b"wtpt")
    tags = {name: b"XYZ " + bytes(4) + xyz for name, xyz in zip(names, fixed[:4], strict=True)}
    tags |= dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), b"para" + bytes(5) + b"\3" + bytes(2) + fixed[4])
    table, body = struct.pack(">I", len(tags)), b""
    for name, data in tags.items():
        table += name + struct.pack(">II", 132 + 12 * len(tags) + len(body), len(data))
        body += data
    head = struct.pack(">I4xI12s12x", 128 + len(table + body), 0x04000000, b"mntrRGB XYZ ") + b"acsp"
    return head.ljust(68, b"\0") + fixed[3].ljust(60, b"\0") + table + body


def white_of(image: Image.Image, used: int) -> int:
    """The value of 9 to 16 bits that is white: the one its TIFF tags state, else the highest of as many bits as used.

    used: the highest value in the picture. Microscopes and night cameras put 10 to 14 bits into 16 and do not say so.
    """
    tags = getattr(image, "tag_v2", {})
    bits, most = (tags.get(tag, 0) for tag in (ExifTags.Base.BitsPerSample, _MAX_SAMPLE))
    stated = max(most) if isinstance(most, tuple) else int(most)
    depth = max(bits) if isinstance(bits, tuple) else int(bits)
    for white in (stated, (1 << depth) - 1):
        if 255 <= white < 65535 and used <= white:
            return white
    return (1 << max(8, used.bit_length())) - 1 if used.bit_length() <= _DEEPEST_CAMERA else 65535


def add_low_bytes(image: Image.Image, low: Image.Image) -> None:
    """Scale 16-bit colour that uses few of its bits; Pillow decodes the high bytes alone, `low` has the others."""
    high, rest = (max(most for _, most in part.getextrema()) for part in (image, low))  # type: ignore[misc]
    scale = 256 / (1 + white_of(image, 256 * high + (255 if high else rest)))
    brighter, finer = (
        part.point([min(255, int(value * step * scale)) for value in range(256)] * 3)
        for part, step in ((image, 256), (low, 1))
    )
    image.paste(ImageChops.add(brighter, finer))


def _stretched(image: Image.Image) -> Image.Image:
    """32-bit pictures have no agreed white: their darkest value becomes black, their brightest white, NaN black."""
    ends = [(known.min(), known.max()) for _, rows in _arrays(image) for known in map(_finite, rows) if known.size]
    darkest, brightest = (float(min(e[0] for e in ends)), float(max(e[1] for e in ends))) if ends else (0.0, 0.0)
    grey = Image.new("L", image.size)
    for top, rows in _arrays(image) if brightest > darkest else ():
        out = np.zeros(rows.shape, np.uint8)  # (height of the strip, width)
        for row, made in zip(rows, out, strict=True):
            made[np.isfinite(row)] = ((_finite(row) - darkest) * (255.0 / (brightest - darkest))).round()
        grey.paste(Image.fromarray(out), (0, top))
    return grey


def _finite(row: NDArray[Any]) -> NDArray[np.float64]:
    known: NDArray[np.float64] = row[np.isfinite(row)].astype(np.float64)
    return known


# -- strips -------------------------------------------------------------------------------------------------


def _rows(width: int, factor: int) -> int:
    """The height of a strip: whole squares of `factor` by `factor` pixels."""
    return max(1, _STRIP // (width * factor)) * factor


def _strips(image: Image.Image, factor: int) -> Iterator[tuple[int, Image.Image]]:
    """A picture cut across, from the top down, and where each strip begins."""
    rows = _rows(image.width, factor)
    for top in range(0, image.height, rows):
        yield top, image.crop((0, top, image.width, min(image.height, top + rows)))


def _arrays(image: Image.Image) -> Iterator[tuple[int, NDArray[Any]]]:
    return ((top, np.asarray(strip)) for top, strip in _strips(image, 1))  # (height of the strip, width) each
