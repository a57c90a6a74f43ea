"""`eyespot export` and `import` from the command line: what is chosen, what is told, and how it ends."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eyespot import rooms, sample
from tests.cli.conftest import copy_of_sample_gallery
from tests.command import run_eyespot

FORMATS = [name.replace("_", "-") for name in rooms.names("gallery.exports")]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_help_with_the_filters_of_a_search(name: str) -> None:
    output = run_eyespot("export", name, "--help").stdout

    assert all(option in output for option in ("--where", "--label", "--after", "--near", "--ids", "--all-columns"))


@pytest.mark.long
def test_what_fits_the_filters_and_ids_is_written(sample_gallery: Path, tmp_path: Path) -> None:
    found = run_eyespot("search", "a fish", "-g", sample_gallery, "-k", 20, "--json")
    ids = [item["id"] for item in json.loads(found.stdout)["items"]]
    (tmp_path / "ids.txt").write_text("\n".join([*ids[:5], ""]))
    line = ["export", "coco", "out", "-g", sample_gallery, "--ids", "ids.txt", "--where", "width > 10", "--json"]
    done = run_eyespot(*line, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    dataset = json.loads((tmp_path / "out" / "annotations.json").read_text())
    assert {image["eyespot_id"] for image in dataset["images"]} == set(ids[:5])
    assert json.loads(done.stdout)["rows"] == 5


@pytest.mark.long
def test_licences_travel_with_the_names_that_they_ask_for(sample_gallery: Path, tmp_path: Path) -> None:
    done = run_eyespot("export", "webdataset", "out", "-g", sample_gallery, "--shard-rows", 100, cwd=tmp_path)

    assert done.returncode == 0 and "left out: latitude, longitude" in done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["00000.tar", "00001.tar", "00002.tar"]
    index = run_eyespot("index", "out", "-g", "again", cwd=tmp_path)
    assert index.returncode == 0, index.stderr
    (item,) = json.loads(run_eyespot("search", "a windmill", "-k", 1, "-g", "again", "--json", cwd=tmp_path).stdout)[
        "items"
    ]
    assert item["licence"] and item["author"] and item["title"]


@pytest.mark.long
def test_pictures_that_are_gone_are_named_and_the_exit_code_says_so(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for path in sorted(sample.photos().glob("*.jpg"))[:4]:
        shutil.copy(path, photos)
    assert run_eyespot("index", photos, "-g", tmp_path / "gallery").returncode == 0
    gone = sorted(photos.iterdir())[1]
    gone.unlink()
    done = run_eyespot("export", "imagefolder", "out", "-g", "gallery", "--json", cwd=tmp_path)

    assert done.returncode == 3 and f"not exported: {gone}" in done.stderr
    assert [one["path"] for one in json.loads(done.stdout)["failed"]] == [str(gone)]
    assert len(list((tmp_path / "out").rglob("*.jpg"))) == 3


@pytest.mark.long
def test_a_taken_folder_and_an_empty_choice_are_refused(sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").touch()
    taken = run_eyespot("export", "parquet", "taken", "-g", sample_gallery, cwd=tmp_path)
    empty = run_eyespot("export", "parquet", "out", "-g", sample_gallery, "--where", "width < 0", cwd=tmp_path)
    held = run_eyespot("export", "camtrap-dp", "out", "-g", sample_gallery, cwd=tmp_path)

    assert (taken.returncode, "name a new folder" in taken.stderr) == (2, True)
    assert (empty.returncode, "no picture fits the filter" in empty.stderr) == (4, True)
    assert (held.returncode, "export it with --all-columns" in held.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.long
def test_a_killed_export_leaves_no_folder_and_runs_again(tmp_path: Path) -> None:
    gallery = copy_of_sample_gallery(tmp_path / "gallery")
    line = [sys.executable, "-m", "eyespot.cli", "export", "imagefolder", "out", "-g", str(gallery)]
    child = subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.DEVNULL)
    building, deadline = tmp_path / ".out.part", time.monotonic() + 60
    while len(list(building.rglob("*.jpg"))) < 5 and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert building.exists() and not (tmp_path / "out").exists()

    done = run_eyespot("export", "imagefolder", "out", "-g", gallery, cwd=tmp_path)
    assert done.returncode == 0 and not building.exists()
    assert len(list((tmp_path / "out").rglob("*.jpg"))) == 208


@pytest.mark.long
def test_a_detectors_boxes_can_be_filtered_by(tmp_path: Path) -> None:
    gallery = copy_of_sample_gallery(tmp_path / "gallery")
    name = sorted(sample.photos().glob("*.jpg"))[0].name
    found = {"images": [{"file": name, "detections": [{"category": "1", "conf": 0.9, "bbox": [0, 0, 0.5, 0.5]}]}]}
    (tmp_path / "found.json").write_text(json.dumps(found | {"detection_categories": {"1": "animal"}}))
    done = run_eyespot("import", "megadetector", "found.json", "-g", gallery, "--json", cwd=tmp_path)
    search = run_eyespot("search", "anything", "--where", "detected = 'animal'", "--paths", "-g", gallery)
    nowhere = run_eyespot("import", "speciesnet", "found.json", "-g", gallery, "--threshold", 2, cwd=tmp_path)

    assert done.returncode == 0 and json.loads(done.stdout)["known"] == 1, done.stderr
    assert [Path(path).name for path in search.stdout.split("\n") if path] == [name]
    assert nowhere.returncode == 2
