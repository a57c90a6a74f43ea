"""One scene looks alike in every container, colour space and depth, for a reader that manages colour."""

from __future__ import annotations

import io
import os
import re
import struct
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pillow_heif
import pytest
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageCms, ImageDraw

from eyespot import sample
from eyespot.formats.pictures import picture_of
from eyespot.gallery.view import Gallery
from eyespot.photos.found import Labels, Seen
from eyespot.photos.kinds import SkippedFiles, reads_raw
from eyespot.photos.pictures import BadPicture, open_picture, thumbnail
from eyespot.photos.places import Root
from eyespot.photos.raw import is_raw
from eyespot.photos.sidecars import BESIDE, pairs_in
from eyespot.photos.sources import scan_counting
from tests.photos.test_pictures import chunk, encoded, png
from tests.worlds import draw_photos, index_gallery
from tests.worlds.dng import dng

D50, D65 = np.array([0.9642, 1.0, 0.8249]), np.array([0.95047, 1.0, 1.08883])
BRADFORD = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])


def from_rgb(primaries: list[tuple[float, float]], white: NDArray[np.float64] = D65) -> NDArray[np.float64]:
    """What takes linear light of these primaries to XYZ under D50, (3, 3)."""
    xyz = np.array([[x / y, 1, (1 - x - y) / y] for x, y in primaries]).T
    adapted = np.diag((BRADFORD @ D50) / (BRADFORD @ white))
    made: NDArray[np.float64] = np.linalg.inv(BRADFORD) @ adapted @ BRADFORD @ (xyz * np.linalg.solve(xyz, white))
    return made


SRGB = from_rgb([(0.64, 0.33), (0.30, 0.60), (0.15, 0.06)])
SPACES = {  # each with its gamma
    "P3": (from_rgb([(0.68, 0.32), (0.265, 0.69), (0.15, 0.06)]), 2.2),
    "Adobe RGB": (from_rgb([(0.64, 0.33), (0.21, 0.71), (0.15, 0.06)]), 2.2),
    "BT.2020": (from_rgb([(0.708, 0.292), (0.17, 0.797), (0.131, 0.046)]), 2.4),
    "ProPhoto": (from_rgb([(0.7347, 0.2653), (0.1596, 0.8404), (0.0366, 0.0001)], D50), 1.8),
    "linear": (SRGB, 1.0),
    "exchanged primaries": (SRGB[:, [1, 2, 0]], 2.2),
}


def profile(matrix: NDArray[np.float64], gamma: float) -> bytes:
    """The ICC profile, version 2, of three primaries and one gamma."""

    def xyz(values: NDArray[np.float64]) -> bytes:
        return b"XYZ \0\0\0\0" + b"".join(struct.pack(">i", round(value * 65536)) for value in values)

    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, round(gamma * 256)) + b"\0\0"
    name = b"desc\0\0\0\0" + struct.pack(">I", 5) + b"made\0" + b"\0" * 79
    tags = [(b"desc", name), (b"cprt", b"text\0\0\0\0none\0\0\0\0"), (b"wtpt", xyz(D50))]
    tags += [(b"rgb"[n : n + 1] + b"XYZ", xyz(matrix[:, n])) for n in range(3)]
    tags += [(letter + b"TRC", curve) for letter in (b"r", b"g", b"b")]
    at, table, body = 132 + 12 * len(tags), b"", b""
    for tag, data in tags:
        table += tag + struct.pack(">II", at + len(body), len(data))
        body += data + b"\0" * (-len(data) % 4)
    head = struct.pack(">I4xI", at + len(body), 0x02400000) + b"mntrRGB XYZ " + struct.pack(">6H", 2020, 1, 1, 0, 0, 0)
    head = (head + b"acsp" + b"\0" * 28 + xyz(D50)[8:]).ljust(128, b"\0")
    return head + struct.pack(">I", len(tags)) + table + body


