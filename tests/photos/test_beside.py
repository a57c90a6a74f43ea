"""Tars with a table beside them, and folders of such: img2dataset's shards, iNaturalist's train.tar with train.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eyespot.photos.found import Labels, Record
from eyespot.photos.places import Root
from eyespot.photos.sources import roots_of, scan
from tests.worlds import draw, index_gallery, tar
from tests.worlds.galleries import facts_of


def coco(place: Path, names: list[str]) -> None:
    images = [{"id": at, "file_name": name} for at, name in enumerate(names)]
    annotations = [{"image_id": at, "category_id": 7} for at in range(len(names))]
    payload = {"images": images, "annotations": annotations, "categories": [{"id": 7, "name": "Mungos mungo"}]}
    place.write_text(json.dumps(payload))


def met(place: Path) -> list[Record]:
    return list(scan(Root(str(place), "tar")))


def labels(records: list[Record]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        if isinstance(record, Labels):
            found.setdefault(record.path, {}).update(record.facts)
    return found


@pytest.mark.parametrize("head", ["", "./"])
def test_coco_json_beside_a_tar_labels_pictures_with_a_dot_before_their_names(tmp_path: Path, head: str) -> None:
    names = ["train/04686/a.jpg", "train/04686/b.jpg"]
    place = tar(tmp_path / "train.tar", {f"{head}{name}": b"a" for name in names})
    coco(tmp_path / "train.json", names)
    found = {path: facts["category"] for path, facts in labels(met(place)).items()}
    assert found == {f"{head}{name}": "Mungos mungo" for name in names}


def test_coco_json_beside_a_tar_labels_members_with_and_without_a_dot_as_they_are_called(tmp_path: Path) -> None:
    """As a tar of a folder is that somebody added to."""
    members = ["./train/a.jpg", "train/b.jpg", "./train/c.jpg", "train/c.jpg"]
    place = tar(tmp_path / "train.tar", dict.fromkeys(members, b"a"))
    coco(tmp_path / "train.json", ["train/a.jpg", "./train/b.jpg", "train/c.jpg"])
    assert {path: facts["category"] for path, facts in labels(met(place)).items()} == dict.fromkeys(
        members, "Mungos mungo"
    )


def shard(folder: Path, number: int) -> Path:
    """A shard as img2dataset leaves it, with its table of keys: a third picture could not be downloaded."""
    keys = [f"{number:05d}{at:04d}" for at in range(3)]
    members: dict[str, bytes] = {}
    for at, key in enumerate(keys[:2]):
        members[f"{key}.jpg"] = draw(folder.parent / "drawn" / f"{key}.jpg", 10 * number + at).read_bytes()
        members[f"{key}.json"] = json.dumps({"key": key, "caption": ("one", "two")[at]}).encode()
        members[f"{key}.txt"] = b"words"
    place = tar(folder / f"{number:05d}.tar", members)
    pq.write_table(pa.table({"key": keys}), folder / f"{number:05d}.parquet")
    (folder / f"{number:05d}_stats.json").write_text("{}")
    return place


def test_a_folder_of_img2datasets_shards_is_each_of_them(tmp_path: Path) -> None:
    for number in (1, 0):
        shard(tmp_path / "out", number)
    tar(tmp_path / "out" / "2019.tar", {"a.jpg": b"a"})  # somebody's archive, and no shard
    roots = [(Path(root.path).name, root.kind) for root in roots_of(str(tmp_path / "out"))]
    assert roots == [("out", "folder"), ("00000.tar", "tar"), ("00001.tar", "tar")]
    done = index_gallery(tmp_path / "g", tmp_path / "out")
    captions = [fact["caption"] for fact in facts_of(tmp_path / "g")]
    assert captions == ["one", "two", "one", "two"] and not done.failures
