"""Coefficients of agreement equal worked examples of the literature, and keep their laws."""

from __future__ import annotations

import math
from dataclasses import astuple
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.runs import QRELS_FORMATS, RUN_FORMATS, read_queries, recos
from eyespot.runs.agreement import Ratings, cohen_kappa, krippendorff_alpha
from eyespot.runs.judged import groups
from eyespot.runs.statistics import MatchCountBin, histogram, statistics
from eyespot.types import Qrels, UsageError
from tests.examples import examples
from tests.pages import ROOT, blocks, run_code
from tests.wording import raises
from tests.worlds import benchmarks as worlds

Grid = list[list[int | None]]  # raters by items

# Krippendorff 2011, section C: four observers, twelve units, gaps.
KRIPPENDORFF: Grid = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def grid(raters: Grid) -> Ratings:
    return Ratings.of((f"i{i}", f"r{r}", value) for r, row in enumerate(raters) for i, value in enumerate(row))


def test_alpha_is_that_of_krippendorff_2011() -> None:
    alpha = krippendorff_alpha(grid(KRIPPENDORFF))
    assert round(alpha.value, 3) == 0.743
    assert (alpha.items, alpha.ratings) == (11, 40)  # unit 12 has one rating
    two = krippendorff_alpha(grid([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]))
    assert round(two.value, 3) == 0.095  # section A: observed 4/10, expected by 14 zeros and 6 ones
    assert two.observed == pytest.approx(0.6)


def test_one_category_alone_and_nothing_rated_twice_say_nothing() -> None:
    for coefficient in (cohen_kappa, krippendorff_alpha):
        assert np.isnan(coefficient(grid([[1, 1], [1, 1]])).value)
    alpha = krippendorff_alpha(grid([[1, 2, None], [None, None, 3]]))
    assert np.isnan(alpha.value) and alpha.items == 0


def test_cohen_kappa_by_hand() -> None:
    # 20 yes and yes, 5 yes and no, 10 no and yes, 15 no and no: (0.7 - 0.5) / (1 - 0.5)
    first, second = [1] * 25 + [0] * 25, [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    kappa = cohen_kappa(grid([first, second]))
    assert (kappa.value, kappa.observed, kappa.expected) == pytest.approx((0.4, 0.7, 0.5))


tables = st.integers(2, 5).flatmap(
    lambda raters: st.lists(
        st.lists(st.none() | st.integers(0, 3), min_size=raters, max_size=raters), min_size=1, max_size=8
    )
)


@settings(max_examples=examples(150))
@given(tables)
def test_alpha_is_one_less_the_distance_within_units_over_that_of_all_pairs(items: Grid) -> None:
    alpha = krippendorff_alpha(grid([list(row) for row in zip(*items, strict=True)]))

    units = [[v for v in row if v is not None] for row in items]
    units = [unit for unit in units if len(unit) > 1]
    everything = [value for unit in units for value in unit]

    within = sum((a != b) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2))
    chance = sum(a != b for a, b in permutations(everything, 2))
    if not chance:
        assert np.isnan(alpha.value)
    else:
        assert alpha.value == pytest.approx(1 - within * (len(everything) - 1) / chance)


def test_the_interval_holds_the_value_and_narrows_with_more_items() -> None:
    small, large = (krippendorff_alpha(grid([row * times for row in KRIPPENDORFF])) for times in (1, 9))
    assert small.low < small.value < small.high
    assert large.high - large.low == pytest.approx((small.high - small.low) / 3, rel=0.25)
    assert krippendorff_alpha(grid(KRIPPENDORFF)) == small


def test_what_does_not_fit_is_refused_with_the_way_out() -> None:
    with pytest.raises(UsageError, match="two raters"):
        cohen_kappa(grid(KRIPPENDORFF))
    with pytest.raises(UsageError, match="two values"):
        Ratings.of([("i", "a", 1), ("i", "a", 2)])


# -- queries from any table, and their groups ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.csv", "query_id,query_text,category\n3,a lark,Social\n"),
        ("q.csv", ",id,text,category\n0,3,a lark,Social\n"),
        ("q.tsv", "query-id\tquery\tcategory\n3\ta lark\tSocial\n"),
        ("q.jsonl", '{"_id": "3", "text": "a lark", "category": "Social"}\n'),
        ("q.jsonl", '{"id": 3, "question": "a lark", "category": "Social"}\n'),
    ],
)
def test_a_table_by_its_usual_names(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_queries(tmp_path / name) == {"3": {"text": "a lark", "category": "Social"}}


def test_parquet_without_a_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"query_id": [3, 4], "split": ["val", None]}), tmp_path / "q.parquet")
    assert read_queries(tmp_path / "q.parquet") == {"3": {"split": "val"}, "4": {"split": None}}


def test_the_folder_of_a_test_collection(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "a lark", "kind": "x"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    assert read_queries(tmp_path) == {"q": {"text": "a lark", "kind": "x"}}


@pytest.mark.parametrize("text", ["query_id,text\n3,a\n3,b\n", "name,text\n3,a\n", "query_id,text\n,a\n"])
def test_what_is_wrong_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "q.csv").write_text(text)
    with raises(UsageError):
        read_queries(tmp_path / "q.csv")


