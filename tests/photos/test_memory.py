"""Decoding stays within the memory it may take, however large the pictures and however many the workers."""

from __future__ import annotations

import io
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pillow_heif
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from eyespot import sample
from eyespot.gallery.disk import shard_paths
from eyespot.gallery.items_table import read_items
from eyespot.photos.memory import VARIABLE, MemoryBudget, as_size, decode_limit
from eyespot.photos.pictures import open_picture, picture_in_memory, thumbnail
from eyespot.types import UsageError
from tests.command import run_eyespot
from tests.photos.test_pictures import chunk, encoded, quarters
from tests.wording import raises
from tests.worlds import index_gallery

MIB = 1 << 20


def png(width: int, height: int, colours: int, note: bytes = b"") -> bytes:
    """A black PNG of any size, made without holding it; `note` makes it another file."""
    packer = zlib.compressobj(1)
    rows = -(-MIB // (1 + width * colours))
    block = bytes((1 + width * colours) * rows)
    parts = [packer.compress(block[: (1 + width * colours) * min(rows, height - y)]) for y in range(0, height, rows)]
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[colours], 0, 0, 0)
    pixels = chunk(b"IDAT", b"".join([*parts, packer.flush()]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"tEXt", b"n\0" + note) + chunk(b"IEND", b"")


def index(folder: Path, photos: dict[str, bytes], limit: str) -> tuple[int, int]:
    """The exit code of `eyespot index` of these photos by eight workers, and its peak of memory in MiB."""
    (folder / "photos").mkdir()
    for name, data in photos.items():
        (folder / "photos" / name).write_bytes(data)
    line = [sys.executable, "-m", "eyespot.cli", "index", folder / "photos", "-g", folder / "gallery", "--workers", "8"]
    child = subprocess.Popen(line, env=os.environ | {VARIABLE: limit}, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_maxrss // (1024 if sys.platform == "linux" else MIB)


@contextmanager
def limited(text: str | None) -> Iterator[None]:
    """The variable with this text, or without it, until the block ends."""
    before = os.environ.pop(VARIABLE, None)
    os.environ.update({} if text is None else {VARIABLE: text})
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        os.environ.update({} if before is None else {VARIABLE: before})


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> int:
    """The peak of indexing small photos, in MiB: what eyespot takes besides decoding."""
    photos = {f"{n}.png": encoded(quarters(64 + n), "PNG") for n in range(16)}
    code, peak = index(tmp_path_factory.mktemp("usual"), photos, "1G")
    assert code == 0
    return peak


@pytest.mark.long
@pytest.mark.parametrize(("height", "code"), [(149_000_000, 3), (20_000_000, 0)])
def test_a_tall_thin_picture_keeps_to_the_limit(tmp_path: Path, usual: int, height: int, code: int) -> None:
    done, peak = index(tmp_path, {"thin.png": png(1, height, 1)}, "600M")

    assert (done, peak < usual + 600) == (code, True), peak


@pytest.mark.long
def test_many_workers_with_large_pictures_keep_to_the_limit(tmp_path: Path, usual: int) -> None:
    done, peak = index(tmp_path, {f"{n}.png": png(11_000, 10_000, 3, b"%d" % n) for n in range(4)}, "1G")

    assert (done, peak < usual + 1024) == (0, True), peak


def test_a_refused_picture_is_listed_and_read_with_the_option_that_the_refusal_names(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "large.png").write_bytes(png(3000, 2000, 3))
    refused = run_eyespot("index", "photos", "--memory", "1M", cwd=tmp_path)
    listed = run_eyespot("failures", cwd=tmp_path).stdout
    ways = re.search(rf"--memory ([0-9.]+[MG]), or {VARIABLE}=([0-9.]+[MG])", listed)
    assert (refused.returncode, ways is not None and ways[1] == ways[2]) == (3, True), listed

    again = run_eyespot("index", "--memory", str(ways and ways[1]), cwd=tmp_path)

    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("read", [lambda data: thumbnail(data, 320), lambda data: open_picture(data, 200)])
def test_every_way_to_a_picture_waits_for_its_turn(read: Callable[[bytes], Any]) -> None:
    """A large one in memory keeps another from being decoded where there is room for one."""
    data = encoded(Image.new("RGB", (3000, 2000)), "PNG")
    with limited("80M"), ThreadPoolExecutor(1) as threads:
        with picture_in_memory(data, 200):
            waiting = threads.submit(read, data)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.3)
        assert waiting.result(timeout=60)


@given(st.lists(st.integers(0, 120), max_size=12))
def test_a_budget_is_never_overdrawn_and_everybody_gets_a_turn(sizes: list[int]) -> None:
    budget, used, peaks = MemoryBudget(), [0], [0]

    def take(size: int) -> None:
        with budget.reserve(size, 100):
            used[0] += min(size, 100)
            peaks.append(used[0])
            time.sleep(0.0001)
            used[0] -= min(size, 100)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(take, sizes))

    assert max(peaks) <= 100
    with budget.reserve(100, 100):
        pass