def scene() -> Image.Image:
    picture = Image.new("RGB", (320, 240), (60, 120, 180))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 150, 320, 240), fill=(40, 130, 50))
    draw.ellipse((60, 40, 160, 140), fill=(210, 50, 40))
    draw.ellipse((200, 60, 290, 150), fill=(230, 190, 60))
    draw.rectangle((130, 160, 220, 220), fill=(150, 110, 80))
    return picture


def stored_in(space: str, picture: Image.Image | None = None) -> tuple[Image.Image, bytes]:
    """A picture in the numbers of a space, and its profile; the scene without one."""
    matrix, gamma = SPACES[space]
    values = np.asarray(picture or scene()) / 255.0
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    stored = np.clip(linear @ (np.linalg.inv(matrix) @ SRGB).T, 0, 1) ** (1 / gamma)
    return Image.fromarray((stored * 255).round().astype(np.uint8)), profile(matrix, gamma)


def error(data: bytes, against: Image.Image | None = None) -> float:
    shown = np.asarray(open_picture(data).image).astype(int)
    return float(np.abs(shown - np.asarray(against or scene())).mean())


FORMATS: dict[str, dict[str, Any]] = {
    "JPEG": {"quality": 97, "subsampling": 0},
    "PNG": {},
    "TIFF": {},
    "WEBP": {"lossless": True},
    "AVIF": {"quality": 95, "subsampling": "4:4:4"},
    "HEIF": {"quality": 95, "chroma": 444},
}


@pytest.mark.parametrize("space", SPACES)
def test_a_scene_is_the_same_in_every_space(space: str) -> None:
    picture, icc = stored_in(space)
    assert error(encoded(picture, "PNG", icc_profile=icc)) < 2
    assert error(encoded(picture, "PNG")) > 8


@pytest.mark.parametrize("format", FORMATS)
def test_a_scene_is_the_same_in_every_container(format: str) -> None:
    pillow_heif.register_heif_opener()
    picture, icc = stored_in("P3")
    data = encoded(picture, format, icc_profile=icc, **FORMATS[format])
    assert error(data) < 2.5
    small = np.asarray(Image.open(io.BytesIO(thumbnail(data, 160)))).astype(int)
    assert np.abs(small - np.asarray(scene().reduce(2))).mean() < 4


def test_an_export_of_a_phone_photo_keeps_its_colours(tmp_path: Path) -> None:
    pillow_heif.register_heif_opener()
    picture, icc = stored_in("P3")
    (tmp_path / "phone.heic").write_bytes(encoded(picture, "HEIF", icc_profile=icc, **FORMATS["HEIF"]))
    made = picture_of([str(tmp_path / "phone.heic")], bare=True)
    assert not isinstance(made, str) and made.suffix == ".jpg"
    with Image.open(io.BytesIO(made.data)) as jpeg:
        assert np.abs(np.asarray(jpeg).astype(int) - np.asarray(scene())).mean() < 3


def test_grey_and_transparent_pictures_are_converted_too() -> None:
    picture, icc = stored_in("linear")
    layer = picture.convert("RGBA")
    layer.paste((0, 0, 0, 0), (0, 0, 40, 240))
    expected = scene()
    expected.paste("white", (0, 0, 40, 240))
    assert error(encoded(layer, "PNG", icc_profile=icc), expected) < 2
    assert error(encoded(picture.quantize(64), "PNG", icc_profile=icc)) < 4


def test_a_reduced_scale_keeps_the_colours_and_the_size_in_the_facts() -> None:
    picture, icc = stored_in("ProPhoto")
    opened = open_picture(encoded(picture, "PNG", icc_profile=icc), 120)
    image, facts = opened.image, opened.facts
    assert (image.size, facts["width"], facts["height"]) == ((160, 120), 320, 240)
    assert np.abs(np.asarray(image).astype(int) - np.asarray(scene().reduce(2))).mean() < 2