def test_groups_compare_without_case_and_keep_the_empty_one() -> None:
    queries = {"1": {"kind": "social"}, "2": {"kind": " Social "}, "3": {"kind": ""}, "4": {}, "5": {"kind": None}}
    assert groups(queries, "kind") == {"": ["3", "4", "5"], "Social": ["1", "2"]}
    with raises(UsageError):
        groups({"1": {"text": "a", "category": "b"}}, "kind")


# -- reCoS sets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "captioned", "others"), [("v0", ["a"], []), ("v1", ["a", "b"], []), ("v2", ["a", "b"], ["c"])]
)
def test_images_stay_in_later_versions(tmp_path: Path, version: str, captioned: list[str], others: list[str]) -> None:
    found = recos.read(worlds.recos(tmp_path), version)

    assert list(found.captions.images) == captioned and list(found.others) == others
    assert {id: facts["image"] for id, facts in found.captions.texts.items()} == {
        f"t{image}": image for image in captioned
    }
    subtasks = [{name: facts["subtask"] for name, facts in found.captions.images.items()}]
    subtasks += [{facts["image"]: facts["subtask"] for facts in found.captions.texts.values()}]
    assert subtasks == [{image: {"a": "colour", "b": "count"}[image] for image in captioned}] * 2


def test_without_the_column_an_image_belongs_to_all_versions(tmp_path: Path) -> None:
    data = worlds.recos(tmp_path)
    worlds.table(data / "images.csv", [{"image": "a"}, {"image": "b"}])

    assert list(recos.read(data, "v0").captions.images) == ["a", "b"]


def test_the_released_file_is_captions_by_image_and_its_folder_the_sub_task(tmp_path: Path) -> None:
    worlds.write(tmp_path / "recos_v1.json", {"images/colour/a.jpg": ["red", "blue"], "b.jpg": ["three"]})

    found = recos.read(tmp_path, "v1")

    assert [facts["text"] for facts in found.captions.texts.values()] == ["red", "blue", "three"]
    assert [facts["subtask"] for facts in found.captions.texts.values()] == ["colour", "colour", None]
    with raises(UsageError):
        recos.read(tmp_path, "v0")


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("images", [{"image": "a"}, {"image": "a"}]),
        ("images", [{"image": "a", "version": "v9"}]),
        ("images", [{"image": "c"}]),
        ("captions", [{"id": "t", "image": "a", "text": " "}]),
        ("captions", [{"id": "t", "image": "a", "text": "x"}] * 2),
        ("captions", [{"id": "t", "image": "c", "text": "x"}]),
        ("captions", [{"id": "t", "text": "x"}]),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, table: str, rows: list[dict[str, str]]) -> None:
    data = worlds.recos(tmp_path)
    worlds.table(data / f"{table}.csv", rows)

    with raises(UsageError):
        recos.read(data, "v1")
    with raises(UsageError):
        recos.read(data, "v3")  # there is no such version


# -- what judgements hold, counted -------------------------------------------------------------------------------


QRELS = Qrels({"p": {"a": 1, "b": 0, "c": 2}, "q": {"a": 1, "d": -1}, "r": {"b": 0}})


def test_pairs_images_grades_and_matches_by_hand() -> None:
    found = statistics(QRELS, pool=9)
    assert (found.queries, found.judged, found.relevant) == (3, 5, 3)
    assert (found.images_judged, found.images_relevant, found.pool) == (3, 2, 9)
    assert (found.without_relevant, found.grades) == (["r"], {-1: 1, 0: 2, 1: 2, 2: 1})
    assert astuple(found.matches) == (1.0, 1.0, 0.5, 1.5, 0.0, 2.0)


def test_of_some_queries_of_one_that_nobody_judged_and_of_none() -> None:
    found = statistics(QRELS, ["q", "new"])
    assert (found.queries, found.judged, found.relevant, found.images_judged) == (2, 1, 1, 1)
    assert found.without_relevant == ["new"] and found.matches.mean == 0.5
    part = statistics(Qrels({"q": {"a": 0.5, "b": 0}}))  # a fraction below 1 is not relevant, as in the measures
    assert (part.judged, part.relevant, part.images_relevant, part.without_relevant) == (2, 0, 0, ["q"])
    none = statistics(QRELS, [])
    assert (none.queries, none.judged, none.histogram) == (0, 0, []) and math.isnan(none.matches.mean)


def test_bins_double_and_those_between_are_shown_empty() -> None:
    assert histogram(np.array([1, 2, 3, 9])) == [
        MatchCountBin(1, 1, 1),
        MatchCountBin(2, 3, 2),
        MatchCountBin(4, 7, 0),
        MatchCountBin(8, 15, 1),
    ]
    assert histogram(np.array([0, 1])) == [MatchCountBin(0, 0, 1), MatchCountBin(1, 1, 1)]


# -- the page on runs says what is so ----------------------------------------------------------------------------


PAGE = ROOT / "docs" / "research" / "runs.md"


def test_its_code_runs_as_it_stands(tmp_path: Path) -> None:
    found = run_code("\n".join(blocks(PAGE, "python")), tmp_path)
    assert found.splitlines() == ["my photo.jpg", "{'b.jpg'}", "3"]


def test_it_names_every_format() -> None:
    runs, qrels = PAGE.read_text(encoding="utf-8").split("## Qrels")
    assert all(f"`{name}`" in runs for name in RUN_FORMATS)
    assert all(f"`{name}`" in qrels for name in QRELS_FORMATS)
