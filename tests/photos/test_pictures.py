"""Pictures of every kind and of none: upright RGB and facts come out, or one reason."""

from __future__ import annotations

import ctypes
import io
import struct
import subprocess
import sys
import zlib
from datetime import datetime
from typing import Any

import numpy as np
import pillow_heif
import pytest
from hypothesis import given, settings, strategies as st
from PIL import ExifTags, Image

from eyespot.photos.colours import to_rgb
from eyespot.photos.kinds import SUFFIXES
from eyespot.photos.pictures import BadPicture, id_of, open_picture, thumbnail
from eyespot.types import UsageError
from tests.examples import examples
from tests.wording import raises

pytestmark = pytest.mark.filterwarnings("ignore:::PIL")  # the project's tests make errors of warnings

DATE, DATE_ORIGINAL, MAKE, MODEL, ORIENTATION = 306, 36867, 271, 272, 274
CORNERS = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0))  # top left, top right, bottom left, bottom right


def quarters(width: int = 64, height: int = 48) -> Image.Image:
    """Four colours, so that every turn and flip is told from every other."""
    picture = Image.new("RGB", (width, height), CORNERS[0])
    w, h = width // 2, height // 2
    for colour, corner in zip(CORNERS[1:], ((w, 0), (0, h), (w, h)), strict=True):
        picture.paste(colour, (*corner, width, height) if corner == (w, h) else (*corner, corner[0] + w, corner[1] + h))
    return picture


def encoded(picture: Image.Image, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, format, **options)
    return file.getvalue()


