"""RAW photos are read by their previews, and files that are one photo are one item."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from datetime import datetime
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from eyespot import sample
from eyespot.gallery.indexing import index
from eyespot.gallery.photos.kinds import SkippedFiles
from eyespot.gallery.photos.pairs import BESIDE
from eyespot.gallery.photos.pictures import BadPicture, open_picture
from eyespot.gallery.photos.raw import is_raw, reads_raw
from eyespot.gallery.photos.sources import Labels, Root, Seen, scan_counting
from eyespot.gallery.view import Gallery
from eyespot.types import Encoder
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
    assert opened.facts.taken == datetime(2021, 5, 31, 18, 2, 11) and opened.facts.camera == "Eyespot Hand Made 1"


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
    with pytest.raises(BadPicture, match="over the limit"):
        open_picture(dng(photo))
    with pytest.raises(BadPicture, match="over the limit"):
        open_picture(dng(None))


@needs_rawpy
def test_raw_photos_of_a_folder_are_indexed(photo: Image.Image, starter: Encoder, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "IMG_7.DNG").write_bytes(dng(photo))
    summary = index(tmp_path / "gallery", [str(tmp_path / "photos")], [starter])

    assert (summary.pictures, summary.failures, summary.looked.skipped.files) == (1, [], 0)


@needs_rawpy
def test_raw_photos_are_not_gone_where_the_extra_is_not_installed(
    photo: Image.Image, starter: Encoder, tmp_path: Path
) -> None:
    (tmp_path / "photos").mkdir()
    for at in range(6):
        photo.rotate(60 * at).save(tmp_path / "photos" / f"{at}.png")
    for name in ("stays.dng", "goes.DNG"):
        (tmp_path / "photos" / name).write_bytes(dng(photo.rotate(10 * len(name))))
    index(tmp_path / "gallery", [str(tmp_path / "photos")], [starter])
    (tmp_path / "photos" / "goes.DNG").unlink()
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


def pair(folder: Path, photo: Image.Image, other: str, seconds: float) -> None:
    folder.mkdir(exist_ok=True)
    place = folder / f"{Path(other).stem}.jpg"
    photo.save(place)
    (folder / other).write_bytes(b"not read")
    os.utime(place, (1e9, 1e9))
    os.utime(folder / other, (1e9 + seconds, 1e9 + seconds))


@pytest.mark.parametrize("other", ["IMG_1.CR2", "IMG_1.mov", "IMG_1.MP4"])
def test_what_lies_beside_its_photo_is_one_item_with_it(photo: Image.Image, other: str, tmp_path: Path) -> None:
    pair(tmp_path / "photos", photo, other, 2)
    skipped = SkippedFiles()
    met = list(scan_counting(Root(str(tmp_path / "photos"), "folder"), skipped))

    assert [record.path for record in met if isinstance(record, Seen)] == ["IMG_1.jpg"]
    assert [record for record in met if isinstance(record, Labels)] == [Labels("IMG_1.jpg", {BESIDE: other})]
    assert skipped.left_out_texts() == ["1 beside their photo"] and skipped.files == 0


def test_a_photo_says_what_lies_beside_it(photo: Image.Image, starter: Encoder, tmp_path: Path) -> None:
    pair(tmp_path / "photos", photo, "IMG_1.MOV", 2)
    index(tmp_path / "gallery", [str(tmp_path / "photos")], [starter])
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
@pytest.mark.parametrize(("seconds", "beside"), [(3, True), (18, False), (20_000, False)])
def test_a_video_of_more_than_a_few_seconds_is_no_moment_of_its_poster(
    photo: Image.Image, seconds: float, beside: bool, version: int, tmp_path: Path
) -> None:
    pair(tmp_path / "photos", photo, "talk.mp4", 2)
    (tmp_path / "photos" / "talk.mp4").write_bytes(movie(seconds, version))
    os.utime(tmp_path / "photos" / "talk.mp4", (1e9, 1e9))
    skipped = SkippedFiles()
    met = list(scan_counting(Root(str(tmp_path / "photos"), "folder"), skipped))

    assert skipped.left_out_texts() == (["1 beside their photo"] if beside else [])
    assert any(isinstance(record, Labels) for record in met) == beside


@pytest.mark.parametrize("cut", [0, 7, 12, 5030, 5060])
def test_a_video_whose_header_says_no_length_is_a_moment(photo: Image.Image, cut: int, tmp_path: Path) -> None:
    pair(tmp_path / "photos", photo, "talk.mp4", 2)
    (tmp_path / "photos" / "talk.mp4").write_bytes(movie(18, 0)[:cut])
    os.utime(tmp_path / "photos" / "talk.mp4", (1e9, 1e9))
    skipped = SkippedFiles()
    list(scan_counting(Root(str(tmp_path / "photos"), "folder"), skipped))

    assert skipped.left_out_texts() == ["1 beside their photo"]


@pytest.mark.parametrize(("other", "seconds"), [("IMG_1.MOV", 3600), ("IMG_2.MOV", 0)])
def test_another_name_or_hour_is_another_file(photo: Image.Image, other: str, seconds: float, tmp_path: Path) -> None:
    pair(tmp_path / "photos", photo, "IMG_1.MOV", 3600)
    (tmp_path / "photos" / other).touch()
    os.utime(tmp_path / "photos" / other, (1e9 + seconds, 1e9 + seconds))
    skipped = SkippedFiles()
    met = list(scan_counting(Root(str(tmp_path / "photos"), "folder"), skipped))

    seen = {record.path for record in met if isinstance(record, Seen)}
    assert skipped.left_out_texts() == [] and (other in seen or skipped.files == 1)
