"""Decoding stays within the memory it may take, however large the pictures and however many the workers."""

from __future__ import annotations

import io
import json
import os
import re
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
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from eyespot.gallery.photos.memory import VARIABLE, MemoryBudget, as_size, decode_limit
from eyespot.gallery.photos.pictures import TooLarge, open_picture, picture_in_memory, thumbnail
from eyespot.types import UsageError
from tests.command import run_eyespot
from tests.gallery.test_pictures import chunk, encoded, quarters

MIB = 1 << 20
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads peaks from /proc")


def png(width: int, height: int, colours: int, note: bytes = b"") -> bytes:
    """A black PNG of any size, made without holding it; `note` makes it another file."""
    packer = zlib.compressobj(1)
    rows = -(-MIB // (1 + width * colours))
    block = bytes((1 + width * colours) * rows)
    parts = [packer.compress(block[: (1 + width * colours) * min(rows, height - y)]) for y in range(0, height, rows)]
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[colours], 0, 0, 0)
    pixels = chunk(b"IDAT", b"".join([*parts, packer.flush()]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"tEXt", b"n\0" + note) + chunk(b"IEND", b"")


def index(photos: Path, gallery: Path, limit: str, workers: int = 8) -> tuple[int, int]:
    """The exit code of `eyespot index` and its peak of memory in MiB."""
    line = [sys.executable, "-m", "eyespot.cli", "index", photos, "-g", gallery, "--workers", str(workers)]
    child = subprocess.Popen(line, env=os.environ | {"EYESPOT_DECODE_MEMORY": limit}, stderr=subprocess.DEVNULL)
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
    folder = tmp_path_factory.mktemp("usual")
    (folder / "photos").mkdir()
    for n in range(16):
        (folder / "photos" / f"{n}.png").write_bytes(encoded(quarters(64 + n), "PNG"))
    code, peak = index(folder / "photos", folder / "gallery", "1G")
    assert code == 0
    return peak


@pytest.mark.parametrize(("height", "code"), [(149_000_000, 3), (20_000_000, 0)])
def test_a_tall_thin_picture_keeps_to_the_limit_or_is_refused(
    tmp_path: Path, usual: int, height: int, code: int
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "thin.png").write_bytes(png(1, height, 1))

    done, peak = index(tmp_path / "photos", tmp_path / "gallery", "600M")

    assert (done, peak < usual + 600) == (code, True), peak


@pytest.mark.long
def test_many_workers_with_large_pictures_keep_to_the_limit(tmp_path: Path, usual: int) -> None:
    (tmp_path / "photos").mkdir()
    for n in range(4):
        (tmp_path / "photos" / f"{n}.png").write_bytes(png(11_000, 10_000, 3, b"%d" % n))

    done, peak = index(tmp_path / "photos", tmp_path / "gallery", "1G")

    assert (done, peak < usual + 1024) == (0, True), peak


# -- the budget ---------------------------------------------------------------------------------------------


def test_a_picture_that_was_refused_is_read_with_the_value_that_the_refusal_names() -> None:
    data = encoded(Image.new("RGB", (3000, 2000)), "PNG")
    with limited("1M"), pytest.raises(TooLarge) as refused:
        open_picture(data)
    words = re.fullmatch(
        r"3000 x 2000 pixels take (\S+) of memory to decode, over the limit of 1M; allow more with"
        r" eyespot index --memory (\S+), or EYESPOT_DECODE_MEMORY=(\S+)",
        refused.value.reason,
    )
    assert words is not None and words[1] == words[2] == words[3]

    with limited(words[3]):
        assert open_picture(data).image.size == (3000, 2000)


def test_the_option_that_a_refusal_names_reads_the_picture(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "large.png").write_bytes(png(3000, 2000, 3))
    refused = run_eyespot("index", "photos", "--memory", "1M", cwd=tmp_path)
    line = re.search("eyespot (index --memory [0-9.]+[MG])", run_eyespot("failures", cwd=tmp_path).stdout)
    assert (refused.returncode, line is not None) == (3, True)

    again = run_eyespot(*str(line and line[1]).split(), cwd=tmp_path)
    wrong = run_eyespot("index", "--memory", "much", cwd=tmp_path)

    assert again.returncode == 0, again.stderr
    assert (wrong.returncode, "is a size such as 800M or 2G" in wrong.stderr) == (2, True)


def test_a_refused_picture_is_listed_and_tried_again_by_the_same_line(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "large.png").write_bytes(png(3000, 2000, 3))
    refused = run_eyespot("index", "photos", cwd=tmp_path, EYESPOT_DECODE_MEMORY="1M")
    failed = run_eyespot("failures", cwd=tmp_path)
    again = run_eyespot("index", "photos", "--json", cwd=tmp_path)

    assert (refused.returncode, "allow more with eyespot index --memory " in failed.stdout) == (3, True)
    assert (again.returncode, json.loads(again.stdout)["pictures"]) == (0, 1)


@pytest.mark.parametrize("read", [lambda data: thumbnail(data, 320), lambda data: open_picture(data, 200)])
def test_every_way_to_a_picture_waits_for_its_turn(read: Callable[[bytes], Any]) -> None:
    """A large one in memory keeps another from being decoded where there is room for one."""
    data = encoded(Image.new("RGB", (3000, 2000)), "PNG")
    with limited("80M"), ThreadPoolExecutor(1) as threads:
        with picture_in_memory(data, 200):
            waiting = threads.submit(read, data)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=1)
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
    with limited(text), pytest.raises(UsageError, match="EYESPOT_DECODE_MEMORY, or index --memory, is a size"):
        open_picture(encoded(quarters(), "PNG"))


