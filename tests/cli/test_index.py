"""What `eyespot index` says when it is done, of pictures, other files and text; and `--watch`, which Ctrl-C ends."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pillow_heif
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from eyespot.cli.index import keep_up
from eyespot.curate.recos.drawing import draw_board, sample_board
from eyespot.gallery import watching
from eyespot.photos.found import Excluded, Skipped
from eyespot.photos.kinds import HEAD, SkippedFiles, is_picture, skipped_by_head
from eyespot.photos.places import Root
from tests.cli.conftest import done, run_json
from tests.command import refuses, run_eyespot, run_process
from tests.lazy_import import requires
from tests.worlds import draw, index_gallery
from tests.worlds.bar_texts import BarReader, draw_bars

ENDINGS = {"MOV.LRV": "video", "a.insv": "video", "b.insv": "video", "raw.GPR": "RAW",
           "layers.psd": "layered or vector", "icon.ico": "other picture formats", "a.xmp": "sidecars and data",
           "a.json": "sidecars and data", "read.me.txt": "documents", "all.zip": "archives", "x.mp3": "sound",
           "x.py": "programs", "odd.xyz": "with an unknown ending",
           "README": "without an ending", "scan.0001": "without an ending"}  # fmt: skip


@pytest.fixture
def mess(tmp_path: Path) -> Path:
    """Five pictures at seven paths, two of which have no picture's ending, one torn, and what else lies about."""
    folder = tmp_path / "mess"
    for seed in range(4):
        draw(folder / "deep" / f"{seed}.jpg", seed)
    shutil.copy(folder / "deep" / "0.jpg", folder / "copy of 0.jpg")
    shutil.copy(folder / "deep" / "1.jpg", folder / "no ending")
    draw(folder / "deep" / "4.png", 4).rename(folder / "picture.bin")
    (folder / "torn.jpg").write_bytes(b"\xff\xd8 no more")
    for name in ENDINGS:
        (folder / name).write_bytes(b"neither here nor there")
    (folder / ".hidden.jpg").write_bytes(b"")
    (folder / ".trash").mkdir()
    (folder / ".trash" / "old.jpg").write_bytes(b"")
    os.mkfifo(folder / "pipe")
    return folder


