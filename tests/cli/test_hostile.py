"""Hostile names and labels, and galleries that were cut, edited or half deleted: one sentence, and what mends them."""

from __future__ import annotations

import os
import re
import shutil
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


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
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
INDEXED = {"header torn", "header gone", "root without number", "format in quotes", "no such root", "another root"}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_one_sentence_with_the_way_out_which_mends_it(gallery: Path, name: str) -> None:
    before = {place: place.read_bytes() for place in gallery.glob("shards/*/*")}
    damage, way_out = DAMAGES[name]
    damage(gallery)

    message = tell("search", "stripes", "-g", gallery)

    assert re.search(way_out, message), message
    assert all("\n" not in tell(verb, "-g", gallery) for verb in ("doctor", "failures"))
    named = re.search(REPAIR, message)
    mended = tell(*(named[1].split()[1:] if named else ("index", "-g", gallery)))
    assert "\n" not in mended
    if named or name in INDEXED:
        assert tell("search", "stripes", "-g", gallery) == MENDED
        assert named or mended == MENDED
    if named:
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


@pytest.mark.parametrize("verb", ["search stripes", "doctor", "failures", "index"])
def test_a_gallery_that_is_a_file_or_not_there_is_told(tmp_path: Path, verb: str) -> None:
    (tmp_path / "file").write_text("x")

    for name in ("file", "missing", "caf\udce9"):
        refuses(*verb.split(), "-g", tmp_path / name, cwd=tmp_path)

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
    ["index.sqlite", "shards/00000/starter-????????.npy", "shards/00000/starter-*.codes.npy", "shards/*/digests.txt"],
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
