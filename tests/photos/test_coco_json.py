"""COCO JSON as a list: facts of each image, what is said of bad ones, and files read a piece at a time."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.gallery import filters
from eyespot.gallery.facts import table_of
from eyespot.gallery.picture_index import StoredRow
from eyespot.photos.found import Labels, Record
from eyespot.photos.json_lists import LONGEST, lists_of
from eyespot.photos.labels import LABELS_LOST
from eyespot.photos.places import Root
from eyespot.photos.sources import root_of, roots_of, scan
from tests.examples import examples
from tests.photos.test_sources import labels, pictures, problems, walk
from tests.wording import check_wording, raises
from tests.worlds import draw, index_gallery, tar
from tests.worlds.galleries import facts_of, opened

HERON = {"id": 3, "name": "Ardea cocoi", "class": "Aves", "family": "Ardeidae", "genus": "Ardea", "keypoints": ["eye"]}
EGRET = {"id": 12, "name": "Egretta thula", "class": "Aves", "family": "Ardeidae", "genus": "Egretta"}
IMAGE = {"id": 17, "file_name": "photos/photo1.jpg", "width": 9, "license": 1, "date": "2021-05-02 10:11:12+00:00"}
PLACE = {"rights_holder": "Ann", "latitude": -33.5, "longitude": -70.25}
OTHERS = [
    {"id": 18, "file_name": "photos/photo2.jpg", "license": 2},
    {"id": 19, "file_name": "photos/photo4.jpg", "license": 3},
]
WORLD: dict[str, Any] = {
    "info": {"year": 2024, "notes": ["[", "{"]},
    "images": [IMAGE | PLACE | {"location_uncertainty": None}, *OTHERS],
    "annotations": [{"image_id": image, "category_id": id} for image, id in ((18, 12), (17, 3), (18, 3), (18, 3))],
    "categories": [EGRET, HERON],
    "licenses": [{"id": 1, "name": "CC BY", "url": "https://x.org/by"}, {"id": 2, "url": "https://x.org/zero"}],
}


def coco(place: Path, **sections: Any) -> Path:
    """The world above, with some of its sections in another way."""
    place.write_text(json.dumps(WORLD | sections))
    return place


def test_an_image_has_the_columns_of_its_categories_and_its_own(photos: Path, tmp_path: Path) -> None:
    """Several stand in one text; what they share stays as it is, and so does an unknown licence."""
    found = walk(coco(tmp_path / "train.json"))

    heron = {"category": "Ardea cocoi", "category_id": 3, "class": "Aves", "family": "Ardeidae", "genus": "Ardea"}
    both = {"category": "Ardea cocoi; Egretta thula", "category_id": "3; 12", "genus": "Ardea; Egretta"}
    taken = {"taken": "2021-05-02 10:11:12+00:00"}
    assert problems(found) == {}
    assert labels(found) == {
        "photos/photo1.jpg": {"image_id": 17, "license": "CC BY", **heron, **PLACE, **taken},
        "photos/photo2.jpg": {"image_id": 18, "license": "https://x.org/zero", **heron, **both},
        "photos/photo4.jpg": {"image_id": 19, "license": 3},
    }


def test_the_order_of_the_sections_says_nothing(photos: Path, tmp_path: Path) -> None:
    place, as_given = tmp_path / "train.json", walk(coco(tmp_path / "train.json"))
    for order in permutations(WORLD):
        place.write_text(json.dumps({key: WORLD[key] for key in order}))
        assert walk(place) == as_given


def test_images_alone_are_a_list_too_and_a_number_and_its_digits_are_one_id(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "test.json").write_text('{"images": [{"id": 1, "file_name": "photos/photo1.jpg"}]}')
    found = walk(tmp_path / "test.json")
    assert (labels(found), problems(found)) == ({"photos/photo1.jpg": {"image_id": 1}}, {})
    place = coco(tmp_path / "a.json", annotations=[{"image_id": "19", "category_id": "3"}])
    assert labels(walk(place))["photos/photo4.jpg"]["category"] == "Ardea cocoi"


def test_pictures_lie_where_a_csv_of_the_same_names_would_have_them(photos: Path, tmp_path: Path) -> None:
    names = ["photos/photo1.jpg", f"{photos}/photo2.jpg", "photos/../photos/photo4.jpg", "gone.jpg", "https://x.org/a"]
    images = [{"id": at, "file_name": name} for at, name in enumerate(names)]
    (tmp_path / "list.csv").write_text("\n".join(["file_name", *names]))

    as_json, as_csv = (
        walk(place) for place in (coco(tmp_path / "a.json", images=images, annotations=[]), tmp_path / "list.csv")
    )

    assert len(pictures(as_csv)) == 3
    assert (pictures(as_json), problems(as_json)) == (pictures(as_csv), problems(as_csv))


@pytest.mark.parametrize(
    "image",
    [
        {"id": 18},
        {"id": 18, "file_name": 5},
        {"id": 18, "file_name": " "},
        {"file_name": "photos/photo2.jpg"},
        {"id": 1.5, "file_name": "photos/photo2.jpg"},
        {"id": 17, "file_name": "photos/photo2.jpg"},
        {"id": "17", "file_name": "photos/photo2.jpg"},
        {"id": "\ud800", "file_name": "photos/photo2.jpg"},
        ["photos/photo2.jpg"],
    ],
)
def test_a_bad_image_is_named_by_its_place_and_costs_no_other(photos: Path, tmp_path: Path, image: Any) -> None:
    place = coco(tmp_path / "a.json", images=[WORLD["images"][0], image, WORLD["images"][2]], annotations=[])
    found = walk(place)
    assert problems(found).keys() == {"a.json:2"}
    check_wording(problems(found)["a.json:2"])
    assert pictures(found) == ["photos/photo1.jpg", "photos/photo4.jpg"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("latitude", 90.5), ("latitude", "north"), ("longitude", -181), ("longitude", [7]), ("latitude", 1e999)],
)
def test_a_place_beyond_the_earth_is_no_position(photos: Path, tmp_path: Path, name: str, value: Any) -> None:
    image = WORLD["images"][0] | {"latitude": 90, "longitude": "-180", name: value}
    facts = labels(walk(coco(tmp_path / "a.json", images=[image], annotations=[])))["photos/photo1.jpg"]
    (row,) = table_of([StoredRow("a", {}, [1], ["a.jpg"], 1, 1, facts)], {}).to_pylist()
    assert row[name] is None and ("gps_doubtful" in row) == (name in facts)


def test_annotations_of_what_is_not_there_are_told_once_with_their_number(photos: Path, tmp_path: Path) -> None:
    pairs = ((17, 3), (18, 99), (1000, 3))
    annotations = [{"image_id": image, "category_id": category} for image, category in pairs]
    found = walk(coco(tmp_path / "a.json", annotations=[*annotations, {"category_id": 3}, "no object"]))
    assert problems(found).keys() == {"a.json:2", "a.json:3"} and "(3 " in problems(found)["a.json:3"]
    assert labels(found)["photos/photo1.jpg"]["category"] == "Ardea cocoi"
    assert labels(found)["photos/photo2.jpg"]["category_id"] == "99"


@pytest.mark.parametrize(
    "content",
    [
        b'{"categories": [], "info": 1}',
        b'{"images": {"id": 1}}',
        b'{"images": [], "annotations": 3}',
        b'[{"images": []}]',
        b"",
        b'{"images": [{"id": 1',
        b'{"images": []} {}',
        b'{"images": [' + b"[" * 100_000,
        b'{"images": [{"id": "\xe9"}]}',
    ],
    ids=["no images", "a dict", "a number", "a list", "empty", "cut", "two", "deep", "latin-1"],
)
def test_a_file_that_is_no_coco_is_told_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    found = walk(tmp_path / "a.json")
    assert problems(found).keys() == {"a.json"} and pictures(found) == []
    assert problems(found)["a.json"].startswith(LABELS_LOST)
    check_wording(problems(found)["a.json"])


def test_a_gallery_knows_when_where_and_what_also_when_the_list_was_cut_short(photos: Path, tmp_path: Path) -> None:
    place = coco(tmp_path / "train.json")
    index_gallery(tmp_path / "g", place)
    view, before = opened(tmp_path / "g"), facts_of(tmp_path / "g")

    (row,) = filters.mask(view.tables, filters.label("genus", "Ardea")).nonzero()[0].tolist()

    heron = before[row]
    assert heron["path"] == str(tmp_path / "photos" / "photo1.jpg")
    assert str(heron["taken"]) == "2021-05-02 10:11:12"
    assert (heron["latitude"], heron["longitude"], heron["image_id"]) == (-33.5, -70.25, 17)
    assert (heron["width"], heron["height"]) == (120, 90)  # of the picture, whatever the list says
    place.write_text(place.read_text()[:-40])
    index_gallery(tmp_path / "g", place)
    assert opened(tmp_path / "g").live.all() and facts_of(tmp_path / "g") == before


PIECE = 1 << 20
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=3), VALUES, max_size=4)


def read(place: Path) -> dict[str, list[Any] | None]:
    return {key: None if elements is None else list(elements) for key, elements in lists_of(place)}


@settings(max_examples=examples(40), deadline=None)
@given(OBJECTS, st.data())
def test_lists_are_those_of_the_whole_wherever_a_piece_ends(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(value, ensure_ascii=False)
    place = tmp_path_factory.mktemp("json") / "a.json"
    place.write_text(" " * (PIECE - data.draw(st.integers(0, len(text)))) + text, encoding="utf-8")
    assert read(place) == {key: inner if isinstance(inner, list) else None for key, inner in value.items()}


@settings(deadline=None)
@given(OBJECTS, st.data())
def test_a_text_that_is_cut_anywhere_is_refused(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(value)
    place = tmp_path_factory.mktemp("json") / "a.json"
    place.write_text(text[: data.draw(st.integers(0, len(text) - 1))])
    with pytest.raises(ValueError, match="no JSON"):
        read(place)


NEARLY = ('{"a": [1 2]}', '{"a": [1,]}', '{"a": [,1]}', '{"a": 1,}', '{"a" 1}', "{1: 2}", '{"a": 01}', '{"a": [1}')
ENDLESS = f'{{"a": ["{"x" * 2 * LONGEST}"]}}'  # an element that must not fill the memory


@pytest.mark.parametrize("text", [*NEARLY, ENDLESS], ids=range(9))
def test_what_nearly_is_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with raises(ValueError):
        read(tmp_path / "a.json")


def test_a_name_that_ends_in_json_is_a_list_and_what_nobody_takes_is_read_over(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": [1, [2]], "b": [3]}')
    assert [key for key, _ in lists_of(tmp_path / "a.json")] == ["a", "b"]
    assert root_of(str(tmp_path / "train.JSON")) == Root(str(tmp_path / "train.JSON"), "list")


# -- tars with a table beside them, and folders of such: img2dataset's shards, train.tar with train.json ----------


def coco_beside(place: Path, names: list[str]) -> None:
    images = [{"id": at, "file_name": name} for at, name in enumerate(names)]
    annotations = [{"image_id": at, "category_id": 7} for at in range(len(names))]
    payload = {"images": images, "annotations": annotations, "categories": [{"id": 7, "name": "Mungos mungo"}]}
    place.write_text(json.dumps(payload))


def met(place: Path) -> list[Record]:
    return list(scan(Root(str(place), "tar")))


def labels_of(records: list[Record]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        if isinstance(record, Labels):
            found.setdefault(record.path, {}).update(record.facts)
    return found


@pytest.mark.parametrize("head", ["", "./"])
def test_coco_json_beside_a_tar_labels_pictures_with_a_dot_before_their_names(tmp_path: Path, head: str) -> None:
    names = ["train/04686/a.jpg", "train/04686/b.jpg"]
    place = tar(tmp_path / "train.tar", {f"{head}{name}": b"a" for name in names})
    coco_beside(tmp_path / "train.json", names)
    found = {path: facts["category"] for path, facts in labels_of(met(place)).items()}
    assert found == {f"{head}{name}": "Mungos mungo" for name in names}


def test_coco_json_beside_a_tar_labels_members_with_and_without_a_dot_as_they_are_called(tmp_path: Path) -> None:
    """As a tar of a folder is that somebody added to."""
    members = ["./train/a.jpg", "train/b.jpg", "./train/c.jpg", "train/c.jpg"]
    place = tar(tmp_path / "train.tar", dict.fromkeys(members, b"a"))
    coco_beside(tmp_path / "train.json", ["train/a.jpg", "./train/b.jpg", "train/c.jpg"])
    assert {path: facts["category"] for path, facts in labels_of(met(place)).items()} == dict.fromkeys(
        members, "Mungos mungo"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train.csv", "file_name,kind\na.jpg,bird\n"),
        ("train.tsv", "file_name\tkind\na.jpg\tbird\n"),
        ("train.jsonl", '{"file_name": "a.jpg", "kind": "bird"}\n'),
    ],
)
def test_any_table_beside_a_tar_labels_its_members(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert labels_of(met(tar(tmp_path / "train.tar", {"a.jpg": b"a"}))) == {"a.jpg": {"kind": "bird"}}


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
