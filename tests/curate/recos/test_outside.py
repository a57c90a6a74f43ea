"""A ReCoS set in the hands of `datasets`, which shows its pictures and tells under which licence they are."""

from __future__ import annotations

import csv
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

from eyespot import sample
from eyespot.curate.recos.making import RecosSteps
from tests.worlds.outside import loaded
from tests.worlds.recos import made, recipe
from tests.worlds.rmir import photos as sample_photos


@pytest.mark.long
@pytest.mark.skipif(find_spec("datasets") is None, reason="datasets is not installed")
def test_datasets_reads_every_configuration(demonstrated: RecosSteps) -> None:
    place = demonstrated.pipe.out / "set"

    found = loaded("datasets", place)

    images = pq.read_table(place / "images.parquet").to_pylist()
    assert set(found) == {"default", "captions", "images"} and found["default"] == found["captions"]
    assert found["captions"]["whole"]["rows"] == pq.read_metadata(place / "captions.parquet").num_rows
    assert found["images"]["whole"]["rows"] == len(images)
    with Image.open(place / images[0]["path"]) as picture:
        assert found["images"]["whole"]["first"] == {"picture": list(picture.size), **images[0]}


@pytest.mark.long
def test_every_picture_is_in_the_table_byte_for_byte(demonstrated: RecosSteps) -> None:
    place = demonstrated.pipe.out / "set"
    rows = pq.read_table(place / "hub" / "images.parquet").to_pylist()
    assert [row.pop("picture")["bytes"] == (place / row["path"]).read_bytes() for row in rows] == [True] * len(rows)
    assert rows == pq.read_table(place / "images.parquet").to_pylist()


@pytest.mark.long
def test_photos_tell_under_which_licence_they_may_be_handed_on(tmp_path: Path) -> None:
    """As the gallery's columns `licence`, `author` and `source` have it; what is drawn here has none."""
    gallery = sample_photos(tmp_path)
    with (sample.photos() / "metadata.csv").open(encoding="utf-8", newline="") as file:
        known = {row["title"]: (row["licence"], row["author"], row["source"]) for row in csv.DictReader(file)}
    collect = f'''galleries = {{ own = "{gallery}" }}
[steps.subtasks.object]
count = 4
where = "true"
[steps.subtasks.numerical]
count = 2
'''
    lines = {"draw": "subtasks = { numerical = 5 }", "collect": collect, "complete": "least = 1"}

    found = made(recipe(tmp_path, gallery, **lines), tmp_path / "out")

    titles = {one["image"]: one["facts"]["title"] for one in found.records if one["source"] == "own"}
    rows = pq.read_table(tmp_path / "out" / "set" / "images.parquet").to_pylist()
    rights = {row["image"]: (row["licence"], row["author"], row["url"]) for row in rows}
    assert len(titles) >= 4 and {id: rights[id] for id in titles} == {id: known[its] for id, its in titles.items()}
    assert {rights[row["image"]] for row in rows if row["source"] == "drawn"} == {(None, None, None)}
