"""A folder of all that phones and cameras leave: every file is accounted for, and found by its look or its words."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import eyespot
from eyespot import sample
from eyespot.photos.raw import reads_raw
from eyespot.photos.videos.addresses import file_of, frame_of, reads_video
from tests.cli.conftest import done, run_json
from tests.command import refuses
from tests.worlds.clips import clip
from tests.worlds.dng import dng

needs_av = pytest.mark.skipif(not reads_video(), reason="needs the extra [video]")


def photos() -> list[Image.Image]:
    """Photos of different things."""
    places = sorted(sample.photos().glob("*.jpg"))
    return [Image.open(place).convert("RGB").resize((480, 360)) for place in places[:: len(places) // 8][:8]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tour of two shots, and a photo."""
    some = photos()
    clip(tmp_path / "films" / "tour.mp4", some[:2], 3, {"creation_time": "2021-05-31T18:02:11Z"})
    some[2].save(tmp_path / "films" / "still.jpg")
    return tmp_path / "films"


# -- the whole folder ---------------------------------------------------------------------------------------


@pytest.mark.long
@needs_av
@pytest.mark.skipif(not reads_raw(), reason="needs the extra [raw]")
def test_the_account_of_a_mixed_folder_adds_up_and_everything_is_found(tmp_path: Path) -> None:
    import pillow_heif

    some, home = photos(), tmp_path / "card"
    home.mkdir()
    some[0].save(home / "breakfast.jpg")
    shutil.copy(home / "breakfast.jpg", home / "again.jpg")
    pillow_heif.from_pillow(some[1]).save(home / "harbour.heic")
    (home / "mountain.dng").write_bytes(dng(some[2]))
    some[3].save(home / "IMG_1.jpg")
    (home / "IMG_1.dng").write_bytes(dng(some[3]))
    some[4].save(home / "IMG_2.jpg")
    clip(home / "IMG_2.mov", [some[4]], 1)
    clip(home / "tour.mp4", some[5:7], 3)
    Image.new("RGB", (400, 800), "white").save(home / "Screenshot_2021.png")
    (home / "torn.jpg").write_bytes(b"\xff\xd8 no more")
    (home / "cut.mp4").write_bytes((home / "tour.mp4").read_bytes()[:3000])
    (home / "list.pdf").write_bytes(b"%PDF")
    (home / ".hidden.jpg").touch()
    shown = done("index", "card", "--json", cwd=tmp_path, code=3)
    looked = json.loads(shown.stdout)["looked"]

    there = [name for name in os.listdir(home) if not name.startswith(".")]
    paired = sum(row["files"] for row in looked["left_out"])
    skipped = sum(row["files"] for row in looked["skipped"])
    assert (paired, skipped, looked["failed"], looked["copies"]) == (2, 1, 2, 1)
    assert looked["files"] + paired == len(there)
    assert looked["pictures"] + looked["videos"]["videos"] + looked["copies"] + skipped + 2 == looked["files"]
    assert looked["searchable"] == {"files": 8, "of": 10, "extras": {}}
    assert "6 pictures and 2 frames of 1 video from 11 files: 8 embedded now, 1 exact copy, 1 skipped" in shown.stderr

    collection = eyespot.open(tmp_path / ".eyespot")
    looks = {"breakfast.jpg": 0, "harbour.heic": 1, "mountain.dng": 2, "IMG_1.jpg": 3, "IMG_2.jpg": 4}
    for name, number in {**looks, "tour.mp4": 5}.items():
        some[number].save(tmp_path / "query.png")
        run = collection.search(image=tmp_path / "query.png", k=1)
        (facts,) = run.facts.values()
        assert {Path(file_of(path)).name for path in facts["paths"]} >= {name}
    for words in ("harbour", "mountain", "tour", "screenshot"):
        hit = done("search", words, "--by", "words", "--paths", "-k", "1", cwd=tmp_path).stdout
        assert words in Path(hit.strip()).name.lower()


# -- the command line ---------------------------------------------------------------------------------------