def test_srgb_keeps_every_bit_and_a_broken_profile_is_ignored() -> None:
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for icc in (srgb, b"Secret" * 100, b"", srgb[:200], profile(np.zeros((3, 3)), 2.2)[:400]):
        assert error(encoded(scene(), "PNG", icc_profile=icc)) == 0
    _, icc = stored_in("P3")
    assert error(encoded(scene().convert("CMYK"), "TIFF", icc_profile=icc), scene()) < 2  # of other colours


def test_twelve_bits_of_colour_in_a_tiff_are_not_black() -> None:
    values = np.asarray(scene()).astype(np.uint16) * 16
    width, height = scene().size
    for rows in (values, values + 15):
        pixels = b"".join(b"\0" + row.astype(">u2").tobytes() for row in rows)
        assert error(png(width, height, chunk(b"sBIT", b"\x0c" * 3), pixels, (16, 2))) < 1
        assert error(tiff(rows, "<")) < 1
        assert error(tiff(rows, ">")) < 1


def tiff(values: NDArray[np.uint16], order: str) -> bytes:
    """An uncompressed TIFF of three channels of 16 bits by hand: Pillow writes none."""
    height, width, _ = values.shape
    pixels = values.astype(f"{order}u2").tobytes()
    entries = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 3, 8 + len(pixels)), (259, 3, 1, 1), (262, 3, 1, 2)]
    entries += [(273, 4, 1, 8), (277, 3, 1, 3), (278, 4, 1, height), (279, 4, 1, len(pixels))]
    body = b"II*\0" if order == "<" else b"MM\0*"
    body += struct.pack(f"{order}I", 8 + len(pixels) + 6) + pixels + struct.pack(f"{order}3H", 16, 16, 16)
    body += struct.pack(f"{order}H", len(entries))
    for tag, kind, count, value in entries:
        short = kind == 3 and count == 1
        body += struct.pack(
            f"{order}HHI{'HH' if short else 'I'}", tag, kind, count, *((value, 0) if short else (value,))
        )
    return body + b"\0" * 4


def heif(picture: Image.Image, primaries: int, transfer: int) -> bytes:
    numbers = {"color_primaries": primaries, "transfer_characteristics": transfer, "matrix_coefficients": 6}
    file = io.BytesIO()
    pillow_heif.from_pillow(picture).save(file, quality=95, save_nclx_profile=True, full_range_flag=1, **numbers)
    return file.getvalue()


def with_cicp(picture: Image.Image, primaries: int, transfer: int) -> bytes:
    data = encoded(picture, "PNG")
    return data[:33] + chunk(b"cICP", bytes([primaries, transfer, 0, 1])) + data[33:]


def avif(picture: Image.Image, primaries: int, transfer: int) -> bytes:
    """Pillow writes numbers of sRGB, which are put right by hand."""
    data = encoded(picture, "AVIF", quality=98, subsampling="4:4:4")
    at = data.index(b"colrnclx") + 8
    return data[:at] + struct.pack(">HH", primaries, transfer) + data[at + 4 :]


@pytest.mark.parametrize("container", [heif, with_cicp, avif])
def test_a_file_names_its_colours_by_numbers_alone(container: Any) -> None:
    red = Image.new("RGB", (64, 64), (200, 40, 40))
    for primaries, transfer, shown in ((12, 13, (218, 0, 26)), (1, 13, (200, 40, 40)), (2, 2, (200, 40, 40))):
        seen = open_picture(container(red, primaries, transfer)).image.getpixel((9, 9))
        assert np.abs(np.subtract(seen, shown)).max() <= 3  # P3; sRGB; nothing said


