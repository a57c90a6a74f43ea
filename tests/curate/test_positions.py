"""Sets hand on no position that a photo tells in its metadata, unless somebody asks for it."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import ExifTags, Image

from eyespot.curate.recos.making import write_set
from eyespot.curate.recos.pictures import Sources
from eyespot.curate.set_folder import SharePicture, shared_picture
from eyespot.formats.pictures import as_it_is, without_position
from eyespot.photos.pictures import id_of
from eyespot.runs import recos
from eyespot.types import EyespotError
from tests.command import run_eyespot
from tests.worlds import index_gallery
from tests.worlds.recos import photos, recipe
from tests.worlds.rmir import photos as rmir_photos, recipe as rmir_recipe


def placed(data: bytes, format: str = "JPEG") -> bytes:
    """The picture with a position and an orientation."""
    exif, out = Image.Exif(), BytesIO()
    exif[ExifTags.Base.Orientation] = 6
    exif.get_ifd(ExifTags.IFD.GPSInfo).update({1: "N", 2: (53.0, 5.0, 0.0), 3: "E", 4: (8.0, 48.0, 0.0)})
    with Image.open(BytesIO(data)) as image:
        image.save(out, format, exif=exif)
    return out.getvalue()


def tells(data: bytes) -> bool:
    with Image.open(BytesIO(data)) as image:
        return bool(image.getexif().get_ifd(ExifTags.IFD.GPSInfo))


def a_picture() -> bytes:
    out = BytesIO()
    Image.fromarray(np.random.default_rng(2).integers(0, 255, (40, 60, 3), np.uint8)).save(out, "JPEG")
    return out.getvalue()


@pytest.mark.parametrize(("format", "suffix"), [("JPEG", ".jpg"), ("PNG", ".png"), ("WEBP", ".webp")])
def test_a_position_goes_and_the_picture_stays_upright(format: str, suffix: str) -> None:
    data = placed(a_picture(), format)

    shared = without_position(data, ".jpg" if format == "JPEG" else f".{format.lower()}")

    assert tells(data) and not tells(shared.data) and shared.suffix == suffix
    with Image.open(BytesIO(shared.data)) as image:
        assert image.getexif().get(ExifTags.Base.Orientation, 1) == 6
    assert tells(as_it_is(data, suffix).data)


XMP = b"<x:xmpmeta><exif:GPSLatitude>53,5N</exif:GPSLatitude></x:xmpmeta>"


def chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)


def unusual_pictures() -> dict[str, bytes]:
    """Pictures that tell a position where few programs write it, by the end of their names."""
    png, gif, jpeg = BytesIO(), BytesIO(), BytesIO()
    image = Image.new("RGB", (8, 8), (200, 0, 0))
    image.save(png, "PNG")
    image.save(gif, "GIF")
    image.save(jpeg, "JPEG", xmp=XMP.decode().encode("utf-16-le"))
    start, end = png.getvalue()[:-12], png.getvalue()[-12:]
    lines = XMP.hex()
    profile = f"\nxmp\n      {len(XMP)}\n{lines[:72]}\n{lines[72:]}\n".encode()
    head = gif.getvalue().index(b"\x2c", 13)
    block = b"\x21\xff\x0bXMP DataXMP" + XMP + b"\x01" + bytes(range(255, -1, -1)) + b"\x00"
    return {
        "packed behind the pixels.png": start + chunk(b"zTXt", b"XML:com.adobe.xmp\0\0" + zlib.compress(XMP)) + end,
        "in hex digits.png": start + chunk(b"tEXt", b"Raw profile type xmp\0" + profile) + end,
        "in a block of.gif": gif.getvalue()[:head] + block + gif.getvalue()[head:],
        "in UTF-16.jpg": jpeg.getvalue(),
    }


@pytest.mark.parametrize("name", list(unusual_pictures()))
def test_positions_in_unusual_places_go_too(name: str) -> None:
    shared = without_position(unusual_pictures()[name], Path(name).suffix)

    with Image.open(BytesIO(shared.data)) as image:
        image.load()
        texts = [value for value in image.info.values() if isinstance(value, str | bytes)]
    assert image.size == (8, 8) and not [text for text in texts if "GPS" in str(text) or "4750" in str(text)]
    assert b"GPSL" not in shared.data.replace(b"\0", b"") and shared.data != unusual_pictures()[name]


def test_a_picture_without_a_position_stays_as_it_is() -> None:
    out = BytesIO()
    Image.new("RGB", (8, 8)).save(out, "PNG")
    data = out.getvalue()[:-12] + chunk(b"tEXt", b"date:create\x002026-01-01") + out.getvalue()[-12:]
    assert without_position(data, ".png").data == data
    assert without_position(a_picture(), ".jpg").data == a_picture()


@pytest.mark.parametrize("share", [without_position, as_it_is])
def test_pictures_of_a_set(tmp_path: Path, share: SharePicture) -> None:
    """With its position its bytes are handed on as they are, so only a missing file is noticed."""
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(placed(a_picture()))
    assert tells(shared_picture(photo, ".jpg", share)[1].data) is (share is as_it_is)

    if share is without_position:
        photo.write_bytes(a_picture()[:300])
    else:
        photo.unlink()
    with pytest.raises(EyespotError):  # in the words of whoever reads pictures
        shared_picture(photo, ".jpg", share)


def placed_gallery(photos: Callable[[Path], Path], folder: Path) -> Path:
    """A gallery of photos that all tell a position."""
    gallery = photos(folder)
    for photo in (folder / "pictures").glob("*.jpg"):
        photo.write_bytes(placed(photo.read_bytes()))
    index_gallery(gallery, folder / "pictures")
    return gallery


@pytest.mark.long
def test_builders_drop_positions_and_keep_them_if_asked(tmp_path: Path) -> None:
    """The pictures of the set keep their ids, which are those of their bytes, so that both tables name them."""
    place = recipe(tmp_path, placed_gallery(photos, tmp_path / "photos"))
    line = ("build", "recos", place, "--out", tmp_path / "out")

    def position_flags() -> set[bool]:
        folder = tmp_path / "out" / "set"
        rows = pq.read_table(folder / "images.parquet").to_pylist()
        files = {row["image"]: (folder / row["path"]).read_bytes() for row in rows}
        captions = pq.read_table(folder / "captions.parquet").to_pylist()
        assert all(hashlib.sha256(data).hexdigest()[:32] == image for image, data in files.items())
        assert {row["image"] for row in captions} | {row["of"] for row in rows if row["of"]} <= set(files)
        return {tells(files[row["image"]]) for row in rows if row["source"] == "own"}

    assert run_eyespot(*line).returncode == 0 and position_flags() == {False}
    assert run_eyespot(*line, "--positions").returncode == 0 and position_flags() == {True}
    place = rmir_recipe(tmp_path / "rmir", placed_gallery(rmir_photos, tmp_path / "rmir-photos"))
    line = ("build", "rmir", place, "--out", tmp_path / "rmir", "--pictures", "--positions")
    assert run_eyespot(*line).returncode == 0
    rows = pq.read_table(tmp_path / "rmir" / "set" / "mteb" / "corpus" / "test.parquet").to_pylist()
    assert rows and all(tells(row["image"]["bytes"]) for row in rows)


def test_pictures_that_differ_in_their_position_alone_become_one(tmp_path: Path) -> None:
    rows = []
    for number, data in enumerate((placed(a_picture()), without_position(placed(a_picture()), ".jpg").data)):
        (tmp_path / f"{number}.jpg").write_bytes(data)
        image = {"image": id_of(data), "subtask": "colour", "version": "v0", "source": "drawn", "path": f"{number}.jpg"}
        rows.append({**image, "id": str(number), "text": f"Caption {number}."})

    write_set(rows, Sources(tmp_path, {}), tmp_path / "set")
    found = recos.read(tmp_path / "set").captions

    assert len(found.images) == 1 and len(found.texts) == 2 and len({row["image"] for row in rows}) == 2
