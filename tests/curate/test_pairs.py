"""Training pairs of captions and of labels, from small files: what is drawn, joined, left out, resumed."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.curate.pair_set import CAPTIONS, PICTURES, TO_CAPTION, PairSource, PairsResult, make
from eyespot.curate.pairs.labelled import (
    ALL_COPIES,
    ALONE,
    BEYOND,
    FULL,
    READ_ALONE,
    SMALL,
    TWICE,
    WITHOUT_PAIR,
    LabelledSet,
    make as make_labelled,
    partners_of,
)
from eyespot.curate.pairs.published import BioTrove, Coco, Rmir, keys_of
from eyespot.settings.build import LabelledSettings
from eyespot.types import NothingFound, UsageError
from tests.examples import examples
from tests.wording import check_wording, raises
from tests.worlds import draw
from tests.worlds.pairs import metadata, rmir


def made(source: PairSource, out: Path) -> PairsResult:
    return make(source, out, lambda _what, _done, _total: None)


def rows(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


COCO = {
    "info": {"year": 2017},
    "annotations": [
        {"image_id": 9, "id": 1, "caption": "A heron \n stands."},
        {"image_id": 139, "id": 2, "caption": "A room with a television."},
        {"image_id": 9, "id": 3, "caption": "A grey bird in a pool."},
        {"image_id": 404, "id": 4, "caption": "Of no image."},
    ],
    "images": [
        {"id": 139, "file_name": "000000000139.jpg", "coco_url": "http://images.cocodataset.org/…"},
        {"id": 9, "file_name": "000000000009.jpg"},
        {"id": 25, "file_name": "000000000025.jpg"},
    ],
}


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    file = tmp_path / "captions_train2017.json"
    file.write_text(json.dumps(COCO))
    return file


def test_each_image_of_coco_gets_its_captions_and_the_rest_is_told(coco: Path, tmp_path: Path) -> None:
    """Also which images of a test set are left out."""
    done = made(Coco([coco], tmp_path / "train2017", tmp_path / "out"), tmp_path / "out")
    without = made(Coco([coco], tmp_path, tmp_path / "less", frozenset({"9"})), tmp_path / "less")

    part = tmp_path / "out" / "captions_train2017"
    assert [(row["file_name"], row["caption"]) for row in rows(part / CAPTIONS)] == [
        ("000000000139.jpg", "A room with a television."),
        ("000000000009.jpg", "A heron stands."),
        ("000000000009.jpg", "A grey bird in a pool."),
    ]
    assert [row["image_id"] for row in rows(part / PICTURES)] == ["139", "9"]
    assert done.left_out == {"has no caption": 1, "is not listed among the images": 1}
    assert done.examples["has no caption"] == "captions_train2017.json: image 25"
    assert (without.rows[PICTURES], without.rows[CAPTIONS], without.left_out["is left out by --without"]) == (1, 1, 1)


def test_a_question_pairs_with_each_picture_that_answers_it(tmp_path: Path) -> None:
    """Only of the split that is named: what tests must not be learned from."""
    done = made(Rmir(rmir(tmp_path / "set")), tmp_path / "out")

    assert [tuple(row.values()) for row in rows(tmp_path / "out" / "qrels" / CAPTIONS)] == [
        ("x", "why q1?", "a"),
        ("y", "why q1?", "a"),
        ("x", "why q2?", "b"),
    ]
    assert done.examples == {"has no picture that answers it": "qrels.jsonl: query q4"}


def drawn(source: BioTrove, table: str = PICTURES) -> list[str]:
    made(source, source.out)
    return [row["photo_id"] for file in source.files for row in rows(source.out / file.stem / table)]


def test_as_many_photos_are_drawn_as_asked_for_each_once(tmp_path: Path) -> None:
    files = [metadata(tmp_path / f"{at}.parquet", [*range(at * 50, at * 50 + 60), None]) for at in range(2)]

    source = BioTrove(files, tmp_path / "images", tmp_path / "out", 30, 10)
    ids = drawn(source)

    assert len(ids) == len(set(ids)) == 30 and {int(id) for id in ids} < set(range(110))
    listed = [row["photo_id"] for file in files for row in rows(tmp_path / "out" / file.stem / TO_CAPTION)]
    captioned = [row["file_name"] for file in files for row in rows(tmp_path / "out" / file.stem / CAPTIONS)]
    assert len(listed) == 10 and len(captioned) == 20
    assert {f"{id}.jpg" for id in listed} | set(captioned) == {f"{id}.jpg" for id in ids}


def test_the_rows_say_what_the_metadata_say(tmp_path: Path) -> None:
    file = metadata(tmp_path / "chunk_0.parquet", [22295])

    made(BioTrove([file], tmp_path / "images", tmp_path / "out", 1, 0), tmp_path / "out")

    (picture,) = rows(tmp_path / "out" / "chunk_0" / PICTURES)
    (caption,) = rows(tmp_path / "out" / "chunk_0" / CAPTIONS)
    assert picture["file_name"] == "../../images/22295.jpg" and picture["common_name"] == "Grey Heron"
    assert picture["photo_url"].endswith("/photos/22295/medium.jpg")
    assert caption["file_name"] == "22295.jpg"
    assert "Ardea cinerea" in caption["caption"] or "Grey Heron" in caption["caption"]


@settings(max_examples=examples(15), deadline=None)
@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=40), st.integers(1, 20), st.randoms())
def test_order_does_not_matter(tmp_path_factory: pytest.TempPathFactory, ids: list[int], count: int, lot: Any) -> None:
    folder = tmp_path_factory.mktemp("draw")
    shuffled = lot.sample(ids, len(ids))
    whole = [metadata(folder / "whole.parquet", ids)]
    halves = [metadata(folder / f"{at}.parquet", shuffled[at::2]) for at in range(2)]

    one, other, small = (
        drawn(BioTrove(files, folder, folder / f"{count}-{len(files)}", count, 0))
        for files, count in ((whole, count), (halves, count), (whole, max(1, count // 2)))
    )

    assert sorted(one) == sorted(other) and len(one) == min(count, len(set(ids))) and set(small) <= set(one)


def test_another_seed_draws_others_and_none_of_a_test_set(tmp_path: Path) -> None:
    files = [metadata(tmp_path / "all.parquet", range(200))]
    without = frozenset(str(id) for id in range(10))

    one, other, rest = (
        set(drawn(BioTrove(files, tmp_path, tmp_path / name, count, 0, seed, without)))
        for name, count, seed in (("one", 20, 0), ("other", 20, 1), ("rest", 200, 0))
    )

    assert one != other and sorted(map(int, rest)) == list(range(10, 200))


def test_a_draw_that_was_cut_goes_on_to_the_same_photos(tmp_path: Path) -> None:
    files = [metadata(tmp_path / f"{at}.parquet", range(40)) for at in range(3)]  # the same photos, three times

    whole = drawn(BioTrove(files, tmp_path, tmp_path / "whole", 30, 5))
    made(BioTrove(files, tmp_path, tmp_path / "cut", 30, 5), tmp_path / "cut")
    for place in (tmp_path / "cut" / "1").iterdir():
        place.unlink()
    (tmp_path / "cut" / "1").rmdir()

    assert drawn(BioTrove(files, tmp_path, tmp_path / "cut", 30, 5)) == whole


@given(st.lists(st.integers(0, 2**63 - 1), unique=True, max_size=50), st.integers(0, 1000))
def test_no_two_photos_have_one_key(numbers: list[int], seed: int) -> None:
    assert len(np.unique(keys_of(np.array(numbers, np.int64), seed))) == len(numbers)


def test_keys_are_spread_evenly() -> None:
    keys = keys_of(np.arange(100_000), 0)
    counts = np.bincount((keys >> np.uint64(60)).astype(int), minlength=16)
    assert np.abs(counts / 6250 - 1).max() < 0.06  # five standard deviations of a fair lot


UNMADE: dict[str, Callable[[Path], PairSource]] = {
    "no id": lambda folder: BioTrove([parquet(folder / "m.parquet", url=["x"])], folder, folder / "out"),
    "ids of words": lambda folder: BioTrove(
        [parquet(folder / "m.parquet", photo_id=["heron"])], folder, folder / "out"
    ),
    "no JSON": lambda folder: Coco([written(folder / "c.json", '{"images": [')], folder, folder / "out"),
    "no file": lambda folder: Coco([folder / "gone.json"], folder, folder / "out"),
    "twice": lambda folder: Coco([written(folder / "c.json", "{}")] * 2, folder, folder / "out"),
    "no such split": lambda folder: Rmir(rmir(folder / "set"), "val"),
    "no RMIR set": Rmir,
}


def parquet(path: Path, **columns: list[str]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", UNMADE)
def test_what_cannot_be_made_is_told(name: str, tmp_path: Path) -> None:
    with pytest.raises((UsageError, NothingFound)) as refused:
        made(UNMADE[name](tmp_path), tmp_path / "out")
    check_wording(str(refused.value))


def test_a_folder_of_other_pairs_or_of_something_else_is_refused(tmp_path: Path) -> None:
    files = [metadata(tmp_path / "all.parquet", range(20))]
    made(BioTrove(files, tmp_path, tmp_path / "out", 5, 0), tmp_path / "out")
    for count, out in ((6, tmp_path / "out"), (5, tmp_path)):
        with raises(UsageError):
            made(BioTrove(files, tmp_path, out, count, 0), out)


def test_a_run_that_made_nothing_leaves_nothing_that_refuses_the_corrected_one(coco: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(NothingFound):
        made(Coco([coco], tmp_path, out, without=frozenset({"139", "9"})), out)
    assert made(Coco([coco], tmp_path, out, without=frozenset({"9"})), out).rows[PICTURES] == 1
    with pytest.raises(UsageError):  # what was made binds
        made(Coco([coco], tmp_path, out), out)


def rows_of(out: Path, name: str = CAPTIONS, side: str = "train") -> list[dict[str, Any]]:
    return [row for part in sorted((out / side).glob(f"*/{name}")) for row in pq.read_table(part).to_pylist()]


def labelled(place: Path, out: Path, without: frozenset[str] = frozenset(), **more: Any) -> PairsResult:
    given = LabelledSettings.read(**{"place": place, "out": out, "held_out": 0, **more})
    return make_labelled(LabelledSet(given, without), lambda _what, _done, _total: None)


def stem(path: str) -> str:
    return Path(path).stem


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    """Three herons, of which two are one file; two wasps; one moss."""
    folder = tmp_path / "classes"
    for at, name in enumerate(("heron/a", "heron/b", "wasp/c", "wasp/d", "moss/e")):
        draw(folder / f"{name}.png", at)
    shutil.copy(folder / "heron" / "a.png", folder / "heron" / "f.png")
    return folder


def test_a_picture_asks_for_another_of_its_folder_that_is_no_copy(classes: Path, tmp_path: Path) -> None:
    done = labelled(classes, tmp_path / "out")

    pairs = {(stem(row["asked_with"]), stem(row["file_name"]), row["label"]) for row in rows_of(tmp_path / "out")}
    assert {pair for pair in pairs if pair[2] == "wasp"} == {("c", "d", "wasp"), ("d", "c", "wasp")}
    of_heron = {pair[:2] for pair in pairs if pair[2] == "heron"}
    assert {("a", "b"), ("f", "b")} < of_heron and len(of_heron) == 3
    assert done.left_out == {ALONE: 1} and done.examples[ALONE].endswith("e.png")
    listed = pq.read_table(tmp_path / "out" / "left_out.parquet").to_pylist()
    assert [(stem(row["name"]), row["label"], row["reason"]) for row in listed] == [("e", "moss", ALONE)]
    places = [tmp_path / "out" / "train" / "00000" / row["file_name"] for row in rows_of(tmp_path / "out", PICTURES)]
    assert len(places) == 5 and all(place.is_file() for place in places)
    less = labelled(classes, tmp_path / "less", without=frozenset({"c.png"}))
    assert less.left_out == {"is left out by --without": 1, ALONE: 2}


def test_copies_alone_give_no_pair(tmp_path: Path) -> None:
    draw(tmp_path / "set" / "x" / "a.png", 1)
    shutil.copy(tmp_path / "set" / "x" / "a.png", tmp_path / "set" / "x" / "b.png")
    draw(tmp_path / "set" / "y" / "c.png", 2)
    draw(tmp_path / "set" / "y" / "d.png", 3)
    (tmp_path / "set" / "z").mkdir()
    draw(tmp_path / "set" / "z" / "g.png", 4)
    (tmp_path / "set" / "z" / "h.png").write_bytes(b"no picture")

    done = labelled(tmp_path / "set", tmp_path / "out")

    assert done.left_out[ALL_COPIES] == 2 and done.left_out[READ_ALONE] == 1
    (lost,) = (tmp_path / "out" / "train").glob(f"*/{WITHOUT_PAIR}")
    assert Counter(row["reason"] for row in pq.read_table(lost).to_pylist()) == done.left_out
    assert WITHOUT_PAIR not in done.rows and labelled(tmp_path / "set", tmp_path / "out").left_out == done.left_out
    assert any(reason.startswith("cannot be read") for reason in done.left_out)
    assert {row["label"] for row in rows_of(tmp_path / "out")} == {"y"}


def test_a_table_names_files_and_labels(classes: Path, tmp_path: Path) -> None:
    labels = {"heron/a": "grey", "heron/b": "grey", "wasp/c": "thin", "wasp/d": "thin", "moss/e": "grey"}
    lines = [f"{name}.png,{label}" for name, label in labels.items()]
    (classes / "list.csv").write_text("\n".join(["path,kind", *lines, "heron/a.png,thin", "gone.png,grey", ""]))

    done = labelled(classes / "list.csv", tmp_path / "out", label="kind")

    assert Counter(row["label"] for row in rows_of(tmp_path / "out")) == {"grey": 2, "thin": 2}
    assert done.left_out[TWICE] == 1 and done.examples[TWICE].endswith("a.png")
    assert any("no such file" in reason for reason in done.left_out)
    with raises(NothingFound):
        labelled(classes / "list.csv", tmp_path / "other", label="sort")


def test_a_folder_with_metadata_as_datasets_has_it(classes: Path, tmp_path: Path) -> None:
    names = [path.relative_to(classes).as_posix() for path in sorted(classes.rglob("*.png"))]
    text = "file_name,label\n" + "".join(f"{name},{at % 2}\n" for at, name in enumerate(names))
    (classes / "metadata.csv").write_text(text)
    labelled(classes, tmp_path / "out", label="label")
    assert Counter(row["label"] for row in rows_of(tmp_path / "out")).keys() == {"0", "1"}


def uned(folder: Path) -> Path:
    """Two data sets, whose classes have the same numbers."""
    for at, name in enumerate(("cars/car_ims/a", "cars/car_ims/b", "met/MET/c", "met/MET/d", "met/MET/e")):
        draw(folder / "images" / f"{name}.png", at)
    lists = {
        "cars": [{"path": f"cars/car_ims/{name}.png", "class_id": 0} for name in "ab"],
        "met": [{"path": f"met/MET/{name}.png", "class_id": [0]} for name in "cd"]
        + [{"path": "met/MET/e.png", "class_id": [0, 1]}, {"path": "met/MET/f.png"}],
    }
    for name, entries in lists.items():
        (folder / "info_files" / name).mkdir(parents=True)
        (folder / "info_files" / name / "train.json").write_text(json.dumps(entries))
    (folder / "info_files" / "met" / "val.json").write_text("[]")
    return folder


@pytest.mark.parametrize("place", ["data", "data/info_files"])
def test_universal_embeddings_keep_the_classes_of_each_set_apart(place: str, tmp_path: Path) -> None:
    uned(tmp_path / "data")
    images = None if place == "data/info_files" else tmp_path / "data" / "images"
    done = labelled(tmp_path / place, tmp_path / "out", images=images)
    assert Counter(row["label"] for row in rows_of(tmp_path / "out")) == {"cars/0": 2, "met/0": 2}
    assert done.left_out == {TWICE: 1, "has no path or no class_id": 1}


def listed(folder: Path, sizes: list[int]) -> Path:
    """A set of classes of these sizes, one picture as a file under many names."""
    for label, size in enumerate(sizes):
        for at in range(size):
            draw(folder / f"c{label}" / f"{at}.png", 100 * label + at)
    return folder


def test_a_draw_takes_whole_classes_and_some_of_each(tmp_path: Path) -> None:
    place = listed(tmp_path / "set", [5, 5, 5, 2])

    done = labelled(place, tmp_path / "out", count=7, per_class=3)

    classes = Counter(row["label"] for row in rows_of(tmp_path / "out"))
    assert sum(classes.values()) <= 7 and all(2 <= count <= 3 for count in classes.values())
    assert done.left_out[FULL] >= 2 and done.left_out[BEYOND] >= 2
    labelled(place, tmp_path / "twice", partners=2)
    counts = Counter(stem(row["asked_with"]) for row in rows_of(tmp_path / "twice") if row["label"] == "c0")
    assert set(counts.values()) == {2} and len(counts) == 5


def test_held_out_classes_have_no_picture_in_the_training_part(tmp_path: Path) -> None:
    place = listed(tmp_path / "set", [2] * 10)
    labelled(place, tmp_path / "out", held_out=0.3)
    train, held = ({row["label"] for row in rows_of(tmp_path / "out", side=side)} for side in ("train", "held-out"))
    assert (len(train), len(held)) == (7, 3) and not train & held


def test_a_second_run_makes_what_is_missing_and_nothing_else(tmp_path: Path) -> None:
    place = listed(tmp_path / "set", [2] * 6)
    how = {"held_out": 0.5}
    labelled(place, tmp_path / "out", **how)
    before = rows_of(tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "train")

    done = labelled(place, tmp_path / "out", **how)

    assert (done.parts, done.before) == (1, 1) and rows_of(tmp_path / "out") == before
    with raises(UsageError):
        labelled(place, tmp_path / "out", held_out=0.5, seed=1)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.tar").write_bytes(b"")
    file = uned(tmp_path / "data") / "info_files" / "met" / "train.json"
    file.write_text(file.read_text()[:-30])

    for name in ("nowhere", "one.tar", "data"):
        with raises(UsageError):
            labelled(tmp_path / name, tmp_path / f"from {name}")
    with raises(NothingFound):
        labelled(listed(tmp_path / "set", [1, 1]), tmp_path / "out")


def test_a_wrong_column_leaves_nothing_that_refuses_the_right_one(classes: Path, tmp_path: Path) -> None:
    (classes / "list.csv").write_text("path,kind\nheron/a.png,grey\nheron/b.png,grey\n")
    with pytest.raises(NothingFound):
        labelled(classes / "list.csv", tmp_path / "out", label="sort")
    assert labelled(classes / "list.csv", tmp_path / "out", label="kind").rows[PICTURES] == 2


@given(st.lists(st.integers(0, 3), min_size=2, max_size=12), st.integers(1, 4))
@settings(max_examples=examples(60))
def test_no_picture_is_paired_with_a_copy(looks: list[int], count: int) -> None:
    """Pictures of one look are copies; each asks for as many others as there are, at most `count`."""
    prototypes = np.random.default_rng(0).integers(1, 2**63, (4, 8)).astype(np.uint64)
    found = partners_of([prototypes[look] for look in looks], count)
    for at, partners in enumerate(found):
        assert all(looks[other] != looks[at] for other in partners)
        assert len(partners) == min(count, sum(look != looks[at] for look in looks))


def test_large_classes_are_compared_by_the_same_rule() -> None:
    rng = np.random.default_rng(1)
    signs = rng.integers(1, 2**63, (SMALL + 4, 8)).astype(np.uint64)
    signs[:, 1:] = signs[:, :1]  # forms alike, so that closeness is that of the upright pictures
    signs[1] = signs[0] ^ np.uint64(0b1011)
    signs[5] = 0
    signs[7] = 0

    large = partners_of(list(signs), 3)

    assert large[0] == [2, 3, 4] and large[SMALL + 3] == [0, 1, 2] and 7 in large[5] and 1 not in large[0]
    assert partners_of(list(signs[:6]), 9)[0] == [2, 3, 4, 5] and partners_of(list(signs[:8]), 9)[5].count(7) == 1
