"""Forty hostile files among good ones: every good picture is found, every bad one is named with its reason."""

from __future__ import annotations

import io
import os
import re
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eyespot.cli.console import print_json
from tests.cli.conftest import done, run_json
from tests.command import confined, refuses, run_eyespot, run_process
from tests.worlds import draw_photos, index_gallery


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


# -- galleries that were cut, edited or half deleted --------------------------------------------------------------


Damage = Callable[[Path], object]
REPAIR = r"; repair it with: (eyespot index --repair -g \S+)$"
MENDED = ""  # nothing to say: the verb does without what is damaged


def tell(*words: object) -> str:
    """What a verb complains of."""
    ran = run_eyespot(*words)
    lines = ran.stderr.strip().splitlines()
    return lines[-1].removeprefix("eyespot: ") if lines and ran.returncode in (1, 2, 4) else MENDED


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four photos, a file that is none, and their gallery beside them."""
    folder = tmp_path_factory.mktemp("sound")
    draw_photos(folder / "photos")
    (folder / "photos" / "zero.jpg").write_bytes(b"")
    index_gallery(folder / "gallery", folder / "photos")
    return folder


@pytest.fixture
def gallery(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound / "gallery", tmp_path / "gallery")
    return tmp_path / "gallery"


def only(gallery: Path, pattern: str) -> Path:
    (found,) = gallery.glob(pattern)
    return found


def cut(place: Path) -> None:
    os.truncate(place, place.stat().st_size // 2)


def edited(place: Path, pattern: str, new: str) -> None:
    place.write_text(re.sub(pattern, new, place.read_text(), count=1, flags=re.MULTILINE))


def older(gallery: Path) -> Path:
    """The gallery as older versions left it."""
    for place in gallery.rglob("digests.txt"):
        place.unlink()
    return gallery


DAMAGES: dict[str, tuple[Damage, str]] = {
    "vectors cut": (lambda g: cut(only(g, "shards/00000/*.npy")), r"starter-\w+\.npy .*" + REPAIR),
    "vectors gone": (lambda g: only(g, "shards/00000/*.npy").unlink(), REPAIR),
    "vectors of another kind": (lambda g: only(g, "shards/00000/*.npy").write_bytes(b"x"), REPAIR),
    "facts cut": (lambda g: cut(g / "shards/00000/items.parquet"), r"items\.parquet is missing or damaged.*" + REPAIR),
    "facts gone": (lambda g: (g / "shards/00000/items.parquet").unlink(), REPAIR),
    "note torn": (lambda g: only(g, "shards/00000/*.toml").write_text("missing = ["), r"\.toml is .*" + REPAIR),
    "note without space": (
        lambda g: edited(only(older(g), "shards/00000/*.toml"), r"^dim.*", ""),
        "dim is missing.*" + REPAIR,
    ),
    "note of another": (
        lambda g: edited(only(g, "shards/00000/*.toml"), r"^dim = \d+", "dim = 9"),
        r"\.toml is missing or damaged \(its bytes are not those that were written\)" + REPAIR,
    ),
    "header torn": (lambda g: cut(g / "gallery.toml"), r"; write it again with: eyespot index -g \S+$"),
    "header gone": (lambda g: (g / "gallery.toml").unlink(), "; write it again with: eyespot index -g"),
    "header of bytes": (lambda g: (g / "gallery.toml").write_bytes(b"\xff"), "write it again with"),
    "root without number": (lambda g: edited(g / "gallery.toml", r"\bnumber = \d+,?", ""), "number is missing"),
    "no such root": (
        lambda g: edited(older(g) / "gallery.toml", r"\bnumber = \d+", "number = 7"),
        "does not name root 1; write it again with: eyespot index -g",
    ),
    "another root": (
        lambda g: edited(g / "gallery.toml", r"\bnumber = \d+", "number = 7"),
        "its bytes are not those that were written",
    ),
    "format in quotes": (lambda g: edited(g / "gallery.toml", "^format.*", 'format = "1"'), "format is '1'"),
    "space without encoder": (lambda g: edited(g / "gallery.toml", "^encoder.*", ""), "encoder is missing"),
    "dim in quotes": (lambda g: edited(g / "gallery.toml", "^dim.*", 'dim = "9"'), "dim is '9'"),
    "spaces of numbers": (lambda g: (g / "gallery.toml").write_text("format = 1\nspaces = [1]"), "is damaged"),
    "default gone": (
        lambda g: edited(older(g) / "gallery.toml", "^default.*", 'default = "x"'),
        "choose .* with -e: starter",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_one_sentence_with_the_way_out(gallery: Path, name: str) -> None:
    damage, way_out = DAMAGES[name]
    damage(gallery)

    message = tell("search", "stripes", "-g", gallery)

    assert re.search(way_out, message), message
    assert all("\n" not in tell(verb, "-g", gallery) for verb in ("doctor", "failures", "index"))


@pytest.mark.parametrize("name", [name for name, (_, way_out) in DAMAGES.items() if way_out.endswith(REPAIR)])
def test_the_command_that_a_search_names_mends_what_is_damaged(gallery: Path, name: str) -> None:
    before = {place: place.read_bytes() for place in gallery.glob("shards/*/*")}
    damage, _ = DAMAGES[name]
    damage(gallery)
    named = re.search(REPAIR, tell("search", "stripes", "-g", gallery))
    assert named

    tell(*named[1].split()[1:])

    assert tell("search", "stripes", "-g", gallery) == MENDED
    assert {place: place.read_bytes() for place in gallery.glob("shards/*/*")} == before


@pytest.mark.parametrize("codes", [False, True])
def test_a_search_names_the_shard_that_holds_nan_and_warns_of_nothing(gallery: Path, codes: bool) -> None:
    if codes:
        done("index", "--codes", "-g", gallery, code=3)  # one of the photos is none
    place = only(gallery, "shards/00000/starter-????????.npy")
    vectors = np.load(place)
    vectors[2, 7] = np.nan
    np.save(place, vectors)

    (sentence,) = done("search", "stripes", "-g", gallery, code=1).stderr.splitlines()

    assert sentence.startswith(f"eyespot: {place} is missing or damaged") and re.search(REPAIR, sentence)
    done("index", "--repair", "-g", gallery, code=3)
    done("search", "stripes", "-g", gallery)


@pytest.mark.parametrize(
    "name", ["header torn", "header gone", "root without number", "format in quotes", "no such root", "another root"]
)
def test_a_damaged_header_is_written_again_by_indexing(gallery: Path, name: str) -> None:
    damage, _ = DAMAGES[name]
    damage(gallery)

    assert tell("index", "-g", gallery) == MENDED
    assert tell("search", "stripes", "-g", gallery) == MENDED


@pytest.mark.parametrize("verb", ["search stripes", "doctor", "failures", "index"])
def test_a_gallery_that_is_a_file_or_not_there_is_told(tmp_path: Path, verb: str) -> None:
    (tmp_path / "file").write_text("x")

    for name in ("file", "missing", "caf\udce9"):
        refuses(*verb.split(), "-g", tmp_path / name)

    assert [place.name for place in tmp_path.iterdir()] == ["file"]


def test_failures_are_read_where_nothing_may_be_written(gallery: Path) -> None:
    for place in (*gallery.rglob("*"), gallery):
        place.chmod(0o500 if place.is_dir() else 0o400)

    result = run_process("failures", "-g", gallery, before=confined())
    for place in (gallery, *gallery.rglob("*")):
        place.chmod(0o700)

    assert (result.returncode, result.stdout.count("zero.jpg\tempty file")) == (0, 1), result.stderr
    assert not list(gallery.glob("*.sqlite-*"))


def test_an_index_that_is_missing_or_none_is_told(gallery: Path) -> None:
    (gallery / "index.sqlite").write_bytes(b"x" * 5000)
    damaged = tell("failures", "-g", gallery)
    (gallery / "index.sqlite").unlink()
    missing = tell("failures", "-g", gallery)

    assert f"; repair it with: eyespot index --repair -g {gallery}" in damaged
    assert "index.sqlite is missing or empty; make it again with: eyespot index" in missing


def test_facts_that_are_no_numbers_are_null_in_json(capfd: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [float("nan"), 1.5], "b": {"c": float("-inf")}, "path": "caf\udce9"})

    assert "".join(capfd.readouterr().out.split()) == r'{"a":[null,1.5],"b":{"c":null},"path":"caf\udce9"}'


def flip(place: Path) -> None:
    """Change a byte in the middle and put the date back."""
    data, found = bytearray(place.read_bytes()), place.stat()
    data[len(data) // 2] ^= 1
    place.write_bytes(data)
    os.utime(place, ns=(found.st_atime_ns, found.st_mtime_ns))


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "ledger.sqlite",
        "index.sqlite",
        "shards/00000/starter-????????.npy",
        "shards/00000/starter-*.codes.npy",
        "shards/*/digests.txt",
    ],
)
def test_doctor_names_a_flipped_byte_and_a_repair_mends_it(gallery: Path, name: str) -> None:
    done("index", "--codes", "-g", gallery, code=3)
    place = only(gallery, name)
    whole = place.read_bytes()
    flip(place)

    listed, shown = run_json("doctor", "-g", gallery, code=4), done("doctor", "-g", gallery, code=4).stdout
    run_eyespot("index", "--repair", "-g", gallery)

    (fault,), way_out = listed["damaged"], f"repair it with: eyespot index --repair -g {gallery}"
    assert (fault["file"], fault["way_out"]) == (place.name, way_out) and way_out in shown
    assert "4 rows, agrees" in done("doctor", "-g", gallery).stdout
    assert name.endswith(".sqlite") or place.read_bytes() == whole


def test_a_search_with_damaged_codes_is_as_exact_and_says_so(gallery: Path) -> None:
    done("index", "--codes", "-g", gallery, code=3)
    before = done("search", "stripes", "-g", gallery)
    flip(place := only(gallery, "shards/00000/starter-*.codes.npy"))

    after = done("search", "stripes", "-g", gallery)

    assert before.stdout == after.stdout and f"{place} is missing or damaged" in after.stderr
    assert f"repair it with: eyespot index --repair -g {gallery}" in after.stderr