def png(width: int, height: int, chunks: bytes = b"", pixels: bytes = b"", kind: tuple[int, int] = (8, 0)) -> bytes:
    """A PNG by hand, so that it may claim what no writer would write; `kind` is bit depth and colour type."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, *kind, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunks + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def corners(picture: Image.Image) -> list[tuple[int, int, int]]:
    """The colours a little inside the four corners, rounded to pure ones."""
    x, y = picture.width // 8, picture.height // 8
    inside = ((x, y), (picture.width - 1 - x, y), (x, picture.height - 1 - y))
    pixels = np.asarray(picture)
    return [
        tuple((pixels[b, a].astype(int) + 128) // 256 * 255)
        for a, b in (*inside, (picture.width - 1 - x, picture.height - 1 - y))
    ]


def with_exif(main: dict[int, Any], photo: Any = None, gps: dict[int, Any] | None = None) -> Image.Exif:
    exif = Image.Exif()
    exif.update(main)
    exif.get_ifd(ExifTags.IFD.Exif).update(photo or {})
    exif.get_ifd(ExifTags.IFD.GPSInfo).update(gps or {})
    return exif


def reason(data: bytes) -> str:
    with pytest.raises(BadPicture) as caught:
        open_picture(data)
    return caught.value.reason


def heif() -> bytes:
    file = io.BytesIO()
    pillow_heif.from_pillow(quarters()).save(file)
    return file.getvalue()


def several(format: str) -> bytes:
    """A file of three frames, of which only the first is upright."""
    return encoded(quarters(), format, save_all=True, append_images=[quarters().rotate(180)] * 2)


UPRIGHT = {
    **{
        format: (format, encoded(quarters(), format))
        for format in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
    },
    "MPO": ("MPO", encoded(quarters(), "MPO", save_all=True, append_images=[quarters()])),
    "HEIF": ("HEIF", heif()),
    **{f"{format} of many frames": (format, several(format)) for format in ("GIF", "WEBP", "PNG", "TIFF")},
    "CMYK, not inverted": ("JPEG", encoded(quarters().convert("CMYK"), "JPEG", quality=95)),
    **{
        f"orientation {number}": ("JPEG", encoded(quarters(), "JPEG", exif=with_exif({ORIENTATION: number})))
        for number in (0, 9, 65535)
    },
    "damaged EXIF": ("JPEG", encoded(quarters(), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff garbage")),
}


@pytest.mark.parametrize("case", UPRIGHT)
def test_every_format_gives_upright_rgb(case: str) -> None:
    format, data = UPRIGHT[case]
    opened = open_picture(data)
    image, facts = opened.image, opened.facts
    assert (image.mode, image.size, corners(image)) == ("RGB", (64, 48), list(CORNERS))
    assert (facts["width"], facts["height"], facts["format"], facts.get("taken")) == (64, 48, format, None)
    assert {".heic", ".heif", ".hif", ".avif", ".jpg"} <= SUFFIXES


RAMP = Image.fromarray(np.array([[0, 257, 32896, 65535]], np.uint16))
FLOATS = Image.fromarray(np.array([[-2.0, 0.0, 2.0, np.nan, np.inf]], np.float32))
COLOURS = b"\0" + struct.pack(">6H", 65535, 32896, 0, 257, 65535, 512)
PIXELS: dict[str, tuple[bytes, list[Any]]] = {
    "16-bit grey PNG": (encoded(RAMP, "PNG"), [0, 1, 128, 255]),
    "16-bit grey TIFF": (encoded(RAMP, "TIFF"), [0, 1, 128, 255]),
    "16-bit grey, big end first": (
        encoded(Image.frombytes("I;16B", (3, 1), struct.pack(">3H", 0, 32896, 65535)), "TIFF"),
        [0, 128, 255],
    ),
    "12 of 16 bits of grey": (encoded(Image.fromarray(np.array([[0, 2048, 4095]], np.uint16)), "PNG"), [0, 128, 255]),
    "14 of 16 bits, as stated": (
        encoded(Image.fromarray(np.array([[0, 2048, 4095]], np.uint16)), "TIFF", tiffinfo={281: 16383}),
        [0, 32, 63],
    ),
    "12 of 16 bits of colour": (
        png(2, 1, pixels=b"\0" + struct.pack(">6H", 4095, 2048, 0, 0, 255, 1024), kind=(16, 2)),
        [(255, 128, 0), (0, 15, 64)],
    ),
    "16-bit colour": (png(2, 1, pixels=COLOURS, kind=(16, 2)), [(255, 128, 0), (1, 255, 2)]),
    "floats are stretched": (encoded(FLOATS, "TIFF"), [0, 128, 255, 0, 0]),
    "one whole number": (encoded(Image.new("I", (2, 1), 7), "TIFF"), [0, 0]),
    "half transparent over white": (encoded(Image.new("RGBA", (1, 1), (255, 0, 0, 128)), "PNG"), [(255, 127, 127)]),
    **{
        f"white as {mode}": (encoded(Image.new("RGB", (2, 1), "white").convert(mode), "PNG"), [255, 255])
        for mode in ("1", "L", "P", "RGB", "LA", "RGBA")
    },
}


@pytest.mark.parametrize("case", PIXELS)
def test_every_mode_is_scaled_to_rgb_and_not_clipped(case: str) -> None:
    data, expected = PIXELS[case]
    image = open_picture(data).image
    assert image.mode == "RGB"
    assert np.asarray(image)[0].tolist() == [list(one if isinstance(one, tuple) else (one,) * 3) for one in expected]


STORED_AS = {  # how a camera that writes this orientation has laid the upright picture down
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def stored(orientation: int, format: str, **options: Any) -> bytes:
    turn = STORED_AS[orientation]
    exif = with_exif({ORIENTATION: orientation})
    return encoded(quarters() if turn is None else quarters().transpose(turn), format, exif=exif, **options)


@pytest.mark.parametrize("orientation", STORED_AS)
@pytest.mark.parametrize(
    ("format", "off", "options"),
    [
        ("PNG", 0, {}),
        ("WEBP", 0, {"lossless": True}),
        ("TIFF", 0, {}),
        ("TIFF", 0, {"compression": "tiff_lzw"}),
        ("AVIF", 2, {"quality": 100, "subsampling": "4:4:4"}),
        ("JPEG", 5, {"quality": 95, "subsampling": 0}),
    ],
)
def test_every_orientation_is_undone_to_the_pixel(format: str, off: int, options: Any, orientation: int) -> None:
    opened = open_picture(stored(orientation, format, **options))
    image, facts = opened.image, opened.facts
    assert (image.size, (facts["width"], facts["height"])) == ((64, 48), (64, 48))
    assert np.abs(np.asarray(image).astype(int) - np.asarray(quarters())).max() <= off


@pytest.mark.parametrize(
    ("min_side", "size"), [(None, (400, 240)), (241, (400, 240)), (120, (200, 120)), (61, (200, 120)), (1, (50, 30))]
)
def test_a_jpeg_is_drafted_while_its_shorter_side_suffices(min_side: int | None, size: tuple[int, int]) -> None:
    opened = open_picture(encoded(quarters(400, 240), "JPEG"), min_side)
    image, facts = opened.image, opened.facts
    assert (image.size, (facts["width"], facts["height"])) == (size, (400, 240))


def test_a_drafted_sideways_jpeg_keeps_its_full_size_in_the_facts() -> None:
    opened = open_picture(encoded(quarters(400, 240), "JPEG", exif=with_exif({ORIENTATION: 6})), 100)
    image, facts = opened.image, opened.facts
    assert (image.size, (facts["width"], facts["height"])) == ((120, 200), (240, 400))


def test_other_formats_keep_their_scale_unless_large() -> None:
    small, large = encoded(quarters(), "PNG"), encoded(Image.new("L", (6000, 5000), 200), "PNG")
    assert open_picture(small, 10).image.size == (64, 48)
    opened = open_picture(large, 1000)
    image, facts = opened.image, opened.facts
    assert (image.size, (facts["width"], facts["height"]), image.getpixel((5, 5))) == (
        (1200, 1000),
        (6000, 5000),
        (200,) * 3,
    )


def whole(image: Image.Image) -> Image.Image:
    """What strips put together have to equal, made at once."""
    if image.mode == "RGBA":
        white = Image.new("RGB", image.size, "white")
        white.paste(image, mask=image.getchannel("A"))
        return white
    if image.mode == "I;16":
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode == "F":
        return Image.fromarray((np.asarray(image).astype(np.float64) * 255.0).round().astype(np.uint8)).convert("RGB")
    return image.convert("RGB")


@pytest.mark.long
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "CMYK", "P", "I;16", "F"])
def test_a_large_picture_has_the_same_bits_in_strips_as_at_once(mode: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (5003, 5101, 4), np.uint8)
    made = {
        "I;16": lambda: Image.fromarray(noise[..., :2].copy().view(np.uint16)[..., 0]),
        "F": lambda: Image.fromarray((noise[..., 0] / np.float32(255)).astype(np.float32)),
        "RGBA": lambda: Image.fromarray(noise),
    }
    image = made[mode]() if mode in made else Image.fromarray(noise[..., :3].copy()).convert(mode)

    assert np.array_equal(to_rgb(image), whole(image))
    assert np.array_equal(to_rgb(image, 7), whole(image).reduce(7))


def photographed(main: dict[int, Any] | None = None, photo: Any = None, gps: dict[int, Any] | None = None) -> bytes:
    return encoded(quarters(), "JPEG", exif=with_exif(main or {}, photo, gps))


def test_the_facts_of_a_photo() -> None:
    bare = open_picture(encoded(quarters(), "PNG")).facts
    assert bare == {"width": 64, "height": 48, "format": "PNG"}
    gps = {1: "S", 2: (33.0, 27.0, 36.0), 3: "W", 4: (70.0, 40.0, 12.0)}
    main = {MAKE: "NIKON CORPORATION\0", MODEL: " NIKON  D90\0\0", DATE: "2022:01:01 00:00:00", ExifTags.Base.Rating: 4}
    facts = open_picture(photographed(main, {DATE_ORIGINAL: "2021:05:31 18:02:11"}, gps)).facts
    assert (facts["taken"], facts["camera"], facts["embedded_rating"]) == (TAKEN, "NIKON D90", 4)
    assert (facts.get("latitude"), facts.get("longitude")) == (pytest.approx(-33.46), pytest.approx(-70.67))


CAMERAS = {
    ("Canon", "Canon EOS 5D"): "Canon EOS 5D",
    ("Apple", "iPhone 12"): "Apple iPhone 12",
    ("Apple", ""): "Apple",
    ("", "X100"): "X100",
    ("\0\0", "  "): None,
    ("OM\nDigital", "E\x1bM5"): "OM Digital E M5",
}


@pytest.mark.parametrize(("make", "model"), CAMERAS)
def test_the_camera_is_named_once_and_cleanly(make: str, model: str) -> None:
    assert open_picture(photographed({MAKE: make, MODEL: model})).facts.get("camera") == CAMERAS[make, model]


TAKEN = datetime(2021, 5, 31, 18, 2, 11)


def positioned(latitude: bytes, kind: int = 5, count: int = 3) -> bytes:
    """A JPEG at 10° E whose latitude field holds these very bytes, which no writer would write."""
    east = struct.pack(">6I", 10, 1, 0, 1, 0, 1)
    first = struct.pack(">HHHIII", 1, 0x8825, 4, 1, 26, 0)
    fields = [(1, 2, 2, b"N\0\0\0"), (2, kind, count, struct.pack(">I", 80)), (3, 2, 2, b"E\0\0\0")]
    fields.append((4, 5, 3, struct.pack(">I", 80 + len(latitude))))
    second = struct.pack(">H", 4) + b"".join(struct.pack(">HHI", *field[:3]) + field[3] for field in fields)
    exif = b"MM\0*" + struct.pack(">I", 8) + first + second + struct.pack(">I", 0)
    return encoded(quarters(), "JPEG", exif=b"Exif\0\0" + exif + latitude + east)


NO_POSITIONS = [
    *(
        photographed(gps=gps)
        for gps in (
            {2: (33.0, 27.0, 36.0), 4: (70.0, 40.0, 12.0)},  # no hemisphere
            {1: "N", 2: (91.0, 0.0, 0.0), 3: "E", 4: (10.0, 0.0, 0.0)},
            {1: "N", 2: (10.0, 0.0, 0.0), 3: "E", 4: (180.0, 0.0, 1.0)},
            {1: "N", 2: (10.0, 0.0, 0.0)},
            {1: "Q", 2: (10.0, 0.0, 0.0), 3: "E", 4: (10.0, 0.0, 0.0)},
            {1: "N", 2: 10.0, 3: "E", 4: 10.0},
        )
    ),
    *(positioned(struct.pack(">6I", *parts)) for parts in ([0] * 6, [1, 0, 0, 1, 0, 1], [20, 1, 30, 1, 7, 0])),
    positioned(struct.pack(">6i", -20, 1, 0, 1, 0, 1), kind=10),
    *(positioned(struct.pack(">3d", float(text), 0, 0), kind=12) for text in ("nan", "inf")),
    positioned(b"twenty\0\0", kind=2, count=8),
    positioned(bytes(8), kind=7, count=8),
]


@pytest.mark.parametrize("data", NO_POSITIONS)
def test_a_broken_position_is_no_position(data: bytes) -> None:
    sound = open_picture(positioned(struct.pack(">6I", 20, 1, 30, 1, 0, 1))).facts
    assert (sound["latitude"], sound["longitude"]) == (20.5, 10.0)
    facts = open_picture(data).facts
    assert (facts.get("latitude"), facts.get("longitude")) == (None, None)


def test_what_c_libraries_print_of_a_damaged_file_is_caught(capfd: pytest.CaptureFixture[str]) -> None:
    sound = encoded(quarters(), "TIFF", compression="tiff_lzw")
    with pytest.raises(BadPicture):
        open_picture(sound[:8] + b"\xff" * 32 + sound[40:])
    assert capfd.readouterr() == ("", "")
    ctypes.CDLL(None).perror(b"later")
    assert capfd.readouterr().err.startswith("later" if hasattr(ctypes.CDLL(None), "gnu_get_libc_version") else "")


def tiff_with_huge_tiles() -> bytes:
    small = [(256, 4, 16), (257, 4, 16), (258, 3, 8), (259, 3, 8), (262, 3, 1), (277, 3, 1)]
    tags = [*small, (322, 4, 40_000), (323, 4, 40_000), (324, 4, 8), (325, 4, 4)]
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + b"\0\0\0\0"


def webp_bomb() -> bytes:
    body = b"WEBPVP8X" + struct.pack("<IB3x", 10, 0) + (16382).to_bytes(3, "little") * 2
    return b"RIFF" + struct.pack("<I", len(body)) + body


UNKNOWN = [b"Dear diary,", b"%!PS-Adobe-3.0 EPSF", b"8BPS\0\1", b"<svg/>", b"\0" * 100, b"P6 1 1 255 abc"]
UNKNOWN += [b"BMW 318, 1994, red", b"\0\0\0\x20ftypisom\0\0\2\0isomiso2avc1mp41" + bytes(99)]
TEXT_BOMB = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"\0" * 80_000_000))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty file"),
        *((data, "not a picture eyespot reads (JPEG, PNG") for data in UNKNOWN),
        *((data, "JPEG XL, which no library") for data in (b"\xff\x0a\xfa\x7f", b"\0\0\0\x0cJXL \r\n\x87\n")),
        (encoded(quarters(), "JPEG")[:-20], "truncated: "),
        (png(30_000, 30_000), "30000 x 30000 pixels, over the limit of 150 megapixels"),
        (tiff_with_huge_tiles(), "over the limit"),
        (webp_bomb(), "over the limit of 150 megapixels"),
        (png(1, 1, chunks=TEXT_BOMB, pixels=b"\0\0"), "damaged: Decompressed data too large"),
        (png(0, 5), "damaged: "),
    ],
)
def test_what_is_no_picture_or_a_bomb_is_refused(data: bytes, words: str) -> None:
    assert words in reason(data)


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG"])
def test_blank_frames_at_the_start_of_an_animation_are_passed_over(format: str) -> None:
    blank, file = Image.new("RGB", (64, 48), "white"), io.BytesIO()
    blank.save(file, format, save_all=True, append_images=[blank.point(lambda v: v - 1), quarters()], duration=100)

    assert open_picture(file.getvalue()).image.getcolors(1) is None


def test_pages_of_a_tiff_file_are_counted() -> None:
    one, three = io.BytesIO(), io.BytesIO()
    quarters().save(one, "TIFF")
    quarters().save(three, "TIFF", save_all=True, append_images=[Image.new("L", (9, 9))] * 2)

    assert [open_picture(file.getvalue()).facts.get("pages") for file in (one, three)] == [None, 3]


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF"])
def test_a_cut_picture_is_bad(format: str) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (48, 64, 3), np.uint8))
    data = encoded(noise, format)
    message = reason(data[: len(data) * 2 // 3])
    assert message and "\n" not in message and "0x" not in message


def test_the_limit_of_pixels_is_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYESPOT_MAX_PIXELS", "3000")
    assert reason(encoded(quarters(), "PNG")) == "64 x 48 pixels, over the limit of 0.003 megapixels"
    monkeypatch.setenv("EYESPOT_MAX_PIXELS", "1000000000")
    assert "over the limit of 1000 megapixels" not in reason(png(30_000, 30_000))


@pytest.mark.parametrize("value", ["", "0", "-1", "lots", "1e6"])
def test_a_wrong_limit_is_the_users_mistake(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("EYESPOT_MAX_PIXELS", value)
    with raises(UsageError):
        open_picture(encoded(quarters(), "PNG"))


SEEDS = {format: encoded(quarters(), format) for format in ("JPEG", "PNG", "WEBP", "GIF", "TIFF")} | {
    "JPEG with EXIF": photographed({MAKE: "M"}, {DATE_ORIGINAL: "2021:05:31 18:02:11"}, {1: "N", 2: (1.0, 2.0, 3.0)})
}


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_damage_never_raises_anything_but_bad_picture(data: st.DataObject) -> None:
    damaged = bytearray(SEEDS[data.draw(st.sampled_from(sorted(SEEDS)))])
    for place, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(damaged) - 1), st.integers(0, 255)), max_size=8)
    ):
        damaged[place] = value
    cut = data.draw(st.integers(0, len(damaged)))
    try:
        image = open_picture(bytes(damaged[:cut]), data.draw(st.sampled_from([None, 8]))).image
    except BadPicture as bad:
        assert bad.reason and "\n" not in bad.reason
    else:
        assert image.mode == "RGB"


QUIET = r"""
import sys
from eyespot.photos.pictures import BadPicture, open_picture
data, bad = sys.stdin.buffer.read(), 0
start, stop, step = map(int, sys.argv[1:])
for place in range(start, stop, step):
    try:
        open_picture(data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :])
    except BadPicture:
        bad += 1