def high(light: NDArray[np.float64], transfer: int) -> NDArray[np.float64]:
    """What stores light of BT.2020 in cd/m2, by PQ (ST 2084) or HLG (BT.2100, a display of 1000 cd/m2)."""
    if transfer == 16:
        y = (light / 10_000) ** 0.1593017578125
        return ((0.8359375 + 18.8515625 * y) / (1 + 18.6875 * y)) ** 78.84375
    luminance = (light @ [0.2627, 0.678, 0.0593])[..., None] / 1000
    scene_light = light / 1000 * luminance ** (1 / 1.2 - 1)
    return np.where(
        scene_light <= 1 / 12,
        np.sqrt(3 * scene_light),
        0.17883277 * np.log(np.maximum(12 * scene_light - 0.28466892, 1e-9)) + 0.55991073,
    )


@pytest.mark.parametrize("container", [heif, with_cicp, avif])
@pytest.mark.parametrize("transfer", [16, 18])
def test_high_dynamic_range_is_shown_in_the_range_of_srgb(container: Any, transfer: int) -> None:
    """The scene with paper at 203 cd/m2: each colour has its hue, and its light as Reinhard's curve leaves it."""
    values = np.asarray(scene()) / 255.0
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    brightest = linear.max(axis=-1, keepdims=True)
    mapped = linear * (1 + brightest / (1000 / 203) ** 2) / (1 + brightest)
    shown = Image.fromarray((255 * (1.055 * mapped ** (1 / 2.4) - 0.055).clip(0, 1)).round().astype(np.uint8))
    stored = high((linear @ (np.linalg.inv(SPACES["BT.2020"][0]) @ SRGB).T).clip(1e-6) * 203, transfer)
    data = container(Image.fromarray((255 * stored).round().astype(np.uint8)), 9, transfer)
    assert error(data, shown) < 4 < error(data)
    grey = [
        int(open_picture(container(Image.new("RGB", (64, 64), (n,) * 3), 9, transfer)).image.getpixel((9, 9))[0])
        for n in range(0, 256, 51)
    ]  # type: ignore[index]
    assert grey == sorted(grey) and grey[0] <= 3


def test_a_camera_says_adobe_rgb_in_exif_alone() -> None:
    picture, _ = stored_in("Adobe RGB")
    for name, is_right in (("R03", True), ("R98", False)):
        exif = Image.Exif()
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.ColorSpace] = 65535
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.IFD.Interop] = {1: name}
        assert (error(encoded(picture, "JPEG", exif=exif, **FORMATS["JPEG"])) < 2) == is_right


@pytest.mark.parametrize("damaged", [profile(np.zeros((3, 3)), 2.2), profile(SRGB, 0.0)])
def test_a_profile_that_makes_one_colour_of_all_is_ignored(damaged: bytes) -> None:
    assert error(encoded(scene(), "TIFF", icc_profile=damaged)) == 0


def test_pictures_without_a_fitting_profile_are_read_by_their_own_numbers() -> None:
    p3 = profile(*SPACES["P3"])
    cmyk = Image.new("CMYK", (8, 8), (0, 200, 200, 0))
    plain = open_picture(encoded(cmyk, "JPEG", quality=95)).image.getpixel((3, 3))
    assert np.abs(np.subtract(plain, (255, 55, 55))).max() <= 2
    assert open_picture(encoded(cmyk, "JPEG", quality=95, icc_profile=p3)).image.getpixel((3, 3)) == plain
    grey = Image.fromarray(np.full((8, 8), 30_000, np.uint16))
    assert open_picture(encoded(grey, "PNG")).image.getpixel((3, 3)) == (117, 117, 117)
    deep = Image.fromarray(np.full((32, 32), 0x7500, np.uint16))
    assert open_picture(encoded(deep, "PNG")).image.size == (32, 32)
    for icc in (ImageCms.createProfile("LAB"), ImageCms.createProfile("XYZ")):
        assert error(encoded(scene(), "PNG", icc_profile=ImageCms.ImageCmsProfile(icc).tobytes())) == 0


# -- RAW photos are read by their previews, and files that are one photo are one item -----------------------------


