"""What `eyespot index` says when it is done: pictures taken, and every file that was not, by its kind."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pillow_heif
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from eyespot.gallery.photos.found import Excluded, Skipped
from eyespot.gallery.photos.kinds import SkippedFiles, skipped_by_head
from eyespot.gallery.photos.signatures import HEAD, is_picture
from tests.command import confined, run_eyespot, run_process
from tests.worlds import draw

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


def looked(*words: object, cwd: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run_eyespot("index", *words, "--json", cwd=cwd).stdout)
    return found


def kinds(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {row["kind"]: row["files"] for row in rows}


def searchable(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Seven paths of five pictures, out of these, one failure and what else shows something."""
    shows = ("video", "RAW", "layered or vector", "other picture formats")
    return {"files": 7, "of": 8 + sum(row["files"] for row in rows if row["kind"] in shows), "extras": {}}


def expected() -> dict[str, int]:
    wanted = [*ENDINGS.values(), "pipes and devices"]
    return {kind: wanted.count(kind) for kind in wanted}


@pytest.mark.long
def test_nothing_vanishes_without_a_word(mess: Path, tmp_path: Path) -> None:
    indexed = run_eyespot("index", mess, cwd=tmp_path)
    again = run_eyespot("index", cwd=tmp_path)

    line, share, failed = indexed.stderr.splitlines()
    assert (indexed.returncode, indexed.stdout) == (3, "")
    assert line.startswith(
        "5 pictures from 24 files: 5 embedded now, 2 exact copies, 16 skipped (2 .insv + 1 .lrv video,"
    )
    assert "; 1 .gpr RAW, export them as JPEG, or add the extra [raw];" in line
    assert line.endswith(f"), 2 hidden left out, 1 failed; {tmp_path / '.eyespot'} holds 5 pictures")
    assert "eyespot failures" in failed
    assert "7 of " in share and " photos, videos and drawings (" in share and share.endswith("can be searched")
    assert again.stderr.splitlines()[0] == line.replace("5 embedded now, ", "")


@pytest.mark.long
def test_json_counts_by_kind_and_names_examples(mess: Path, tmp_path: Path) -> None:
    first, again = looked(mess, cwd=tmp_path), looked(cwd=tmp_path)

    rows = first["looked"].pop("skipped")
    assert kinds(rows) == expected()
    assert first["looked"].pop("searchable") == again["looked"].pop("searchable") == searchable(rows)
    assert first["looked"].pop("videos") == {"videos": 0, "files": 0, "frames": 0} == again["looked"].pop("videos")
    assert first["looked"] == {"files": 24, "pictures": 5, "copies": 2, "failed": 1, "hidden": 2, "left_out": []}
    assert rows[0] == {
        "kind": "video",
        "files": 3,
        "endings": {".insv": 2, ".lrv": 1},
        "examples": [str(mess / name) for name in ("MOV.LRV", "a.insv", "b.insv")],
        "way_out": "index them outside of tars with the extra [video]",
    }
    assert again["looked"] == first["looked"] | {"skipped": rows}


def test_a_dry_run_says_the_same_of_what_is_skipped(mess: Path, tmp_path: Path) -> None:
    line = run_eyespot("index", mess, "--dry-run", cwd=tmp_path).stdout
    found = looked(mess, "--dry-run", cwd=tmp_path)

    assert (
        line.startswith("8 pictures (")
        and "16 skipped (2 .insv + 1 .lrv video," in line
        and "2 hidden left out" in line
    )
    assert (found["pictures"], found["files"], kinds(found["skipped"])) == (8, 24, expected())


@pytest.mark.long
def test_only_what_was_looked_through_is_accounted_for(mess: Path, tmp_path: Path) -> None:
    draw(tmp_path / "more" / "a.jpg", 30)
    run_eyespot("index", mess, cwd=tmp_path)

    more = run_eyespot("index", "more", cwd=tmp_path)

    line = f"1 picture from 1 file: 1 embedded now; {tmp_path / '.eyespot'} holds 6 pictures"
    assert more.stderr.splitlines()[0] == line


