"""Pairs of COCO, CC12M and BioTrove from small files of their layouts: what is drawn, joined, left out, resumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.curate.pair_set import CAPTIONS, PICTURES, TO_CAPTION, PairSource, PairsResult, make
from eyespot.curate.pairs.published import BioTrove, Coco, Rmir, keys_of
from eyespot.types import NothingFound, UsageError
from tests.examples import examples
from tests.wording import check_wording, raises
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
