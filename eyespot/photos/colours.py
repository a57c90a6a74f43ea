"""From whatever a decoder gives to sRGB: by the profile of the file, any depth, over white where it is transparent."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageChops
from PIL.ImageFilter import Color3DLUT

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
_NUMBERS = ("color_primaries", "transfer_characteristics")
_HEAD = 1 << 16  # bytes of a file in which its colours stand
# Linear light of these primaries, by ISO/IEC 23091-2, in linear light of sRGB: BT.2020, P3 and Adobe RGB (1998)
_BT2020, _P3, _ADOBE = 9, 12, -1
_TO_SRGB = {
    _BT2020: ((1.6605, -0.5876, -0.0728), (-0.1246, 1.1329, -0.0083), (-0.0182, -0.1006, 1.1187)),
    _P3: ((1.2249, -0.2249, 0.0), (-0.0421, 1.0421, 0.0), (-0.0196, -0.0786, 1.0983)),
    _ADOBE: ((1.3984, -0.3984, 0.0), (0.0, 1.0, 0.0), (0.0, -0.0429, 1.0429)),
}
_OF_SRGB, _PQ, _HLG, _GAMMA = (1, 6, 13, 14, 15), 16, 18, -1  # curves of light; the first are shown as that of sRGB
_WHITE, _PEAK = 203.0, 1000.0  # cd/m2 of white paper and of the brightest light, by ITU-R BT.2408
_STEPS = 33  # of each colour in a table; between them it is interpolated


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


def _rgb(image: Image.Image, white: int, transform: ImageCmsTransform | Color3DLUT | None) -> Image.Image:
    mode, flat = getattr(transform, "input_mode", "RGB"), image
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
    if isinstance(transform, Color3DLUT):
        return (flat if flat.mode == mode else flat.convert(mode)).filter(transform)
    source = flat if flat is not image and flat.mode == mode else flat.convert(mode)  # never the decoder's own pixels
    if transform is None:
        return source
    return transform.apply_in_place(source) if mode == "RGB" else transform.apply(source)


def srgb_transform(image: Image.Image) -> ImageCmsTransform | Color3DLUT | None:
    """What turns the colours of a picture into sRGB; None where they are, or its profile is broken or does not fit.

    High dynamic range goes before a profile, which cannot say it.
    """
    profile, nclx = image.info.get("icc_profile"), image.info.get("nclx_profile") or {}
    primaries, curve = (nclx.get(name, 0) for name in _NUMBERS)
    if not profile and not nclx and image.format in ("JPEG", "MPO", "TIFF"):
        with suppress(Exception):  # of damaged tags Pillow raises anything
            # A camera may say Adobe RGB in EXIF alone: its interoperability index is `R03` (DCF 2.0)
            if str(image.getexif().get_ifd(ExifTags.IFD.Interop).get(1, "")).startswith("R03"):
                primaries, curve = _ADOBE, _GAMMA
    if not profile or curve in (_PQ, _HLG):
        return _table_of(primaries, curve) if image.mode in ("RGB", "RGBA", "P") else None
    if not isinstance(profile, bytes) or not 128 <= len(profile) <= _PROFILE_BYTES:
        return None
    transform = _transform_of(profile, get_ident())
    mode = transform.input_mode if transform else None
    grey = image.mode in ("1", "L", "LA", "I", "F") or image.mode.startswith("I;16")
    fits = {"L": grey, "CMYK": image.mode == "CMYK", "RGB": image.mode not in ("CMYK", "LAB")}
    return transform if fits.get(str(mode)) else None


def read_code_points(image: Image.Image, data: bytes) -> None:
    """Take down the numbers by which a PNG or AVIF file names its colours (ISO/IEC 23091-2), as pillow_heif does."""
    box, form = {"PNG": (rb"\0\0\0\x04cICP(..)", ">BB"), "AVIF": (rb"\0\0\0\x13colrnclx(....)", ">HH")}.get(
        str(image.format), (b"", "")
    )
    if box and (found := re.search(box, data[:_HEAD], re.DOTALL)):
        numbers = struct.unpack(form, found[1])
        image.info["nclx_profile"] = dict(zip(_NUMBERS, numbers, strict=True))


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


@lru_cache(maxsize=16)
def _table_of(primaries: int, curve: int) -> Color3DLUT | None:
    """The table from colours of these primaries and this curve to sRGB; None for sRGB and what is not known.

    High dynamic range is brought down as browsers do, by Reinhard's curve on the brightest of the three colours.
    """
    is_high = curve in (_PQ, _HLG)
    if not is_high and (primaries not in _TO_SRGB or curve not in (*_OF_SRGB, _GAMMA)):
        return None
    steps = np.linspace(0, 1, _STEPS)
    values = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1)[..., ::-1].reshape(-1, 3)
    light = _light(values, curve) @ np.array(_TO_SRGB.get(primaries, np.eye(3))).T
    if is_high:
        brightest = light.max(axis=1, keepdims=True).clip(1e-9)
        light *= (1 + brightest / (_PEAK / _WHITE) ** 2) / (1 + brightest)
    light = light.clip(0, 1)
    shown = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return Color3DLUT(_STEPS, shown.ravel().tolist())


def _light(values: NDArray[np.float64], curve: int) -> NDArray[np.float64]:
    """Linear light of stored colours, 0 to 1, (n, 3): 1 is white; of high dynamic range the white of paper.

    PQ is SMPTE ST 2084, HLG is ITU-R BT.2100 with a gamma of 1.2.
    """
    light: NDArray[np.float64]
    if curve == _PQ:
        power = values ** (1 / 78.84375)
        light = (np.maximum(power - 0.8359375, 0) / (18.8515625 - 18.6875 * power)) ** (1 / 0.1593017578125)
        light *= 10_000 / _WHITE
    elif curve == _HLG:
        light = np.where(values <= 0.5, values**2 / 3, (np.exp((values - 0.55991073) / 0.17883277) + 0.28466892) / 12)
        luminance = light @ np.array([0.2627, 0.678, 0.0593])
        light *= luminance[:, None].clip(1e-9) ** 0.2 * _PEAK / _WHITE
    elif curve == _GAMMA:
        light = values**2.19921875
    else:
        light = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return light


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