@given(st.integers(1, 1 << 45))
def test_a_size_is_written_so_that_it_is_enough_when_it_is_read(size: int) -> None:
    with limited(as_size(size)):
        assert size <= decode_limit() <= 1.2 * size + 2 * MIB


def test_without_the_variable_the_limit_is_a_share_of_what_is_free() -> None:
    with limited(None):
        assert 512 * MIB <= decode_limit() <= 4096 * MIB


# -- estimates ----------------------------------------------------------------------------------------------


PEAK = r"""
import gc, sys
from eyespot.gallery.photos import pictures
from eyespot.gallery.photos.memory import bytes_to_decode
def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))
small, data = (open(path, "rb").read() for path in sys.argv[1:3])
min_side = int(sys.argv[3]) or None
pictures.open_picture(small)  # loads the libraries
gc.collect()
image = pictures._recognised(data)
factor = pictures._draft(image, min_side)
estimate = bytes_to_decode(image, data, pictures._recognised(data).size, factor)
del image
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = status("VmRSS")
pictures.open_picture(data, min_side)
print(estimate, status("VmHWM") - before)
"""
GRADIENT = Image.linear_gradient("L")


def drawn(mode: str, size: tuple[int, int] = (2800, 2000)) -> Image.Image:
    grey = GRADIENT.resize(size)
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


CASES: dict[str, tuple[Callable[[tuple[int, int]], bytes], int]] = {
    f"{kind} {mode} {' '.join(map(str, options.values()))} {min_side}": (
        lambda size, kind=kind, mode=mode, options=options: encoded(drawn(mode, size), kind, **options),  # type: ignore[misc]
        min_side,
    )
    for kind, mode, options, min_side in [
        ("JPEG", "RGB", {}, 0),
        ("JPEG", "RGB", {"progressive": True, "subsampling": 0}, 0),
        ("JPEG", "RGB", {"progressive": True, "subsampling": 0}, 200),
        ("JPEG", "CMYK", {"progressive": True}, 0),
        ("PNG", "L", {}, 0),
        ("PNG", "P", {}, 0),
        ("PNG", "RGB", {}, 0),
        ("PNG", "RGBA", {}, 0),
        ("PNG", "LA", {}, 0),
        ("PNG", "I;16", {}, 0),
        ("GIF", "P", {}, 0),
        ("BMP", "RGB", {}, 0),
        ("TIFF", "RGB", {"compression": "tiff_lzw", "tiffinfo": {278: 2000}}, 0),
        ("TIFF", "RGB", {"compression": "jpeg"}, 0),
        ("TIFF", "F", {}, 0),
        ("WEBP", "RGB", {"method": 0}, 0),
        ("WEBP", "RGBA", {"method": 0}, 0),
        ("WEBP", "RGB", {"method": 0, "lossless": True}, 0),
        ("AVIF", "RGB", {"speed": 10, "subsampling": "4:4:4"}, 0),
        ("AVIF", "RGBA", {"speed": 10, "subsampling": "4:4:4"}, 0),
    ]
} | {
    f"HEIF {mode}": (lambda size, mode=mode: heif(mode, size), 0)  # type: ignore[misc]
    for mode in ("RGB", "RGBA", "RGB;16")
}


@LINUX
@pytest.mark.parametrize("case", CASES)
def test_no_format_takes_more_than_is_estimated(tmp_path: Path, case: str) -> None:
    make, min_side = CASES[case]
    (tmp_path / "small").write_bytes(make((80, 60)))
    (tmp_path / "large").write_bytes(make((1500, 1000) if case.startswith("HEIF") else (2400, 2000)))

    line = [sys.executable, "-c", PEAK, str(tmp_path / "small"), str(tmp_path / "large"), str(min_side)]
    output = subprocess.run(line, capture_output=True, text=True, check=True).stdout

    estimate, peak = map(int, output.split())
    assert peak < estimate + 3 * MIB
    assert estimate < 2.5 * peak + 3 * MIB
