"""Judged images are rows of a gallery by one way for all, and a run gets their names."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eyespot
from eyespot.gallery.view import View
from eyespot.metrics import evaluate
from eyespot.search.matching import RowMatching, matched, renamed
from eyespot.types import Qrels, RankedImage, Run, UsageError
from tests.wording import raises
from tests.worlds import draw, index_gallery

FACTS = """file_name,number,mixed,Place
a/gull.jpg,17,x,3.5
a/heron.v2.jpg,18,7,2
b/ibis.jpg,19,7,
e/gone.jpg,20,z,
"""
PATHS = ["a/gull.jpg", "a/heron.v2.jpg", "b/ibis.jpg", "c/gull.jpg", "c/teal.png"]


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    """Five pictures in shards of two; d/copy.jpg is c/teal.png once more, and e/gone.jpg is gone again."""
    folder = tmp_path_factory.mktemp("matching")
    for seed, path in enumerate([*PATHS, "e/gone.jpg"]):
        draw(folder / "photos" / path, seed)
    (folder / "photos" / "d").mkdir()
    shutil.copy(folder / "photos" / "c/teal.png", folder / "photos" / "d/copy.jpg")
    (folder / "photos" / "metadata.csv").write_text(FACTS)
    index_gallery(folder / "gallery", folder / "photos", shard_rows=2)
    (folder / "photos" / "e/gone.jpg").unlink()
    index_gallery(folder / "gallery", shard_rows=2, forget=True)
    return eyespot.open(folder / "gallery").view


def rows(matching: RowMatching) -> dict[str, int]:
    return dict(zip(matching.names, matching.rows.tolist(), strict=True))


@pytest.mark.parametrize(
    ("way", "names"),
    [
        ("path", {"c/gull.jpg": 3, "a/gull.jpg": 0, "b/ibis.jpg": 2}),
        ("file_name", {"heron.v2.jpg": 1, "teal.png": 4, "copy.jpg": 4}),
        ("file_stem", {"heron.v2": 1, "teal": 4, "copy": 4}),
        ("id", {}),
    ],
)
def test_names_are_looked_up_in_the_way_that_finds_most(view: View, way: str, names: dict[str, int]) -> None:
    names = names or {facts["id"]: row for row, facts in enumerate(view.facts(range(5)))}

    matching = matched(view, names)

    assert (matching.way, rows(matching), matching.unmatched, matching.ambiguous) == (way, names, [], [])
    assert matching.ids == [view.facts([row])[0]["id"] for row in names.values()]
    assert matched(View(view.gallery, view.stem, [], []), names).unmatched == [*names]


def test_one_way_holds_for_all_names(view: View) -> None:
    matching = matched(view, ["a/gull.jpg", "b/ibis.jpg", "teal.png"])

    assert (matching.way, matching.unmatched) == ("path", ["teal.png"])


def test_of_several_rows_under_one_name_the_first_counts_and_it_is_told(view: View) -> None:
    matching = matched(view, ["gull.jpg", "ibis.jpg"])

    assert (rows(matching), matching.ambiguous) == ({"gull.jpg": 0, "ibis.jpg": 2}, ["gull.jpg"])
    assert "1 (such as 'gull.jpg')" in matching.notes[1]


def test_a_picture_that_lies_twice_in_the_gallery_has_both_names_and_is_not_ambiguous(view: View) -> None:
    matching = matched(view, ["c/teal.png", "d/copy.jpg"])

    assert (matching.by_row, matching.ambiguous) == ({4: ["c/teal.png", "d/copy.jpg"]}, [])


def test_a_picture_that_is_gone_is_not_matched(view: View) -> None:
    matching = matched(view, ["e/gone.jpg", "b/ibis.jpg"])

    assert (matching.unmatched, matching.ids[0]) == (["e/gone.jpg"], None)
    assert matched(view, ["20"], "number").unmatched == ["20"]


def test_what_is_nowhere_is_listed_in_its_order_and_counted(view: View) -> None:
    matching = matched(view, ["z.jpg", "b/ibis.jpg", "", "half \ud800", "z.jpg", "A/GULL.JPG"])

    assert matching.unmatched == ["z.jpg", "", "half \ud800", "A/GULL.JPG"]
    assert "1 of 5" in matching.notes[0] and "'z.jpg'" in matching.notes[0]
    assert matched(view, []).names == []


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ("number", {"19": 2, "17": 0, "017": -1, "": -1, "None": -1}),
        ("NUMBER", {"18": 1}),
        ("mixed", {"x": 0, "7": 1}),
        ("place", {"3.5": 0}),
        ("file_stem", {"ibis": 2, "b/ibis.jpg": -1}),
    ],
)
def test_a_column_is_compared_as_text_and_used_alone(view: View, column: str, names: dict[str, int]) -> None:
    assert rows(matched(view, names, column)) == names


@pytest.mark.parametrize("column", ["species", "paths", "roots"])
def test_a_column_that_is_not_there_is_refused_with_those_that_are(view: View, column: str) -> None:
    with raises(UsageError):
        matched(view, ["17"], column)


def test_hits_are_named_and_those_without_a_name_keep_their_rank(view: View) -> None:
    ids = [facts["id"] for facts in view.facts(range(5))]
    matching = matched(view, ["c/teal.png", "d/copy.jpg", "b/ibis.jpg", "z.jpg"])
    run = Run.from_rankings({"q": [(ids[0], 0.9), (ids[4], 0.8), (ids[2], 0.7)], "none": []})

    named = renamed(run, matching)

    assert named["q"] == [
        RankedImage(f"gallery:{ids[0]}", 0.9),
        RankedImage("c/teal.png", 0.8),
        RankedImage("d/copy.jpg", 0.8),
        RankedImage("b/ibis.jpg", 0.7),
    ]
    assert named["none"] == []
    assert evaluate(named, Qrels({"q": {"b/ibis.jpg": 1}}), ["RR"]).means["RR"] == 1 / 4


def test_facts_header_and_notes_go_along_under_the_new_names(view: View) -> None:
    first, second = view.facts([0, 1])
    run = Run.from_rankings({"q": [(first["id"], 0.9), (second["id"], 0.8)]})
    run.facts, run.header, run.notes = {first["id"]: first, second["id"]: second}, {"exact": True}, ["a note"]

    named = renamed(run, matched(view, ["17"], "number"))

    assert named.facts == {"17": first, f"gallery:{second['id']}": second}
    assert (named.header, named.notes) == ({"exact": True, "matched_by": "number"}, ["a note"])


def test_an_image_that_a_ranking_has_twice_keeps_its_best_rank(view: View) -> None:
    first, second = (facts["id"] for facts in view.facts([0, 1]))
    run = Run.from_rankings({"q": [(first, 0.9), (second, 0.8), (first, 0.7)]})

    assert renamed(run, matched(view, ["17", "18"], "number"))["q"] == [RankedImage("17", 0.9), RankedImage("18", 0.8)]


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.sets(st.sampled_from("abcdef")))
def test_renaming_keeps_every_hit_in_its_order(ranking: list[str], judged: set[str]) -> None:
    names = sorted(judged)
    matching = RowMatching("id", [f"judged {id}" for id in names], np.arange(len(names)), list(names), [])

    named = renamed(Run.from_orders({"q": ranking}), matching)["q"]

    assert [hit.image for hit in named] == [f"judged {id}" if id in judged else f"gallery:{id}" for id in ranking]
    assert [hit.score for hit in named] == [-rank for rank in range(1, len(ranking) + 1)]
