"""Thousands of damaged pictures among good ones: none of the good ones is lost, none of the others goes unnamed."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pillow_heif
import pytest
from PIL import Image

from eyespot import sample
from eyespot.gallery.disk import shard_paths
from eyespot.gallery.items_table import read_items
from eyespot.photos.names import real_name
from tests.command import run_eyespot

pillow_heif.register_heif_opener()
GOOD = 50
FORMATS = {"jpg": "JPEG", "png": "PNG", "gif": "GIF", "webp": "WEBP", "tif": "TIFF", "bmp": "BMP", "heic": "HEIF"}
LIMIT = 600  # megabytes for --memory
REST = 1_500_000  # KiB that the encoder, Python and its packages may take besides

Mutation = Callable[[bytearray, random.Random], bytes]


def flip(data: bytearray, dice: random.Random) -> bytes:
    for _ in range(dice.choice((1, 8, 64))):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(data)


def flip_head(data: bytearray, dice: random.Random) -> bytes:
    """Sizes, depths and lengths stand there."""
    for _ in range(dice.randint(1, 4)):
        data[dice.randrange(min(64, len(data)))] = dice.randrange(256)
    return bytes(data)


def replace(data: bytearray, dice: random.Random) -> bytes:
    """A part is gone, blank, noise, or there several times."""
    start, stop = sorted(dice.randrange(len(data)) for _ in range(2))
    piece = bytes(data[start:stop])
    return (
        bytes(data[:start])
        + dice.choice([b"", bytes(len(piece)), dice.randbytes(len(piece)), 3 * piece])
        + bytes(data[stop:])
    )


def cut(data: bytearray, dice: random.Random) -> bytes:
    return bytes(data[: dice.randrange(len(data))])


MUTATIONS: list[Mutation] = [flip, flip_head, replace, cut]


def originals() -> list[tuple[str, bytes]]:
    """Small pictures of each format, with the ending of each."""
    made = []
    for source in sorted(sample.photos().glob("*.jpg"))[:6]:
        with Image.open(source) as picture:
            for ending, form in FORMATS.items():
                file = BytesIO()
                picture.convert("RGB").resize((96, 72)).save(file, form)
                made.append((ending, file.getvalue()))
    return made


def fill(folder: Path, count: int) -> set[Path]:
    """Good photos and so many mutated pictures; the good ones."""
    folder.mkdir()
    whole = sorted(sample.photos().glob("*.jpg"))[-GOOD:]
    good = {Path(shutil.copy(source, folder / f"good-{source.name}")) for source in whole}
    sources = originals()
    for number in range(count):
        dice = random.Random(number)
        ending, data = dice.choice(sources)
        mutated = dice.choice(MUTATIONS)(bytearray(data), dice)
        (folder / f"{number:04d}.{dice.choice([ending, ending, 'jpg'])}").write_bytes(mutated)
    return good


# Prints the peak memory of a command in KiB. A program that is started directly begins with the peak of these tests.
MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


@pytest.mark.long
@pytest.mark.parametrize("count", [120, pytest.param(3000, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
def test_no_good_picture_is_lost_and_no_other_goes_unnamed(tmp_path: Path, count: int) -> None:
    photos, gallery = tmp_path / "photos", tmp_path / "g"
    good = fill(photos, count)
    line = [sys.executable, "-m", "eyespot.cli", "index", photos, "-g", gallery, "--memory", f"{LIMIT}M", "--json"]
    run = subprocess.run([sys.executable, "-c", MEASURED, *line], capture_output=True, text=True)
    failures = json.loads(run_eyespot("failures", "-g", gallery, "--json").stdout)

    assert run.returncode == 3 and "Traceback" not in run.stderr, run.stderr
    tables = [read_items(shard).to_pylist() for shard in shard_paths(gallery)]
    stored = {photos / os.fsdecode(real_name(path)) for table in tables for row in table for path in row["paths"]}
    named = {Path(row["path"]) for row in failures}
    assert good <= stored
    assert stored | named == set(photos.iterdir()) and not stored & named
    assert all(row["reason"] for row in failures)
    assert int(run.stdout.splitlines()[-1]) < LIMIT * 1_000_000 // 1024 + REST
