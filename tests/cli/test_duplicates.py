"""`eyespot duplicates` lists copies and deletes nothing; `search` and the server show one of each group."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from eyespot import sample
from eyespot.web._settings import ServerSettings
from tests.cli.conftest import copy_of_sample_gallery
from tests.command import run_eyespot
from tests.pages import blocks, tools
from tests.web.conftest import at_this_machine

ROOT = Path(__file__).resolve().parents[2]
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
    made = run_eyespot("index", folder / "photos", "-g", folder / "gallery")
    assert made.returncode == 0, made.stderr
    return folder


def test_duplicates_are_listed_and_none_is_deleted(folder: Path) -> None:
    before = sorted((folder / "photos").iterdir())
    shown = run_eyespot("duplicates", "-g", folder / "gallery")
    made = run_eyespot("duplicates", "-g", folder / "gallery", "--json", "--html", folder / "copies.html")

    (group,) = json.loads(made.stdout)["groups"]
    stays, *others = group["files"]
    assert group["kind"] == "copies" and stays["stays"] and stays["size"] == max(f["size"] for f in group["files"])
    assert {Path(file["path"]).stem for file in (stays, *others)} == {FISH, "turned2", "turned3", "turned4", "small"}
    assert group["freed"] == sum(Path(file["path"]).stat().st_size for file in others)
    totals = json.loads(made.stdout)["totals"]
    assert totals["copies"] == {"groups": 1, "files": 5, "freed": group["freed"]} and totals["burst"]["groups"] == 0
    assert shown.stdout.startswith("5 near-duplicates, ") and f"stays  {stays['path']}" in shown.stdout
    assert (folder / "copies.html").read_text().count("data:image/jpeg") == 5
    assert sorted((folder / "photos").iterdir()) == before


@pytest.mark.long
def test_a_gallery_without_copies_says_so(folder: Path, tmp_path: Path) -> None:
    run_eyespot("index", folder / "photos" / "small.jpg", "-g", tmp_path / "gallery")
    shown = run_eyespot("duplicates", "-g", tmp_path / "gallery")

    assert shown.returncode == 4 and "no copies and no bursts were found" in shown.stderr


@pytest.mark.long
def test_search_shows_one_of_a_group_with_the_number_of_others(folder: Path) -> None:
    line = ("search", "--image", folder / "photos" / "small.jpg", "-g", folder / "gallery", "-k", 5)
    grouped, ungrouped = (
        json.loads(run_eyespot(*line, "--json", *option).stdout)["items"] for option in ((), ("--ungrouped",))
    )
    result = run_eyespot(*line, "--grouped")

    assert [item["others"] for item in grouped] == [4, 0, 0, 0, 0]
    assert [item["rank"] for item in grouped] == [1, 2, 3, 4, 5] and len(ungrouped) == 5
    assert "others" not in ungrouped[0] and result.stdout.splitlines()[0].endswith("+4")


@pytest.mark.long
def test_every_picture_is_reached_and_counts_as_a_group(folder: Path) -> None:
    line = ("search", "a fish", "-g", folder / "gallery", "--json", "-k", 100)
    counts = [len(json.loads(run_eyespot(*line, *option).stdout)["items"]) for option in ((), ("--ungrouped",))]
    by_date = ("search", "--where", "width > 0", "-g", folder / "gallery", "--json", "-k", 100)
    listed = json.loads(run_eyespot(*by_date).stdout)["items"]

    assert counts == [12, 16] and len(listed) == 12 and sum(item["others"] for item in listed) == 4


def test_a_filter_counts_only_the_others_that_pass_it(folder: Path) -> None:
    with Image.open(folder / "photos" / f"{FISH}.jpg") as photo:
        width = photo.width
    line = ("search", "a fish", "-g", folder / "gallery", "--where", f"width >= {width}", "--json", "-k", 100)
    items = json.loads(run_eyespot(*line).stdout)["items"]

    assert sum(item["others"] for item in items) < 4


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with at_this_machine(ServerSettings(gallery=folder / "gallery")) as client:
        yield client


def test_the_server_shows_one_of_a_group_too(client: TestClient) -> None:
    found = client.get("/v1/search", params={"q": "a fish"}).json()
    every = client.get("/v1/search", params={"q": "a fish", "ungrouped": "true"}).json()
    page = client.get("/", params={"q": "a fish"}).text

    assert (found["total"], len(found["items"])) == (12, 12) and (every["total"], len(every["items"])) == (16, 16)
    assert sum(item["others"] for item in found["items"]) == 4 and ">+4<" in page
    assert "ungrouped=true" in every["link"].lower() and "ungrouped" not in found["link"]


@pytest.mark.long
def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    copy_of_sample_gallery(tmp_path / ".eyespot")
    script = "set -e\n" + "\n".join(blocks(ROOT / "docs" / "duplicates.md", "sh"))
    shell = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=tools(tmp_path), capture_output=True, text=True)

    assert shell.returncode == 0, shell.stderr
    assert json.loads((tmp_path / "duplicates.json").read_text())["totals"]["copies"]["groups"] == 3
