"""RAW photos are read by their previews, and files that are one photo are one item."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from eyespot import sample
from eyespot.gallery.view import Gallery
from eyespot.photos.found import Labels, Seen
from eyespot.photos.kinds import SkippedFiles
from eyespot.photos.pictures import BadPicture, open_picture
from eyespot.photos.places import Root
from eyespot.photos.raw import is_raw, reads_raw
from eyespot.photos.sidecars import BESIDE
from eyespot.photos.sources import scan_counting
from tests.worlds import draw_photos, index_gallery
from tests.worlds.dng import dng

needs_rawpy = pytest.mark.skipif(not reads_raw(), reason="needs the extra [raw]")


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    with Image.open(sorted(sample.photos().glob("*fish*.jpg"))[0]) as opened:
        return opened.convert("RGB").resize((320, 240))


def as_bytes(photo: Image.Image, form: str) -> bytes:
    made = BytesIO()
    photo.save(made, form)
    return made.getvalue()


@needs_rawpy
def test_a_raw_photo_is_its_preview_upright_with_the_facts_of_its_file(photo: Image.Image) -> None:
    opened = open_picture(dng(photo, orientation=6))

    assert opened.image.size == (240, 320)
    assert (opened.facts.width, opened.facts.height, opened.facts.format) == (480, 640, "RAW")
    assert opened.facts.date_changed == "2021-05-31T18:02:11" and opened.facts.camera == "Eyespot Hand Made 1"


@needs_rawpy
def test_a_raw_photo_without_a_preview_is_developed_at_half_its_size() -> None:
    assert open_picture(dng(None)).image.size == (320, 240)


@needs_rawpy
def test_a_raw_photo_that_is_cut_or_too_large_is_refused_in_a_sentence(
    photo: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadPicture):
        open_picture(dng(photo)[:5000])
    monkeypatch.setenv("EYESPOT_MAX_PIXELS", "20000")
    for data in (dng(photo), dng(None)):
        with pytest.raises(BadPicture, match="over the limit"):
            open_picture(data)


@pytest.mark.long
@needs_rawpy
def test_raw_photos_are_indexed_and_not_gone_where_the_extra_is_not_installed(
    photo: Image.Image, tmp_path: Path
) -> None:
    photos = draw_photos(tmp_path / "photos", 6)
    for name in ("stays.dng", "goes.DNG"):
        (photos / name).write_bytes(dng(photo.rotate(10 * len(name))))
    summary = index_gallery(tmp_path / "gallery", photos)
    assert (summary.pictures, summary.failures, summary.found.skipped.files) == (8, [], 0)
    (photos / "goes.DNG").unlink()
    without = "import sys; sys.modules['rawpy'] = None; import eyespot.cli; eyespot.cli.main()"
    line = [sys.executable, "-c", without, "index", "-g", str(tmp_path / "gallery")]
    done = subprocess.run(line, capture_output=True, text=True, check=True)

    assert "holds 7 pictures" in done.stderr and "1 pictures are gone" in done.stderr


@pytest.mark.parametrize("form", ["TIFF", "JPEG", "PNG"])
def test_other_pictures_are_not_taken_for_raw_photos(photo: Image.Image, form: str) -> None:
    data = as_bytes(photo, form)

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