print(bad)
"""
NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 255, (90, 90, 3), np.uint8))


@pytest.mark.parametrize("kind", ["tiff_lzw", "jpeg", "tiff_adobe_deflate", "EXIF"])
def test_damaged_files_leave_standard_error_clean(kind: str) -> None:
    """In a child, because the test runner has warning filters of its own."""
    exif = kind == "EXIF"
    data = SEEDS["JPEG with EXIF"] if exif else encoded(NOISE, "TIFF", compression=kind)
    start = data.index(b"Exif") + 6 if exif else 8
    places = (start, start + 74, 1) if exif else (start, len(data), len(data) // 60)
    line = [sys.executable, "-c", QUIET, *map(str, places)]
    child = subprocess.run(line, input=data, capture_output=True, check=True)
    assert (int(child.stdout) > 0 or exif, child.stderr) == (True, b"")


def test_the_id_is_of_the_bytes() -> None:
    assert id_of(b"") == "e3b0c44298fc1c149afbf4c8996fb924"
    assert id_of(b"a") != id_of(b"b")


def test_a_thumbnail_is_small_upright_never_larger_and_says_nothing() -> None:
    exif = with_exif({ORIENTATION: 6, MAKE: "Secret"})
    data = encoded(quarters(400, 240), "JPEG", exif=exif, comment=b"Secret", icc_profile=b"Secret" * 30)
    small = Image.open(io.BytesIO(thumbnail(data, 100)))
    assert (small.format, small.size, dict(small.getexif())) == ("JPEG", (60, 100), {})
    assert b"Secret" not in thumbnail(data, 100)
    assert corners(small) == [CORNERS[2], CORNERS[0], CORNERS[3], CORNERS[1]]
    assert Image.open(io.BytesIO(thumbnail(encoded(quarters(), "PNG"), 1000))).size == (64, 48)