@pytest.mark.long
@needs_av
def test_hits_say_the_time_and_the_video_and_a_path_of_a_frame_is_a_query(folder: Path) -> None:
    here = folder.parent
    done("index", folder, cwd=here)
    grouped = done("search", "a photo", cwd=here).stdout.splitlines()
    items = run_json("search", "a photo", "--ungrouped", cwd=here)["items"]

    assert len(grouped) == 2 and sum(line.endswith("  +1") and "tour.mp4#t=00:00:0" in line for line in grouped) == 1
    frames = [item for item in items if frame_of(item["path"])]
    assert len(items) == 3 and sorted(item["video_time"] // 3 for item in frames) == [0, 1]
    assert {file_of(item["path"]) for item in frames} == {str(folder / "tour.mp4")}
    assert {item["video_length"] for item in frames} == {6.0}
    path = frames[1]["path"]
    for query in ([path], ["--image", path], [f"2:./{os.path.relpath(path, here)}"]):
        found = done("search", *query, "--ungrouped", "--paths", "-k", "1", cwd=here)
        assert found.stdout.splitlines() == [path]
    refuses("search", f"{folder}/gone.mp4#t=00:00:00.000", cwd=here)
    searched, again = without_extra("search", path, cwd=here), without_extra("index", "--json", cwd=here)
    assert searched.returncode == 1 and "needs the extra [video]" in searched.stderr, searched.stderr
    report = json.loads(again.stdout)  # frames stay, and the video is counted once
    assert (report["pictures"], report["notes"]) == (3, [])
    assert (report["looked"]["files"], report["looked"]["skipped"]) == (2, [])
    assert report["looked"]["searchable"] == {"files": 2, "of": 2, "extras": {}}


@pytest.mark.long
@needs_av
def test_hits_of_videos_go_where_they_are_wanted(folder: Path) -> None:
    here, film = folder.parent, (folder / "tour.mp4").read_bytes()
    done("index", folder, cwd=here)
    line = ["--copy", "copies", "--album", "links", "--csv", "hits.csv", "--xmp", "blots", "--html", "hits.html"]
    for _ in range(2):
        shown = done("search", "a photo", "--ungrouped", *line, cwd=here)

    assert sorted(os.listdir(here / "copies")) == sorted(os.listdir(here / "links")) == ["still.jpg", "tour.mp4"]
    assert (here / "copies" / "tour.mp4").read_bytes() == film == (here / "links" / "tour.mp4").read_bytes()
    assert f"found in {folder / 'tour.mp4'} at 00:00:0" in shown.stderr
    rows = list(csv.DictReader((here / "hits.csv").read_text().splitlines()))
    assert sorted(row["video_time"] != "" for row in rows) == [False, True, True]
    assert b"<rdf:li>blots</rdf:li>" in (folder / "tour.mp4.xmp").read_bytes()
    assert "tour 00:00:0" in (here / "hits.html").read_text()


# -- without the extra --------------------------------------------------------------------------------------

WITHOUT = """
import sys
from importlib.machinery import PathFinder
class NoVideo:
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] == "av" else PathFinder.find_spec(name, path, target)
sys.meta_path = [finder for finder in sys.meta_path if finder is not PathFinder] + [NoVideo]
from eyespot.cli import main
main()
"""


def without_extra(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command line where the package `av` is not installed."""
    line = [sys.executable, "-c", WITHOUT, *map(str, words)]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True)


@pytest.mark.long
def test_without_the_extra_videos_are_counted_with_the_way_in(tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()
    photos()[0].save(tmp_path / "films" / "still.jpg")
    for name in ("a.mp4", "b.MOV"):
        (tmp_path / "films" / name).write_bytes(b"a film")
    both = without_extra("index", "films", cwd=tmp_path)
    alone = without_extra("index", "films/a.mp4", "-g", "other", cwd=tmp_path)

    assert "2 skipped (1 .mp4 + 1 .mov video, index them outside of tars with the extra [video])" in both.stderr
    assert "2 more with " in both.stderr and "[video]" in both.stderr.splitlines()[-1] and both.returncode == 0
    assert alone.returncode == 2 and "films/a.mp4 needs the extra [video]: " in alone.stderr