@pytest.mark.parametrize(
    ("text", "size"), [("800M", 800 << 20), ("2G", 2 << 30), ("1.5 GiB", 3 << 29), ("64mb", 64 << 20)]
)
def test_the_limit_is_an_environment_variable(text: str, size: int) -> None:
    with limited(text):
        assert decode_limit() == size


@pytest.mark.parametrize("text", ["", "0G", "lots", "-1G", "12", "1e3M"])
def test_a_wrong_limit_is_the_users_mistake(text: str) -> None:
    with limited(text), raises(UsageError):
        open_picture(encoded(quarters(), "PNG"))


@given(st.integers(1, 1 << 45))
def test_a_size_is_written_so_that_it_is_enough_when_it_is_read(size: int) -> None:
    with limited(as_size(size)):
        assert size <= decode_limit() <= 1.2 * size + 2 * MIB


def test_without_the_variable_the_limit_is_a_share_of_what_is_free() -> None:
    with limited(None):
        assert 512 * MIB <= decode_limit() <= 4096 * MIB


PEAK = r"""
import gc, sys
from pathlib import Path
from eyespot.photos import pictures
estimates, estimate = [], pictures.bytes_to_decode
pictures.bytes_to_decode = lambda *of: estimates.append(estimate(*of)) or estimates[-1]
def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))
for folder in sorted(Path(sys.argv[1]).iterdir()):
    small, large = ((folder / name).read_bytes() for name in ("small", "large"))
    pictures.open_picture(small)  # loads the libraries
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS")
    pictures.open_picture(large, int((folder / "min_side").read_text()) or None)
    print(folder.name, estimates[-1], status("VmHWM") - before)
"""


def drawn(mode: str, size: tuple[int, int]) -> Image.Image:
    grey = Image.linear_gradient("L").resize(size)
    if mode in ("RGB", "RGBA", "CMYK"):
        return Image.merge(mode, [grey] * len(mode))
    if mode == "I;16":
        return Image.fromarray(np.asarray(grey).astype(np.uint16) * 256)
    return Image.fromarray(np.asarray(grey).astype(np.float32)) if mode == "F" else grey.convert(mode)


def heif(mode: str, size: tuple[int, int]) -> bytes:
    file = io.BytesIO()
    if mode == "RGB;16":
        pixels = np.repeat(np.asarray(drawn("I;16", size))[..., None], 3, axis=2)
        made = pillow_heif.from_bytes(mode=mode, size=size, data=pixels.tobytes())
    else:
        made = pillow_heif.from_pillow(drawn(mode, size))
    made.save(file, quality=20, chroma=444)
    return file.getvalue()


