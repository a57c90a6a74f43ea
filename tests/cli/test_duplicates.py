"""`eyespot duplicates` lists copies and deletes nothing; `search` and the server show one of each group."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from eyespot import sample
from tests.cli.conftest import copy_of_sample_gallery, done, run_json
from tests.command import refuses
from tests.pages import ROOT, blocks, tools
from tests.worlds import index_gallery

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


@pytest.mark.long
def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    copy_of_sample_gallery(tmp_path / ".eyespot")
    script = "set -e\n" + "\n".join(blocks(ROOT / "docs" / "duplicates.md", "sh"))
    shell = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=tools(tmp_path), capture_output=True, text=True)

    assert shell.returncode == 0, shell.stderr
    assert json.loads((tmp_path / "duplicates.json").read_text())["totals"]["copies"]["groups"] == 3
