"""Hits and named lists as files, a table, keywords, and a page that opens: `eyespot search` and `eyespot lists`."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import eyespot
from eyespot import sample
from eyespot.ledger.photo_lists import PhotoLists
from eyespot.photos.kinds import reads_raw
from eyespot.photos.videos.addresses import file_of, frame_of, reads_video
from tests.cli.conftest import done, run_json
from tests.command import refuses, run_process
from tests.worlds import index_gallery, make_gallery
from tests.worlds.clips import clip
from tests.worlds.dng import dng


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    return make_gallery(tmp_path, 2)


def test_hits_go_where_they_are_wanted(gallery: Path) -> None:
    here = gallery.parent

    line = ["--copy", "copies", "--album", "links", "--csv", "hits.csv", "--xmp", " blots ", "--paths"]
    shown = done("search", "blots", "-g", gallery, *line, "--all-columns", cwd=here)

    paths = [Path(path) for path in shown.stdout.splitlines()]
    assert {path.name for path in paths} == {"0.jpg", "1.jpg"}
    assert [(here / "copies" / path.name).read_bytes() for path in paths] == [path.read_bytes() for path in paths]
    assert [(here / "links" / path.name).resolve() for path in paths] == paths
    rows = list(csv.DictReader((here / "hits.csv").read_text().splitlines()))
    assert "latitude" in rows[0] and [row["path"] for row in rows] == [str(path) for path in paths]
    assert b"<rdf:li>blots</rdf:li>" in (here / "photos" / "0.jpg.xmp").read_bytes()
    for sentence in ("2 pictures copied to copies", "2 pictures linked in links", "2 pictures given the keyword blots"):
        assert f"eyespot: {sentence}\n" in shown.stderr
    again = done("search", "blots", "-g", gallery, *line, "--all-columns", cwd=here).stderr
    for sentence in ("0 pictures copied to copies", "0 pictures linked in links", "0 pictures given the keyword blots"):
        assert f"eyespot: {sentence}; 2 were already\n" in again


def test_a_dry_run_says_what_would_be_written_and_writes_nothing(gallery: Path) -> None:
    here, before = gallery.parent, {*gallery.parent.rglob("*.*")}
    files = ("--copy", "copies", "--album", "links", "--csv", "hits.csv", "--xmp", "blots", "--html", "hits.html")

    shown = done("search", "blots", "-g", gallery, *files, "--dry-run", cwd=here).stderr

    assert {*here.rglob("*.*")} == before and not (here / "copies").exists()
    for place in ("copied to copies, as copies/", "linked in links, as links/", f"given the keyword blots, as {here}"):
        assert f"2 pictures would be {place}" in shown
    assert "hits.csv would get" in shown and "hits.html would get" in shown
    assert "--copy" in refuses("search", "blots", "-g", gallery, "--dry-run", cwd=here)


def test_what_cannot_be_copied_is_named_and_the_exit_code_is_3(gallery: Path) -> None:
    (gallery.parent / "photos" / "0.jpg").unlink()

    shown = done("search", "blots", "-g", gallery, "--copy", "copies", "--json", cwd=gallery.parent, code=3)

    assert "1 picture copied to copies" in shown.stderr
    assert re.search(r"left out: .*0\.jpg \(no such file or directory\)", shown.stderr)


@pytest.mark.long
def test_the_page_of_hits_opens_in_the_browser(gallery: Path) -> None:
    here = gallery.parent
    browser = here / "browser.py"
    browser.write_text("import sys\nopen('opened.txt', 'w').write(sys.argv[1])\n")

    env = {"BROWSER": f"{sys.executable} {browser} %s", "TMPDIR": str(here)}
    ran = run_process("search", "blots", "-g", gallery, "--open", cwd=here, **env)

    assert ran.returncode == 0, ran.stderr
    page = Path((here / "opened.txt").read_text().removeprefix("file://"))
    assert page.read_text().count("<img") == 2
    assert page.parent.stat().st_mode & 0o077 == 0


def test_without_a_browser_the_page_is_named(gallery: Path) -> None:
    shown = done("search", "blots", "-g", gallery, "--open", cwd=gallery.parent, PATH="", BROWSER="", DISPLAY="")

    named = re.search(r"no browser was found; open (.*hits\.html)", shown.stderr)
    assert named and Path(named[1]).is_file()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--xmp ' '", 2),
        ("--xmp 'a\tb'", 2),
        ("--all-columns", 2),
        ("--csv no/hits.csv", 2),
        ("--csv x.parquet", 2),
        ("--copy photos/0.jpg", 1),
    ],
)
def test_what_makes_no_sense_is_one_sentence(words: str, code: int, gallery: Path) -> None:
    refuses("search", "blots", "-g", gallery, *shlex.split(words), code=code, cwd=gallery.parent)


@pytest.fixture
def listed(gallery: Path) -> Path:
    """A list of two photos, and of one that has left the gallery."""
    ids = [one["id"] for one in run_json("search", "blots", "-g", gallery)["items"]]
    with PhotoLists(gallery / "ledger.sqlite") as lists:
        lists.make("Two blots", "ada", [*ids, "f" * 32])
    return gallery


def test_lists_are_listed_and_shown(listed: Path) -> None:
    lines = done("lists", "list", "-g", listed).stdout.split("\t")
    (one,) = run_json("lists", "list", "--gallery", listed)
    paths = done("lists", "show", "two BLOTS", "-g", listed).stdout.splitlines()
    shown = run_json("lists", "show", one["list"], "--gallery", listed)

    assert lines[1:] == ["3", "ada", "Two blots\n"]
    assert [one["path"] for one in shown] == paths and all(Path(path).is_file() for path in paths)
    assert len(paths) == 2


def test_a_list_is_exported(listed: Path, tmp_path: Path) -> None:
    words = ("--copy", tmp_path / "copies", "--album", tmp_path / "links", "--csv", tmp_path / "blots.csv")

    done("lists", "export", "Two blots", *words, "--all-columns", "--gallery", listed)

    assert len(list((tmp_path / "copies").iterdir())) == len(list((tmp_path / "links").iterdir())) == 2
    with (tmp_path / "blots.csv").open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.DictReader(file))) == 2


@pytest.mark.parametrize(("words", "code"), [("show no-such", 4), ("export 'Two blots'", 2)])
def test_what_cannot_be_done_with_a_list_is_one_sentence(listed: Path, words: str, code: int) -> None:
    refuses("lists", *shlex.split(words), "-g", listed, code=code)


def test_a_gallery_without_lists_stays_as_it_is(gallery: Path) -> None:
    (gallery / "ledger.sqlite").unlink(missing_ok=True)

    done("lists", "list", "-g", gallery, code=4)

    assert not (gallery / "ledger.sqlite").exists()


# -- `eyespot duplicates` lists copies and deletes nothing; `search` and the server show one of each group --------


FISH = "categorization__fish1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve photos, four copies of one, and their gallery."""
    folder = tmp_path_factory.mktemp("copies")
    (folder / "photos").mkdir()
    for place in sorted(sample.photos().glob("categorization__fish*.jpg"))[:12]:
        shutil.copy(place, folder / "photos")
    photo = Image.open(folder / "photos" / f"{FISH}.jpg").convert("RGB")
    for turn in range(2, 5):
        photo.transpose(Image.Transpose(turn)).save(folder / "photos" / f"turned{turn}.jpg")
    photo.resize((photo.width // 2, photo.height // 2)).save(folder / "photos" / "small.jpg")
    index_gallery(folder / "gallery", folder / "photos")
    return folder


def test_duplicates_are_listed_and_none_is_deleted(folder: Path) -> None:
    before = sorted((folder / "photos").iterdir())
    shown = done("duplicates", "-g", folder / "gallery")
    made = run_json("duplicates", "-g", folder / "gallery", "--html", folder / "copies.html")

    (group,), totals = made["groups"], made["totals"]
    stays, *others = group["files"]
    assert group["kind"] == "copies" and stays["stays"] and stays["size"] == max(f["size"] for f in group["files"])
    assert {Path(file["path"]).stem for file in (stays, *others)} == {FISH, "turned2", "turned3", "turned4", "small"}
    assert group["freed"] == sum(Path(file["path"]).stat().st_size for file in others)
    assert totals["copies"] == {"groups": 1, "files": 5, "freed": group["freed"]} and totals["burst"]["groups"] == 0
    assert shown.stdout.startswith("5 near-duplicates, ") and f"stays  {stays['path']}" in shown.stdout
    assert (folder / "copies.html").read_text().count("data:image/jpeg") == 5
    assert sorted((folder / "photos").iterdir()) == before


def test_search_shows_one_of_a_group_with_the_number_of_others(folder: Path) -> None:
    line = ("search", "--image", folder / "photos" / "small.jpg", "-g", folder / "gallery", "-k", 5)
    grouped, ungrouped = (run_json(*line, *option)["items"] for option in ((), ("--ungrouped",)))

    assert [item["others"] for item in grouped] == [4, 0, 0, 0, 0]
    assert [item["rank"] for item in grouped] == [1, 2, 3, 4, 5] and len(ungrouped) == 5
    assert "others" not in ungrouped[0] and done(*line, "--grouped").stdout.splitlines()[0].endswith("+4")
    without = run_json(*line, "--no", grouped[0]["path"])["items"]  # the next copy is not it either
    assert {item["others"] for item in without} == {0} and grouped[0]["id"] not in {item["id"] for item in without}
    assert len(run_json(*line, "--ungrouped", "--no", grouped[0]["path"])["items"]) == 5
    collection, no = eyespot.open(folder / "gallery"), [grouped[0]["path"]]
    assert grouped[0]["id"] not in {hit.id for hit in collection.search("a fish", no=no, k=100)}
    assert {hit.facts["others"] for hit in collection.search("a fish", no=no, k=9, grouped=True)} == {0}


def test_every_picture_is_reached_counts_as_a_group_and_a_filter_counts_the_others_that_pass_it(folder: Path) -> None:
    line = ("search", "a fish", "-g", folder / "gallery", "-k", 100)
    counts = [len(run_json(*line, *option)["items"]) for option in ((), ("--ungrouped",))]
    listed = run_json("search", "--where", "width > 0", "-g", folder / "gallery", "-k", 100)["items"]
    with Image.open(folder / "photos" / f"{FISH}.jpg") as photo:
        large = run_json(*line, "--where", f"width >= {photo.width}")["items"]

    assert counts == [12, 16] and len(listed) == 12
    assert sum(item["others"] for item in listed) == 4 > sum(item["others"] for item in large)


def test_a_gallery_without_copies_says_so(folder: Path, tmp_path: Path) -> None:
    index_gallery(tmp_path / "gallery", folder / "photos" / "small.jpg")

    refuses("duplicates", "-g", tmp_path / "gallery", code=4)


# -- a folder of all that phones and cameras leave ----------------------------------------------------------------


needs_av = pytest.mark.skipif(not reads_video(), reason="needs the extra [video]")


def photos() -> list[Image.Image]:
    """Photos of different things."""
    places = sorted(sample.photos().glob("*.jpg"))
    return [Image.open(place).convert("RGB").resize((480, 360)) for place in places[:: len(places) // 8][:8]]


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
        hits = collection.search(image=tmp_path / "query.png", k=1)
        (facts,) = hits.run.facts.values()
        assert {Path(file_of(path)).name for path in facts["paths"]} >= {name}
    for words in ("harbour", "mountain", "tour", "screenshot"):
        hit = done("search", words, "--by", "words", "--paths", "-k", "1", cwd=tmp_path).stdout
        assert words in Path(hit.strip()).name.lower()


@pytest.mark.long
@needs_av
def test_hits_say_the_time_and_the_video_and_a_path_of_a_frame_is_a_query(tmp_path: Path) -> None:
    some = photos()
    clip(tmp_path / "films" / "tour.mp4", some[:2], 3, {"creation_time": "2021-05-31T18:02:11Z"})
    some[2].save(tmp_path / "films" / "still.jpg")
    videos_folder, here = tmp_path / "films", tmp_path
    done("index", videos_folder, cwd=here)
    grouped = done("search", "a photo", cwd=here).stdout.splitlines()
    items = run_json("search", "a photo", "--ungrouped", cwd=here)["items"]

    assert len(grouped) == 2 and sum(line.endswith("  +1") and "tour.mp4#t=00:00:0" in line for line in grouped) == 1
    frames = [item for item in items if frame_of(item["path"])]
    assert len(items) == 3 and sorted(item["video_time"] // 3 for item in frames) == [0, 1]
    assert {file_of(item["path"]) for item in frames} == {str(videos_folder / "tour.mp4")}
    assert {item["video_length"] for item in frames} == {6.0}
    path = frames[1]["path"]
    for query in ([path], ["--image", path], [f"2:./{os.path.relpath(path, here)}"]):
        found = done("search", *query, "--ungrouped", "--paths", "-k", "1", cwd=here)
        assert found.stdout.splitlines() == [path]
    refuses("search", f"{videos_folder}/gone.mp4#t=00:00:00.000", cwd=here)
    searched, again = without_extra("search", path, cwd=here), without_extra("index", "--json", cwd=here)
    assert searched.returncode == 1 and "needs the extra [video]" in searched.stderr, searched.stderr
    report = json.loads(again.stdout)  # frames stay, and the video is counted once
    assert (report["pictures"], report["notes"]) == (3, [])
    assert (report["looked"]["files"], report["looked"]["skipped"]) == (2, [])
    assert report["looked"]["searchable"] == {"files": 2, "of": 2, "extras": {}}


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
