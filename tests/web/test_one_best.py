"""One file stands for a group of copies, whoever asks: `duplicates`, each way out of a search, the page, downloads."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from PIL import ExifTags, Image

import eyespot
from eyespot import sample
from eyespot.web import ServerSettings
from tests.command import run_eyespot
from tests.web.conftest import at_this_machine
from tests.worlds import index_gallery

ORIGINAL = {"one": "z original.jpg", "two": "two.png", "three": "titled.jpg"}  # the file that stays of each group


def save(photo: Image.Image, place: Path, **tags: Any) -> None:
    exif = Image.Exif()
    if "when" in tags:
        exif[ExifTags.Base.Model] = "Trap 1"
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = tags["when"].strftime("%Y:%m:%d %H:%M:%S")
    if "title" in tags:
        exif[ExifTags.Base.ImageDescription] = tags["title"]
    photo.save(place, exif=exif)


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three photos, each with larger, small or second copies that a search may put first, and three others."""
    folder = tmp_path_factory.mktemp("best") / "photos"
    folder.mkdir()
    places = sorted(sample.photos().glob("explore_world*.jpg"))[:6]
    one, two, three, *others = [Image.open(place).convert("RGB") for place in places]
    save(one.resize((one.width // 2, one.height // 2)), folder / "z original.jpg", when=datetime(2001, 5, 6, 7, 8, 9))
    save(one, folder / "a larger.png")
    save(one.resize((160, 160 * one.height // one.width)), folder / "c thumbnail.jpg")
    save(two, folder / "two.png")
    save(two.resize((two.width // 2, two.height // 2)), folder / "a two.jpg")
    os.symlink(folder / "two.png", folder / "a link.png")
    save(three.resize((three.width // 2, three.height // 2)), folder / "titled.jpg", title="A day at the river")
    save(three, folder / "three.jpg")
    for at, photo in enumerate(others):
        save(photo, folder / f"other {at}.jpg")
    index_gallery(folder.parent / "gallery", folder)
    return folder.parent / "gallery"


def of_groups(paths: list[str]) -> set[str]:
    return {name for path in paths if not (name := Path(path).name).startswith("other")}


def test_every_way_out_takes_the_file_that_duplicates_would_keep(gallery: Path) -> None:
    here, wanted = gallery.parent, set(ORIGINAL.values())
    groups = json.loads(run_eyespot("duplicates", "-g", gallery, "--json").stdout)["groups"]
    near = [group for group in groups if group["kind"] == "copies"]
    assert {Path(file["path"]).name for group in near for file in group["files"] if file["stays"]} == wanted

    out = ("--copy", "copies", "--album", "links", "--csv", "hits.csv", "--xmp", "seen", "--all-columns")
    for query in (["a mountain"], ["a grey picture"], ["a day at the river"], ["--where", "width > 0"]):
        answer = run_eyespot("search", *query, "-g", gallery, "-k", 9, *out, "--json", cwd=here)
        assert answer.returncode == 0, answer.stderr
        assert of_groups([item["path"] for item in json.loads(answer.stdout)["items"]]) == wanted, query
    assert of_groups([*map(str, (here / "copies").iterdir())]) == wanted
    assert of_groups([os.readlink(link) for link in (here / "links").iterdir()]) == wanted
    rows = csv.DictReader((here / "hits.csv").read_text("utf-8-sig").splitlines())
    assert of_groups([row["path"] for row in rows]) == wanted
    assert of_groups([str(place).removesuffix(".xmp") for place in (here / "photos").glob("*.xmp")]) == wanted
    assert of_groups([str(hit.path) for hit in eyespot.open(gallery).search("a mountain", k=9, grouped=True)]) == wanted


@pytest.mark.parametrize("by", ["look", "words", "both"])
def test_the_page_and_its_downloads_take_it_too(gallery: Path, by: str, tmp_path: Path) -> None:
    query, wanted = "original two titled other", set(ORIGINAL.values())
    with at_this_machine(ServerSettings(gallery, hosts=None, cache=tmp_path / "cache")) as client:
        found = client.get("/v1/search", params={"q": query, "by": by, "limit": 50}).json()
        page = client.get("/", params={"q": query, "by": by}, headers={"Accept": "text/html"}).text
        names = {item["id"]: Path(item["path"]).name for item in client.get("/v1/items?limit=100").json()["items"]}
        tiles = [names[id] for id in re.findall(r'<li class="tile[^"]*" data-id="(\w+)"', page)]
        taken = client.get(f"/v1/runs/{found['run']}", params={"format": "originals", "depth": 50})
        table = client.get(f"/v1/runs/{found['run']}", params={"format": "csv", "depth": 50, "all_columns": "true"})
    tiled = of_groups(tiles)
    assert of_groups([item["path"] for item in found["items"]]) == tiled
    assert tiled == wanted if by != "words" else {"z original.jpg"} <= tiled <= wanted
    with zipfile.ZipFile(io.BytesIO(taken.content)) as archive:
        inside = [archive.read(name) for name in archive.namelist() if name.startswith("photos/")]
    name_of = {place.read_bytes(): place.name for place in sorted((gallery.parent / "photos").iterdir())}
    assert of_groups([name_of[data] for data in inside]) == tiled
    rows = csv.DictReader(io.StringIO(table.content.decode("utf-8-sig")))
    assert of_groups([row["path"] for row in rows]) == tiled
