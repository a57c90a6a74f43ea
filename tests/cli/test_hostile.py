"""Forty hostile files among good ones: every good picture is found, every bad one is named with its reason."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import done, run_json


def stripes(seed: int) -> Image.Image:
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.integers(0, 255, (12, 16, 3), np.uint8)).resize((160, 120), Image.Resampling.NEAREST)


def saved(picture: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def bomb(side: int) -> bytes:
    """A PNG of side x side black pixels in a few hundred kilobytes."""
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(1 + side // 8)) for _ in range(side)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def rotated(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return saved(stripes(100 + orientation), "JPEG", exif=exif)


def frames(kind: str, seed: int) -> bytes:
    return saved(stripes(seed), kind, save_all=True, append_images=[stripes(seed + 1), stripes(seed + 2)], duration=40)


def good() -> dict[str, bytes]:
    """Odd but sound: a viewer shows each of them."""
    deep = Image.fromarray((np.arange(120 * 160).reshape(120, 160) * 3).astype(np.uint16))
    see_through = stripes(31).convert("RGBA")
    see_through.putalpha(90)
    files = {f"exif-{n}.jpg": rotated(n) for n in range(1, 9)}
    return files | {
        "animated.gif": frames("GIF", 20),
        "animated.webp": frames("WEBP", 24),
        "cmyk.jpg": saved(stripes(28).convert("CMYK"), "JPEG"),
        "sixteen-bit.png": saved(deep, "PNG"),
        "palette.png": saved(stripes(29).convert("P"), "PNG", transparency=0),
        "alpha.png": saved(see_through, "PNG"),
        "one-bit.png": saved(stripes(32).convert("1"), "PNG"),
        "grey.jpg": saved(stripes(33).convert("L"), "JPEG"),
        "pages.tiff": frames("TIFF", 34),
        "a jpeg called.png": saved(stripes(37), "JPEG"),
        "UPPER CASE.JPG": saved(stripes(38), "JPEG"),
        "ünïcode – 鳥.jpg": saved(stripes(39), "JPEG"),
        "one-pixel.png": saved(Image.new("RGB", (1, 1), "red"), "PNG"),
        "very-wide.png": saved(stripes(40).resize((4000, 2)), "PNG"),
    }


def bad() -> dict[str, bytes]:
    """Nothing that could be shown whole."""
    jpeg, png = saved(stripes(50), "JPEG", quality=95), saved(stripes(51), "PNG")
    return {
        "zero.jpg": b"",
        "one-byte.png": b"\x89",
        "half.jpg": jpeg[: len(jpeg) // 2],
        "header-only.jpg": jpeg[:20],
        "half.png": png[: len(png) // 2],
        "half.webp": saved(stripes(52), "WEBP")[:200],
        "half.gif": saved(stripes(53), "GIF")[:100],
        "text.jpg": b"Dear diary, today I saw a heron.\n" * 20,
        "page.png": b"<html><body>404</body></html>",
        "script.gif": b"GIF89a<script>alert(1)</script>",
        "noise.jpg": np.random.default_rng(7).bytes(4000),
        "bomb.png": bomb(30_000),
        "postscript.jpg": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
        "zeros.tif": bytes(5000),
        "swapped.jpg": png[8:] + png[:8],
        "archive.png": b"PK\x03\x04" + bytes(300),
    }


def plant_traps(folder: Path) -> list[str]:
    """Things that are no files at all."""
    (folder / "loop").symlink_to(folder)
    (folder / "ouroboros.jpg").symlink_to("ouroboros.jpg")
    os.mkfifo(folder / "pipe.jpg")
    return ["loop/", "ouroboros.jpg", "pipe.jpg"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name, data in {**good(), **bad()}.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.long
def test_no_good_picture_is_lost_and_every_bad_one_is_named(folder: Path, tmp_path: Path) -> None:
    traps = plant_traps(folder)
    assert len(list(folder.iterdir())) >= 40

    done("index", folder, "-g", tmp_path / "gallery", code=3)
    found = run_json("search", "stripes", "-k", 100, "-g", tmp_path / "gallery")["items"]
    failed = run_json("failures", "-g", tmp_path / "gallery")

    assert {Path(item["path"]).name for item in found} == set(good())
    reasons = {row["path"].removeprefix(f"{folder}/"): row["reason"] for row in failed}
    assert set(reasons) == {*bad(), *traps}
    assert all(reason and "\n" not in reason for reason in reasons.values())
    assert "30000 x 30000 pixels, over the limit" in reasons["bomb.png"]


@pytest.mark.long
def test_hostile_names_and_labels_stop_nothing(tmp_path: Path) -> None:
    photos, odd = tmp_path / "photos", Path(os.fsdecode(os.fsencode(tmp_path) + b"/photos/caf\xe9"))
    for seed, folder in enumerate([photos, photos / "deep", odd, photos / "d.tar", photos / "far"]):
        folder.mkdir(parents=True)
        stripes(seed).save(folder / "a.jpg")
    (odd / "metadata.csv").write_text("file_name,species\na.jpg,heron\n")
    (photos / "far" / "metadata.csv").write_text("file_name,ärt\na.jpg,gull\n")
    os.utime(photos / "far" / "a.jpg", (2**33, 2**33))
    rows = [
        f'{{"file_name": "a.jpg", "Ärt": "tern", "latitude": {"9" * 400}, "longitude": 1e999}}',
        '{"file_name": "d.tar/a.jpg", "latitude": 7, "score": 5, "species": "\\ud800"}',
        "[" * 100_000,
    ]
    (photos / "metadata.jsonl").write_text("\n".join(rows))

    done("index", photos, "-g", tmp_path / "gallery", code=3)
    found = run_json("search", "stripes", "-g", tmp_path / "gallery")["items"]
    failed = run_json("failures", "-g", tmp_path / "gallery")

    items = {item["path"].removeprefix(f"{photos}/"): item for item in found}
    assert {path: item["Ärt"] for path, item in items.items()} == {
        "a.jpg": "tern",
        "deep/a.jpg": None,
        "d.tar/a.jpg": None,
        "far/a.jpg": "gull",
        "caf\udce9/a.jpg": None,
    }
    assert items["caf\udce9/a.jpg"]["species"] == "heron"
    assert items["a.jpg"]["latitude"] is None
    failures = {row["path"].removeprefix(f"{photos}/") for row in failed}
    assert failures == {"metadata.jsonl:2", "metadata.jsonl:3"}