SLOW = {"speed": 10, "subsampling": "4:4:4"}
TILES = {"compression": "tiff_lzw", "tiffinfo": {278: 2000}}
CASES = [  # format, mode, options, and the shorter side that is asked for
    ("JPEG", "RGB", {}, 0),
    *(("JPEG", "RGB", {"progressive": True, "subsampling": 0}, min_side) for min_side in (0, 200)),
    ("JPEG", "CMYK", {"progressive": True}, 0),
    *(("PNG", mode, {}, 0) for mode in ("L", "P", "RGB", "RGBA", "LA", "I;16")),
    ("GIF", "P", {}, 0),
    ("BMP", "RGB", {}, 0),
    *(("TIFF", "RGB", options, 0) for options in (TILES, {"compression": "jpeg"})),
    ("TIFF", "F", {}, 0),
    *(("WEBP", mode, {"method": 0}, 0) for mode in ("RGB", "RGBA")),
    ("WEBP", "RGB", {"method": 0, "lossless": True}, 0),
    *(("AVIF", mode, SLOW, 0) for mode in ("RGB", "RGBA")),
    *(("HEIF", mode, {}, 0) for mode in ("RGB", "RGBA", "RGB;16")),
]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads peaks from /proc")
def test_no_format_takes_more_than_is_estimated(tmp_path: Path) -> None:
    for at, (kind, mode, options, min_side) in enumerate(CASES):
        folder = tmp_path / f"{at:02d}"
        folder.mkdir()
        (folder / "min_side").write_text(str(min_side))
        for name, size in {"small": (80, 60), "large": (1500, 1000) if kind == "HEIF" else (2400, 2000)}.items():
            data = heif(mode, size) if kind == "HEIF" else encoded(drawn(mode, size), kind, **options)
            (folder / name).write_bytes(data)

    env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"}  # freed blocks go back to the system at once
    line = [sys.executable, "-c", PEAK, str(tmp_path)]
    output = subprocess.run(line, env=env, capture_output=True, text=True, check=True).stdout

    measured = [tuple(map(int, row.split())) for row in output.splitlines()]
    assert len(measured) == len(CASES)
    for at, estimate, peak in measured:
        assert peak < estimate + 3 * MIB and estimate < 2.5 * peak + 3 * MIB, (CASES[at], estimate, peak)


# -- damaged pictures among good ones ----------------------------------------------------------------------------


FORMATS = {"jpg": "JPEG", "png": "PNG", "gif": "GIF", "webp": "WEBP", "tif": "TIFF", "bmp": "BMP", "heic": "HEIF"}


def mutated(data: bytearray, dice: random.Random) -> bytes:
    """Bits flipped anywhere or in the head, where sizes and depths stand; a part gone, blank or repeated; or cut."""
    start, stop = sorted(dice.randrange(len(data)) for _ in range(2))
    for _ in range(dice.choice((0, 1, 64))):
        data[dice.randrange(dice.choice((64, len(data))))] ^= 1 << dice.randrange(8)
    piece = dice.choice([data[start:stop], b"", bytes(stop - start), 3 * data[start:stop]])
    return bytes(data[:start] + piece + data[stop:])[: dice.choice((len(data), stop, 4 * len(data)))]


@pytest.mark.long
def test_no_good_picture_is_lost_and_no_other_goes_unnamed(tmp_path: Path) -> None:
    pillow_heif.register_heif_opener()
    (photos := tmp_path / "photos").mkdir()
    good = {Path(shutil.copy(one, photos / f"good-{one.name}")) for one in sorted(sample.photos().glob("*.jpg"))[-20:]}
    with Image.open(min(good)) as picture:
        small = {end: encoded(picture.convert("RGB").resize((96, 72)), form) for end, form in FORMATS.items()}
    for number in range(120):
        dice = random.Random(number)
        ending = dice.choice([*small])
        (photos / f"{number:04d}.{ending}").write_bytes(mutated(bytearray(small[ending]), dice))
    done = index_gallery(tmp_path / "g", photos)

    tables = [read_items(shard).to_pylist() for shard in shard_paths(tmp_path / "g")]
    stored = {photos / path for table in tables for row in table for path in row["paths"]}
    named = {photos / failure.path for failure in done.failures}
    assert good <= stored and stored | named == set(photos.iterdir()) and not stored & named
    assert len(named) > 20 and all(failure.reason for failure in done.failures)