@pytest.mark.long
def test_a_tar_is_accounted_for_too(tmp_path: Path) -> None:
    photo = draw(tmp_path / "a.jpg", 1)
    with tarfile.open(tmp_path / "some.tar", "w") as archive:
        for name, place in {"a.jpg": photo, "a.txt": Path(__file__), "film.mp4": photo, "plain": photo}.items():
            archive.add(place, name)

    found = looked("some.tar", cwd=tmp_path)

    assert (found["pictures"], found["paths"], kinds(found["looked"]["skipped"])) == (1, 2, {"video": 1})


@pytest.mark.long
def test_the_shards_of_a_folder_are_not_skipped_but_indexed(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "00000.tar", "w") as archive:
        archive.add(draw(tmp_path / "photos" / "a.jpg", 1), "a.jpg")
    (tmp_path / "photos" / "old.tar").write_bytes(b"")
    (tmp_path / "00000.tar").rename(tmp_path / "photos" / "00000.tar")

    found = looked("photos", cwd=tmp_path)

    assert (found["paths"], kinds(found["looked"]["skipped"])) == (2, {"archives": 1})


@pytest.mark.long
def test_one_picture_may_be_named_without_an_ending(tmp_path: Path) -> None:
    draw(tmp_path / "a.jpg", 1).rename(tmp_path / "scan")

    indexed = run_eyespot("index", "scan", cwd=tmp_path)
    found = run_eyespot("search", "stripes", "--paths", cwd=tmp_path)

    assert (indexed.returncode, found.stdout) == (0, f"{tmp_path / 'scan'}\n")


@pytest.mark.long
def test_a_file_without_an_ending_that_cannot_be_opened_is_named(mess: Path, tmp_path: Path) -> None:
    (mess / "README").chmod(0)

    indexed = run_process("index", mess, cwd=tmp_path, before=confined())

    assert indexed.returncode == 3, indexed.stderr
    failed = json.loads(run_eyespot("failures", "--json", cwd=tmp_path).stdout)
    assert {"path": str(mess / "README"), "reason": "permission denied"} in failed


@pytest.mark.long
@pytest.mark.parametrize("there", [True, False])
def test_a_disk_that_may_only_be_read_is_not_told_to_make_room(tmp_path: Path, there: bool) -> None:
    disk = tmp_path / "disk"
    draw(disk / "photos" / "a.jpg", 1)
    if there:
        run_eyespot("index", disk / "photos", "-g", disk / "gallery")
    mounted = f'mount --bind {disk} {disk} && mount -o remount,ro,bind {disk} && exec "$@"'
    before = ["unshare", "--map-root-user", "--mount", "sh", "-c", mounted, "-"]
    if not shutil.which("unshare") or subprocess.run([*before, "true"], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")

    refused = run_process("index", disk / "photos", "-g", disk / "gallery", before=before)
    elsewhere = run_process("index", disk / "photos", "-g", tmp_path / "gallery", before=before)
    exported = run_process("export", "npy", disk / "out", "-g", tmp_path / "gallery", before=before)

    assert refused.returncode == 1
    assert "read-only file system); name another folder" in exported.stderr
    pattern = rf"eyespot: {disk}/gallery may not be written \(.*read-?only.*\); choose another place with -g\n"
    assert re.fullmatch(pattern, refused.stderr)
    assert elsewhere.returncode == 0


# -- first bytes --------------------------------------------------------------------------------------------


def written(kind: str) -> bytes:
    file = io.BytesIO()
    picture = Image.new("RGB", (40, 30), "red")
    if kind == "HEIF":
        pillow_heif.from_pillow(picture).save(file)
    else:
        picture.save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "HEIF"])
def test_every_format_that_is_read_is_known_by_its_first_bytes(kind: str) -> None:
    assert is_picture(written(kind)[:HEAD])


