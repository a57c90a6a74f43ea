"""Pairs of two pictures with one label: the layouts, the draw, copies, what is left out, and a second run."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.curate.pair_set import CAPTIONS, PICTURES, PairsResult
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
    make,
    partners_of,
)
from eyespot.settings.build import LabelledSettings
from eyespot.types import NothingFound, UsageError
from tests.examples import examples
from tests.wording import raises
from tests.worlds import draw


def rows(out: Path, name: str = CAPTIONS, side: str = "train") -> list[dict[str, Any]]:
    return [row for part in sorted((out / side).glob(f"*/{name}")) for row in pq.read_table(part).to_pylist()]


def made(place: Path, out: Path, without: frozenset[str] = frozenset(), **more: Any) -> PairsResult:
    given = LabelledSettings.read(**{"place": place, "out": out, "held_out": 0, **more})
    return make(LabelledSet(given, without), lambda _what, _done, _total: None)


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
    done = made(classes, tmp_path / "out")

    pairs = {(stem(row["asked_with"]), stem(row["file_name"]), row["label"]) for row in rows(tmp_path / "out")}
    assert {pair for pair in pairs if pair[2] == "wasp"} == {("c", "d", "wasp"), ("d", "c", "wasp")}
    of_heron = {pair[:2] for pair in pairs if pair[2] == "heron"}
    assert {("a", "b"), ("f", "b")} < of_heron and len(of_heron) == 3
    assert done.left_out == {ALONE: 1} and done.examples[ALONE].endswith("e.png")
    listed = pq.read_table(tmp_path / "out" / "left_out.parquet").to_pylist()
    assert [(stem(row["name"]), row["label"], row["reason"]) for row in listed] == [("e", "moss", ALONE)]
    places = [tmp_path / "out" / "train" / "00000" / row["file_name"] for row in rows(tmp_path / "out", PICTURES)]
    assert len(places) == 5 and all(place.is_file() for place in places)
    less = made(classes, tmp_path / "less", without=frozenset({"c.png"}))
    assert less.left_out == {"is left out by --without": 1, ALONE: 2}


def test_copies_alone_give_no_pair(tmp_path: Path) -> None:
    draw(tmp_path / "set" / "x" / "a.png", 1)
    shutil.copy(tmp_path / "set" / "x" / "a.png", tmp_path / "set" / "x" / "b.png")
    draw(tmp_path / "set" / "y" / "c.png", 2)
    draw(tmp_path / "set" / "y" / "d.png", 3)
    (tmp_path / "set" / "z").mkdir()
    draw(tmp_path / "set" / "z" / "g.png", 4)
    (tmp_path / "set" / "z" / "h.png").write_bytes(b"no picture")

    done = made(tmp_path / "set", tmp_path / "out")

    assert done.left_out[ALL_COPIES] == 2 and done.left_out[READ_ALONE] == 1
    (lost,) = (tmp_path / "out" / "train").glob(f"*/{WITHOUT_PAIR}")
    assert Counter(row["reason"] for row in pq.read_table(lost).to_pylist()) == done.left_out
    assert WITHOUT_PAIR not in done.rows and made(tmp_path / "set", tmp_path / "out").left_out == done.left_out
    assert any(reason.startswith("cannot be read") for reason in done.left_out)
    assert {row["label"] for row in rows(tmp_path / "out")} == {"y"}


def test_a_table_names_files_and_labels(classes: Path, tmp_path: Path) -> None:
    labels = {"heron/a": "grey", "heron/b": "grey", "wasp/c": "thin", "wasp/d": "thin", "moss/e": "grey"}
    lines = [f"{name}.png,{label}" for name, label in labels.items()]
    (classes / "list.csv").write_text("\n".join(["path,kind", *lines, "heron/a.png,thin", "gone.png,grey", ""]))

    done = made(classes / "list.csv", tmp_path / "out", label="kind")

    assert Counter(row["label"] for row in rows(tmp_path / "out")) == {"grey": 2, "thin": 2}
    assert done.left_out[TWICE] == 1 and done.examples[TWICE].endswith("a.png")
    assert any("no such file" in reason for reason in done.left_out)
    with raises(NothingFound):
        made(classes / "list.csv", tmp_path / "other", label="sort")


def test_a_folder_with_metadata_as_datasets_has_it(classes: Path, tmp_path: Path) -> None:
    names = [path.relative_to(classes).as_posix() for path in sorted(classes.rglob("*.png"))]
    text = "file_name,label\n" + "".join(f"{name},{at % 2}\n" for at, name in enumerate(names))
    (classes / "metadata.csv").write_text(text)
    made(classes, tmp_path / "out", label="label")
    assert Counter(row["label"] for row in rows(tmp_path / "out")).keys() == {"0", "1"}


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
    done = made(tmp_path / place, tmp_path / "out", images=images)
    assert Counter(row["label"] for row in rows(tmp_path / "out")) == {"cars/0": 2, "met/0": 2}
    assert done.left_out == {TWICE: 1, "has no path or no class_id": 1}


def listed(folder: Path, sizes: list[int]) -> Path:
    """A set of classes of these sizes, one picture as a file under many names."""
    for label, size in enumerate(sizes):
        for at in range(size):
            draw(folder / f"c{label}" / f"{at}.png", 100 * label + at)
    return folder


def test_a_draw_takes_whole_classes_and_some_of_each(tmp_path: Path) -> None:
    place = listed(tmp_path / "set", [5, 5, 5, 2])

    done = made(place, tmp_path / "out", count=7, per_class=3)

    classes = Counter(row["label"] for row in rows(tmp_path / "out"))
    assert sum(classes.values()) <= 7 and all(2 <= count <= 3 for count in classes.values())
    assert done.left_out[FULL] >= 2 and done.left_out[BEYOND] >= 2
    made(place, tmp_path / "twice", partners=2)
    counts = Counter(stem(row["asked_with"]) for row in rows(tmp_path / "twice") if row["label"] == "c0")
    assert set(counts.values()) == {2} and len(counts) == 5


def test_held_out_classes_have_no_picture_in_the_training_part(tmp_path: Path) -> None:
    place = listed(tmp_path / "set", [2] * 10)
    made(place, tmp_path / "out", held_out=0.3)
    train, held = ({row["label"] for row in rows(tmp_path / "out", side=side)} for side in ("train", "held-out"))
    assert (len(train), len(held)) == (7, 3) and not train & held


def test_a_second_run_makes_what_is_missing_and_nothing_else(tmp_path: Path) -> None:
    place = listed(tmp_path / "set", [2] * 6)
    how = {"held_out": 0.5}
    made(place, tmp_path / "out", **how)
    before = rows(tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "train")

    done = made(place, tmp_path / "out", **how)

    assert (done.parts, done.before) == (1, 1) and rows(tmp_path / "out") == before
    with raises(UsageError):
        made(place, tmp_path / "out", held_out=0.5, seed=1)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.tar").write_bytes(b"")
    file = uned(tmp_path / "data") / "info_files" / "met" / "train.json"
    file.write_text(file.read_text()[:-30])

    for name in ("nowhere", "one.tar", "data"):
        with raises(UsageError):
            made(tmp_path / name, tmp_path / f"from {name}")
    with raises(NothingFound):
        made(listed(tmp_path / "set", [1, 1]), tmp_path / "out")


def test_a_wrong_column_leaves_nothing_that_refuses_the_right_one(classes: Path, tmp_path: Path) -> None:
    (classes / "list.csv").write_text("path,kind\nheron/a.png,grey\nheron/b.png,grey\n")
    with pytest.raises(NothingFound):
        made(classes / "list.csv", tmp_path / "out", label="sort")
    assert made(classes / "list.csv", tmp_path / "out", label="kind").rows[PICTURES] == 2


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