needs_rawpy = pytest.mark.skipif(not reads_raw(), reason="needs the extra [raw]")


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    with Image.open(sorted(sample.photos().glob("*fish*.jpg"))[0]) as opened:
        return opened.convert("RGB").resize((320, 240))


@needs_rawpy
def test_a_raw_photo_is_its_preview_upright_with_the_facts_of_its_file(photo: Image.Image) -> None:
    opened = open_picture(dng(photo, orientation=6))

    assert opened.image.size == (240, 320)
    assert (opened.facts["width"], opened.facts["height"], opened.facts["format"]) == (480, 640, "RAW")
    assert (
        opened.facts.get("date_changed") == "2021-05-31T18:02:11"
        and opened.facts.get("camera") == "Eyespot Hand Made 1"
    )


@needs_rawpy
def test_a_raw_photo_without_a_preview_is_developed_at_half_its_size() -> None:
    assert open_picture(dng(None)).image.size == (320, 240)


@needs_rawpy
def test_a_cut_or_too_large_raw_photo_is_refused(photo: Image.Image, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in range(1, 5000, 700):  # LibRaw calls it an input or output error, as if the disk were at fault
        with pytest.raises(BadPicture, match=r"damaged: its pixels cannot be decoded|empty|not a picture"):
            open_picture(dng(photo)[:size])
    monkeypatch.setenv("EYESPOT_MAX_PIXELS", "20000")
    for data in (dng(photo), dng(None)):
        with pytest.raises(BadPicture, match="over the limit"):
            open_picture(data)


@needs_rawpy
def test_a_damaged_header_of_a_raw_photo_has_a_reason_in_words() -> None:
    whole, rng = dng(None), np.random.default_rng(0)
    reasons = set()
    for _ in range(60):
        data = bytearray(whole)
        for at in rng.integers(0, 400, 6):
            data[at] = rng.integers(0, 256)
        try:
            open_picture(bytes(data))
        except BadPicture as bad:
            reasons.add(bad.reason)
    assert len(reasons) > 2 and not [one for one in reasons if re.fullmatch(r"damaged: [0-9-]*", one)]


@pytest.mark.long
@needs_rawpy
def test_raw_photos_are_not_gone_without_the_extra(photo: Image.Image, tmp_path: Path) -> None:
    photos = draw_photos(tmp_path / "photos", 6)
    for name in ("stays.dng", "goes.DNG"):
        (photos / name).write_bytes(dng(photo.rotate(10 * len(name))))
    summary = index_gallery(tmp_path / "gallery", photos)
    assert (summary.pictures, summary.failures, summary.found.skipped.files) == (8, [], 0)
    (photos / "goes.DNG").unlink()
    without = "import sys; sys.modules['rawpy'] = None; import eyespot.cli; eyespot.cli.main()"
    line = [sys.executable, "-c", without, "index", "-g", str(tmp_path / "gallery")]
    done = subprocess.run(line, capture_output=True, text=True, check=True)

    assert "holds 7 pictures" in done.stderr and "1 picture is gone" in done.stderr


@pytest.mark.parametrize("form", ["TIFF", "JPEG", "PNG"])
def test_other_pictures_are_not_taken_for_raw_photos(photo: Image.Image, form: str) -> None:
    made = BytesIO()
    photo.save(made, form)
    data = made.getvalue()

    assert not is_raw(data) and open_picture(data).image.size == photo.size
    assert is_raw(dng(photo)) and is_raw(dng(None)) and not is_raw(b"") and not is_raw(b"II*\0\xff\xff\xff\xff")


# -- pairs ------------------------------------------------------------------------------------------------------


def looked(photo: Image.Image, folder: Path, other: str, seconds: float = 2, data: bytes = b"not read") -> SkippedFiles:
    """What a look at a photo, IMG_1.jpg, and a file so many seconds younger leaves out; its label says the same."""
    folder.mkdir(exist_ok=True)
    photo.save(folder / "IMG_1.jpg")
    (folder / other).write_bytes(data)
    os.utime(folder / "IMG_1.jpg", (1e9, 1e9))
    os.utime(folder / other, (1e9 + seconds, 1e9 + seconds))
    skipped = SkippedFiles()
    met = list(scan_counting(Root(str(folder), "folder"), skipped))
    beside = [record for record in met if isinstance(record, Labels)]
    assert beside == ([Labels("IMG_1.jpg", {BESIDE: other})] if skipped.left_out_texts() else [])
    seen = [record.path for record in met if isinstance(record, Seen)]
    assert "IMG_1.jpg" in seen and len(seen) + skipped.files + len(beside) == 2
    return skipped


TOGETHER = ["1 beside their photo"]


@pytest.mark.parametrize(
    ("other", "seconds", "left_out"),
    [
        *((f"IMG_1.{ending}", 2, TOGETHER) for ending in ("CR2", "mov", "MP4")),
        ("IMG_1.MOV", 3600, []),
        ("IMG_2.MOV", 0, []),
    ],
)
def test_what_lies_beside_its_photo_is_one_item_with_it(
    photo: Image.Image, other: str, seconds: float, left_out: list[str], tmp_path: Path
) -> None:
    assert looked(photo, tmp_path, other, seconds).left_out_texts() == left_out


@pytest.mark.parametrize("name", ["PXL_1.RAW-01.COVER.jpg", "PXL_1.RAW-01.MP.COVER.jpg", "PXL_1.jpg"])
def test_the_raw_file_of_a_pixel_belongs_to_its_jpeg(name: str, tmp_path: Path) -> None:
    for one in (name, "PXL_1.RAW-02.ORIGINAL.dng", "PXL_2.RAW-02.ORIGINAL.dng"):
        (tmp_path / one).write_bytes(b"not read")
    assert pairs_in(list(os.scandir(tmp_path))) == {"PXL_1.RAW-02.ORIGINAL.dng": name}


def test_a_photo_says_what_lies_beside_it(photo: Image.Image, tmp_path: Path) -> None:
    looked(photo, tmp_path / "photos", "IMG_1.MOV")
    index_gallery(tmp_path / "gallery", tmp_path / "photos")
    gallery = Gallery(tmp_path / "gallery")
    (facts,) = gallery.view(gallery.stem()).facts([0])

    assert facts[BESIDE] == "IMG_1.MOV" and Path(facts["path"]).name == "IMG_1.jpg"


def box(name: bytes, content: bytes, wide: bool = False) -> bytes:
    """A box of an MP4 file; wide: its size is a number of eight bytes."""
    if wide:
        return struct.pack(">I4sQ", 1, name, len(content) + 16) + content
    return struct.pack(">I4s", len(content) + 8, name) + content


def movie(seconds: float, version: int) -> bytes:
    """An MP4 file without a track, of so many seconds."""
    head = struct.pack(">B3xQQIQ" if version else ">B3xIIII", version, 0, 0, 600, round(600 * seconds))
    header = box(b"moov", box(b"udta", bytes(20)) + box(b"mvhd", head + bytes(80)))
    return box(b"ftyp", b"isom") + box(b"mdat", bytes(5000), wide=bool(version)) + header


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(("seconds", "left_out"), [(3, TOGETHER), (18, []), (20_000, [])])
def test_a_video_of_more_than_a_few_seconds_is_no_moment_of_its_poster(
    photo: Image.Image, seconds: float, left_out: list[str], version: int, tmp_path: Path
) -> None:
    assert looked(photo, tmp_path, "IMG_1.mp4", data=movie(seconds, version)).left_out_texts() == left_out


@pytest.mark.parametrize("cut", [0, 7, 12, 5030, 5060])
def test_a_video_whose_header_says_no_length_is_a_moment(photo: Image.Image, cut: int, tmp_path: Path) -> None:
    assert looked(photo, tmp_path, "IMG_1.mp4", data=movie(18, 0)[:cut]).left_out_texts() == TOGETHER