@pytest.mark.parametrize(
    "head",
    [b"", b"BM", b"BMW 318, 1994, red", b"\0\0\0\x20ftypisom\0\0\2\0isomiso2avc1mp41",
     b"\0\0\0\x14ftypqt  \0\0\2\0qt  ",
     b"RIFF\x10\0\0\0WAVEfmt ", b"%PDF-1.7", b"PK\3\4", b"8BPS\0\1", b"GIF", b"\0\0\0\x18ftypcrx \0\0\0\1crx isom"],
)  # fmt: skip
def test_other_first_bytes_are_no_picture(head: bytes) -> None:
    assert not is_picture(head)


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
def test_pictures_with_names_that_are_not_utf8_are_indexed_found_and_shown(odd: Path, tmp_path: Path) -> None:
    indexed = run_eyespot("index", odd, cwd=tmp_path)
    again = run_eyespot("index", odd, cwd=tmp_path)
    table = run_eyespot("search", "stripes", "--html", "sheet.html", cwd=tmp_path)
    line = [sys.executable, "-m", "eyespot.cli", "search", "stripes", "--print0"]
    raw = subprocess.run(line, cwd=tmp_path, capture_output=True)
    items = json.loads(run_eyespot("search", "stripes", "--json", cwd=tmp_path).stdout)["items"]

    line_told = indexed.stderr.splitlines()[0]
    account = "2 pictures from 2 files: 2 embedded now, 1 linked folder not entered again, 1 thumbnail left out; "
    assert (indexed.returncode, again.returncode, line_told.startswith(account)) == (0, 0, True), line_told
    names = {os.fsencode(odd) + name for name in (b"/caf\xe9.jpg", b"/\xfcber/k\xf6ln.jpg")}
    assert set(raw.stdout.split(b"\0")) - {b""} == names == {os.fsencode(item["path"]) for item in items}
    assert r"caf\xe9.jpg" in table.stdout and "unreadable" not in (tmp_path / "sheet.html").read_text()


@pytest.mark.long
def test_what_is_wrong_with_a_file_whose_name_is_not_utf8_is_listed_and_goes_away(odd: Path, tmp_path: Path) -> None:
    torn = odd / os.fsdecode(b"t\xf6rn.jpg")
    torn.write_bytes(b"\xff\xd8 no more")
    run_eyespot("index", odd, cwd=tmp_path)
    listed = run_eyespot("failures", cwd=tmp_path).stdout
    torn.unlink()

    assert r"t\xf6rn.jpg" in listed
    assert run_eyespot("index", odd, "--forget", cwd=tmp_path).returncode == 0


@pytest.mark.long
def test_a_root_whose_name_is_not_utf8_is_indexed_and_taken_out(odd: Path, tmp_path: Path) -> None:
    root = odd / os.fsdecode(b"\xfcber")
    line = [sys.executable, "-m", "eyespot.cli", "index"]
    indexed = subprocess.run([*line, root], cwd=tmp_path, capture_output=True, text=True)
    removed = subprocess.run([*line, "--remove", root], cwd=tmp_path, capture_output=True, text=True)

    assert (indexed.returncode, "1 embedded now" in indexed.stderr) == (0, True), indexed.stderr
    assert (removed.returncode, r"\xfcber was taken out" in removed.stderr) == (0, True), removed.stderr


@pytest.mark.long
def test_a_gallery_with_such_names_is_exported_and_its_facts_survive_a_lost_index(odd: Path, tmp_path: Path) -> None:
    run_eyespot("index", odd, cwd=tmp_path)
    (tmp_path / ".eyespot" / "index.sqlite").unlink()

    again = json.loads(run_eyespot("index", odd, "--json", cwd=tmp_path).stdout)
    exported = run_eyespot("export", "npy", "out", cwd=tmp_path)

    assert (again["pictures"], again["embedded"]) == (2, 0)
    assert exported.returncode == 0, exported.stderr