def kinds(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {row["kind"]: row["files"] for row in rows}


def searchable(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Seven paths of five pictures, out of these, one failure and what else shows something."""
    shows = ("video", "RAW", "layered or vector", "other picture formats")
    return {"files": 7, "of": 8 + sum(row["files"] for row in rows if row["kind"] in shows), "extras": {}}


def test_labels_may_have_the_names_of_what_is_measured(tmp_path: Path) -> None:
    folder, gallery = tmp_path / "photos", tmp_path / "gallery"
    scan, other = (Image.open(draw(folder / name, seed)) for seed, name in enumerate(("b.jpg", "a.jpg")))
    scan.save(folder / "b.tif", save_all=True, append_images=[other])
    (folder / "b.jpg").unlink()
    (folder / "metadata.csv").write_text("file_name,pages,taken_from,why,others\na.jpg,xii,me,because,7\n")
    done("index", folder, "-g", gallery)
    items = run_json("search", "--where", "true", "-g", gallery)["items"]
    found = {Path(item["path"]).name: (item["pages"], item["taken_from"]) for item in items}
    assert found == {"a.jpg": ("xii", None), "b.tif": ("2", None)}
    shown = done("search", "--where", "true", "-g", gallery).stdout.splitlines()
    assert sorted(line.split()[-1] for line in shown) == [str(folder / "a.jpg"), str(folder / "b.tif")]


def test_nothing_vanishes_without_a_word(mess: Path, tmp_path: Path) -> None:
    planned = done("index", mess, "--dry-run", cwd=tmp_path).stdout
    indexed, again = done("index", mess, cwd=tmp_path, code=3), done("index", cwd=tmp_path, code=3)
    draw(tmp_path / "more" / "a.jpg", 30)
    more = done("index", "more", cwd=tmp_path, code=3).stderr.splitlines()[0]

    line, undated, unplaced, starter, share, failed = indexed.stderr.splitlines()
    assert undated == "5 pictures without a date; eyespot search --undated lists them"
    assert unplaced.startswith("5 pictures without a position; eyespot search --where")
    skipped = "16 skipped (2 .insv + 1 .lrv video,"
    assert line.startswith(f"5 pictures from 24 files: 5 embedded now, 2 exact copies, {skipped}")
    assert "; 1 .gpr RAW, export them as JPEG, or add the extra [raw];" in line
    assert line.endswith(f"), 2 hidden left out, 1 failed; {tmp_path / '.eyespot'} holds 5 pictures")
    assert "eyespot failures" in failed
    assert "7 of " in share and " photos, videos and drawings (" in share and share.endswith("can be searched")
    assert again.stderr.splitlines()[0] == line.replace("5 embedded now, ", "")
    assert planned.startswith("8 pictures (") and skipped in planned and "2 hidden left out" in planned
    assert "eyespot models get" in starter and "eyespot models get" not in again.stderr
    assert more == f"1 picture from 1 file: 1 embedded now; {tmp_path / '.eyespot'} holds 6 pictures"


def test_json_counts_by_kind_and_names_examples(mess: Path, tmp_path: Path) -> None:
    planned = run_json("index", mess, "--dry-run", cwd=tmp_path)
    first, again = run_json("index", mess, cwd=tmp_path, code=3), run_json("index", cwd=tmp_path, code=3)

    rows = first["looked"].pop("skipped")
    assert kinds(rows) == kinds(planned["skipped"]) == Counter([*ENDINGS.values(), "pipes and devices"])
    assert (planned["pictures"], planned["files"]) == (8, 24)
    assert first["looked"].pop("searchable") == again["looked"].pop("searchable") == searchable(rows)
    assert first["looked"].pop("videos") == {"videos": 0, "files": 0, "frames": 0} == again["looked"].pop("videos")
    for report in (first, again):
        counted = [
            report["looked"].pop(name)
            for name in ("undated", "misdated", "unplaced", "unsourced", "more_pages", "respelled", "relabelled")
        ]
        assert counted == [5, 0, 5, 0, 0, [], 0]
    assert first["looked"] == {"files": 24, "pictures": 5, "copies": 2, "failed": 1, "hidden": 2, "left_out": []}
    assert rows[0] == {
        "kind": "video",
        "files": 3,
        "endings": {".insv": 2, ".lrv": 1},
        "examples": [str(mess / name) for name in ("MOV.LRV", "a.insv", "b.insv")],
        "way_out": "index them outside of tars with the extra [video]",
    }
    assert again["looked"] == first["looked"] | {"skipped": rows}


def test_tars_are_accounted_for_too_alone_and_in_a_folder(tmp_path: Path) -> None:
    photo = draw(tmp_path / "photos" / "a.jpg", 1)
    (tmp_path / "photos" / "old.tar").write_bytes(b"")
    with tarfile.open(tmp_path / "some.tar", "w") as archive:
        for name, place in {"a.jpg": photo, "a.txt": Path(__file__), "film.mp4": photo, "plain": photo}.items():
            archive.add(place, name)

    alone = run_json("index", "some.tar", cwd=tmp_path)
    (tmp_path / "some.tar").rename(tmp_path / "photos" / "00000.tar")
    inside = run_json("index", "photos", "-g", "other", cwd=tmp_path)

    assert (alone["pictures"], alone["paths"], kinds(alone["looked"]["skipped"])) == (1, 2, {"video": 1})
    assert (inside["paths"], kinds(inside["looked"]["skipped"])) == (3, {"video": 1, "archives": 1})


def test_one_picture_may_be_named_without_an_ending(tmp_path: Path) -> None:
    draw(tmp_path / "a.jpg", 1).rename(tmp_path / "scan")

    done("index", "scan", cwd=tmp_path)

    assert done("search", "stripes", "--paths", cwd=tmp_path).stdout == f"{tmp_path / 'scan'}\n"


@pytest.mark.long
@pytest.mark.parametrize("there", [True, False])
def test_a_disk_that_may_only_be_read_is_not_told_to_make_room(tmp_path: Path, there: bool) -> None:
    disk = tmp_path / "disk"
    draw(disk / "photos" / "a.jpg", 1)
    if there:
        done("index", disk / "photos", "-g", disk / "gallery")
    mounted = f'mount --bind {disk} {disk} && mount -o remount,ro,bind {disk} && exec "$@"'
    before = ["unshare", "--map-root-user", "--mount", "sh", "-c", mounted, "-"]
    if not shutil.which("unshare") or subprocess.run([*before, "true"], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")

    refused = run_process("index", disk / "photos", "-g", disk / "gallery", before=before)
    elsewhere = run_process("index", disk / "photos", "-g", tmp_path / "gallery", before=before)
    exported = run_process("export", "npy", disk / "out", "-g", tmp_path / "gallery", before=before)

    assert refused.returncode == 1
    assert "read-only file system); its disk may only be read; name another folder" in exported.stderr
    pattern = rf"eyespot: cannot write to {disk}/gallery \(.*read-?only.*\); .*choose another place with -g\n"
    assert re.fullmatch(pattern, refused.stderr)
    assert elsewhere.returncode == 0


def written(kind: str) -> bytes:
    file = io.BytesIO()
    picture = Image.new("RGB", (40, 30), "red")
    if kind == "HEIF":
        pillow_heif.from_pillow(picture).save(file)
    else:
        picture.save(file, kind)
    return file.getvalue()


NO_PICTURES = [
    b"", b"BM", b"BMW 318, 1994, red", b"\0\0\0\x20ftypisom\0\0\2\0isomiso2avc1mp41", b"RIFF\x10\0\0\0WAVEfmt ",
    b"\0\0\0\x14ftypqt  \0\0\2\0qt  ", b"%PDF-1.7", b"PK\3\4", b"8BPS\0\1", b"GIF",
    b"\0\0\0\x18ftypcrx \0\0\0\1crx isom",
]  # fmt: skip


def test_every_format_that_is_read_is_known_by_its_first_bytes_and_nothing_else() -> None:
    kinds = ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "HEIF"]

    assert [kind for kind in kinds if not is_picture(written(kind)[:HEAD])] == []
    assert [head for head in NO_PICTURES if is_picture(head)] == []


@given(st.binary(max_size=HEAD), st.text(max_size=30))
def test_any_bytes_and_names_are_sorted(head: bytes, name: str) -> None:
    one = skipped_by_head(name, head)

    assert is_picture(head) if one is None else (one.path, len(one.ending) <= 12) == (name, True)


@given(st.lists(st.tuples(st.sampled_from(["video", "hidden", "RAW"]), st.text(max_size=3)), max_size=400))
def test_every_file_is_counted_once_however_many_endings_there_are(files: list[tuple[str, str]]) -> None:
    counted = SkippedFiles()
    for kind, ending in files:
        counted.add(Excluded("a", kind) if kind == "hidden" else Skipped("a", kind, ending), "/a")

    assert counted.files + counted.hidden == len(files)
    assert counted.files == sum(row["files"] for row in counted.rows())
    assert len(counted.counts) <= 203
    assert counted.left_out_texts() == ([f"{counted.hidden} hidden left out"] if counted.hidden else [])


# -- names and ways that a file may have ------------------------------------------------------------------------------


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Two pictures whose names are not UTF-8, one of them reached by a link as well, and thumbnails of a third."""
    folder = tmp_path / "odd"
    for seed, name in enumerate([b"caf\xe9.jpg", b"\xfcber/k\xf6ln.jpg", b"@eaDir/small.jpg"], 40):
        draw(folder / os.fsdecode(name), seed)
    (folder / "again").symlink_to(folder / os.fsdecode(b"\xfcber"))
    return folder


@pytest.mark.long
def test_pictures_with_names_that_are_not_utf8_are_indexed_found_shown_and_exported(odd: Path, tmp_path: Path) -> None:
    torn = odd / os.fsdecode(b"t\xf6rn.jpg")
    torn.write_bytes(b"\xff\xd8 no more")
    indexed, listed = done("index", odd, cwd=tmp_path, code=3), done("failures", cwd=tmp_path).stdout
    torn.unlink()
    done("index", odd, "--forget", cwd=tmp_path)
    table = done("search", "stripes", "--html", "sheet.html", cwd=tmp_path)
    line = [sys.executable, "-m", "eyespot.cli", "search", "stripes", "--print0"]
    raw = subprocess.run(line, cwd=tmp_path, capture_output=True)
    items = run_json("search", "stripes", cwd=tmp_path)["items"]
    (tmp_path / ".eyespot" / "index.sqlite").unlink()
    again = run_json("index", odd, cwd=tmp_path)
    done("export", "npy", "out", cwd=tmp_path)

    account = (
        "2 pictures from 3 files: 2 embedded now, 1 linked folder not entered again, 1 thumbnail left out, 1 failed"
    )
    assert indexed.stderr.startswith(account) and r"t\xf6rn.jpg" in listed
    names = {os.fsencode(odd) + name for name in (b"/caf\xe9.jpg", b"/\xfcber/k\xf6ln.jpg")}
    assert set(raw.stdout.split(b"\0")) - {b""} == names == {os.fsencode(item["path"]) for item in items}
    assert r"caf\xe9.jpg" in table.stdout and "unreadable" not in (tmp_path / "sheet.html").read_text()
    assert (again["pictures"], again["embedded"]) == (2, 0)


@pytest.mark.long
def test_a_root_whose_name_is_not_utf8_is_indexed_and_taken_out(odd: Path, tmp_path: Path) -> None:
    root = odd / os.fsdecode(b"\xfcber")
    line = [sys.executable, "-m", "eyespot.cli", "index"]
    indexed = subprocess.run([*line, root], cwd=tmp_path, capture_output=True, text=True)
    removed = subprocess.run([*line, "--remove", root], cwd=tmp_path, capture_output=True, text=True)

    assert (indexed.returncode, "1 embedded now" in indexed.stderr) == (0, True), indexed.stderr
    assert (removed.returncode, r"\xfcber was taken out" in removed.stderr) == (0, True), removed.stderr


@pytest.fixture
def signs(tmp_path: Path) -> Path:
    """Two drawn signs and two pictures without writing."""
    folder = tmp_path / "signs"
    for seed in (1, 2):
        draw(folder / f"plain{seed}.jpg", seed)
    for name, text in {"gate": "NO PARKING 42", "shop": "FRESH FISH"}.items():
        chance = Random(name)
        draw_board(text, sample_board("text", chance), chance).save(folder / f"{name}.jpg")
    return folder


@pytest.mark.skipif(find_spec("rapidocr") is not None, reason="the extra [ocr] is installed")
def test_without_the_extra_nothing_is_indexed_and_the_line_is_said(signs: Path, tmp_path: Path) -> None:
    refuses("index", signs, "--ocr", code=1, cwd=tmp_path)

    assert not (tmp_path / ".eyespot" / "shards").exists()


def test_a_dry_run_reads_no_text(signs: Path, tmp_path: Path) -> None:
    refuses("index", signs, "--ocr", "--dry-run", cwd=tmp_path)


@pytest.mark.long
@requires("rapidocr")
def test_signs_are_read_once_and_found_by_their_words(signs: Path, tmp_path: Path) -> None:
    first = done("index", signs, "--ocr", "--workers", 1, cwd=tmp_path)
    again = run_json("index", "--ocr", cwd=tmp_path)
    found = run_json("search", "a sign", "--where", "text_in_picture ILIKE '%no parking%'", cwd=tmp_path)

    assert "text was read in 4 pictures now; 2 of the gallery have text" in first.stderr
    assert again["texts"] == {"read": 0, "with_text": 2, "away": 0, "failures": 0}
    assert [Path(hit["path"]).name for hit in found["items"]] == ["gate.jpg"]


def test_failures_lists_pictures_whose_text_could_not_be_read(tmp_path: Path) -> None:
    draw_bars(tmp_path / "signs" / "bad.png", "!!!")
    index_gallery(tmp_path / ".eyespot", tmp_path / "signs", workers=1, text_reader=BarReader())

    assert run_json("failures", cwd=tmp_path) == [
        {"path": str(tmp_path / "signs" / "bad.png"), "reason": "its text: the bars are torn"}
    ]


def test_what_could_not_be_read_is_read_again_by_wish(tmp_path: Path) -> None:
    place = tmp_path / "photos" / "heron.jpg"
    draw(place, 1)
    whole, date = place.read_bytes(), place.stat().st_mtime_ns
    place.write_bytes(bytes(len(whole)))
    os.utime(place, ns=(date, date))
    done("index", "photos", cwd=tmp_path, code=3)
    place.write_bytes(whole)
    os.utime(place, ns=(date, date))

    assert run_json("index", "photos", "--retry-failed", cwd=tmp_path)["pictures"] == 1


pytest.importorskip("watchfiles")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of one photo, in which the gallery comes to lie as well."""
    folder = tmp_path / "photos"
    draw(folder / "0.jpg", 0)
    return folder


@pytest.fixture
def process(photos: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that watches, from when it says so."""
    line = [sys.executable, "-m", "eyespot.cli", "index", str(photos), "-g", str(photos / "gallery"), "--watch"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=photos.parent) as process:
        lines_until(process, f"watching {photos}; Ctrl-C ends it")
        yield process
        process.kill()


def lines_until(process: subprocess.Popen[str], end: str) -> list[str]:
    """What the process prints until a line that holds `end`; pytest's own timeout ends a wait in vain."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line.rstrip("\n"))
        if end in line:
            return lines
    raise AssertionError(f"the process ended after {lines}")


def found_by_words(gallery: Path, cwd: Path) -> set[str]:
    paths = run_eyespot("search", "a drawing", "-g", gallery, "--paths", cwd=cwd).stdout
    return {Path(path).name for path in paths.splitlines()}


@pytest.mark.long
def test_what_comes_changes_and_goes_is_followed(photos: Path, process: subprocess.Popen[str]) -> None:
    """The gallery among the photos does not count."""
    gallery = photos / "gallery"

    (gallery / "note.txt").write_text("mine")
    (photos / "torn.jpg").write_bytes(b"\xff\xd8 no more")
    draw(photos / "new" / "1.jpg", 1)
    lines_until(process, "could not be read")
    draw(photos / "torn.jpg", 2)
    lines_until(process, "3 pictures from 3 files: 1 embedded now")
    assert found_by_words(gallery, photos) == {"0.jpg", "1.jpg", "torn.jpg"}

    (photos / "torn.jpg").unlink()
    lines_until(process, "holds")
    process.send_signal(signal.SIGINT)
    assert lines_until(process, "no longer watching") and process.wait() == 0


def test_a_folder_that_goes_away_is_waited_for(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new gallery in its place would stand in the way of the disk that comes back."""
    for name in ("CHECK_MS", "QUIET_MS"):
        monkeypatch.setattr(watching, name, 50)
    seen = watching.changes([str(photos)], photos / "gallery")
    next(seen)
    away, waits = photos.rename(photos.with_name("away")), []

    def come_back(seconds: float) -> None:
        waits.append((seconds, photos.exists()))
        away.rename(photos)

    monkeypatch.setattr(watching.time, "sleep", come_back)

    next(seen)

    assert waits == [(0.05, False)] and photos.is_dir()


@pytest.mark.long
def test_who_waits_for_a_folder_that_is_away_is_told_so(photos: Path) -> None:
    gallery = photos.parent / "gallery"
    index_gallery(gallery, photos)
    away = photos.rename(photos.with_name("away"))
    line = [sys.executable, "-m", "eyespot.cli", "index", "-g", str(gallery), "--watch"]

    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=photos.parent) as process:
        try:
            lines_until(process, f"waiting for {photos}, which is missing; Ctrl-C ends it")
            away.rename(photos)
            lines_until(process, f"watching {photos}; Ctrl-C ends it")
        finally:
            process.kill()


@pytest.mark.parametrize("words", ["list.csv --watch", "photos --watch --dry-run"])
def test_what_cannot_be_watched_is_refused(words: str, photos: Path) -> None:
    photos.with_name("list.csv").write_text("path\nphotos/0.jpg\n")

    refuses("index", *words.split(), cwd=photos.parent)

    assert not (photos.parent / ".eyespot").exists()


@pytest.mark.long
def test_a_round_that_fails_in_any_way_is_listed_and_the_watch_goes_on(
    photos: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "QUIET_MS", 50)
    errors = [MemoryError(), OSError(28, "No space left on device"), KeyboardInterrupt()]

    def later() -> None:
        draw(photos / f"{len(errors)}.jpg", len(errors))  # for the next round
        raise errors.pop(0)

    first = partial(draw, photos / "first.jpg", 9)  # something comes while the first run goes on
    keep_up(photos / "gallery", [Root(str(photos), "folder")], first, later)

    printed = capsys.readouterr().err
    assert "this round failed (MemoryError: no more is known); the next change tries it again" in printed
    assert "No space left on device" in printed and not errors
