"""Rankings to one: by hand, and the laws that hold for any."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import eyespot
from eyespot.gallery import disk, items_table
from eyespot.gallery.facts import table_of
from eyespot.gallery.picture_index import StoredRow
from eyespot.gallery.view import View
from eyespot.indexes.exact import Exact
from eyespot.search.fused import Fused, Fusion, grid, learned, scaled
from eyespot.search.nearest import Nearest
from eyespot.search.query_expansion import QueryExpansion
from eyespot.types import Qrels, Query, Run, Space, UsageError
from tests.examples import examples
from tests.wording import raises

A = Run({"q": [("x", 0.9), ("y", 0.5), ("z", 0.1)]})
B = Run({"q": [("z", 30.0), ("y", 20.0), ("w", 10.0)]})


def order(run: Run, query: str = "q") -> str:
    return "".join(hit.image for hit in run[query])


@st.composite
def rankings(draw: st.DrawFn) -> Run:
    """Up to six of eight images under two queries, with whole numbers as scores: ties occur."""
    made = {}
    for query in draw(st.lists(st.sampled_from("pq"), min_size=1, unique=True)):
        images = draw(st.lists(st.sampled_from("abcdefgh"), max_size=6, unique=True))
        points = sorted((draw(st.integers(-5, 5)) for _ in images), reverse=True)
        made[query] = list(zip(images, map(float, points), strict=True))
    return Run(made)


FUSIONS = st.builds(Fusion, st.sampled_from(["rrf", "combsum", "combmnz"]), st.sampled_from(["min-max", "z"]))


@pytest.mark.parametrize(
    ("fusion", "expected"),
    [
        (Fusion("rrf", k=60), {"z": 1 / 63 + 1 / 61, "y": 2 / 62, "x": 1 / 61, "w": 1 / 63}),
        (Fusion("combsum"), {"x": 1, "y": 0.5 + 0.5, "z": 0 + 1, "w": 0}),
        (Fusion("combmnz"), {"x": 1, "y": 2, "z": 2, "w": 0}),
        (Fusion("combsum", weights=(3, 1)), {"x": 3, "y": 2, "z": 1, "w": 0}),
    ],
    ids=["inverse ranks", "min-max scores", "and the runs as well", "weighted"],
)
def test_scores_add_up(fusion: Fusion, expected: dict[str, float]) -> None:
    assert {hit.image: hit.score for hit in fusion([A, B])["q"]} == pytest.approx(expected)


def test_equals_stand_by_their_best_rank_then_by_name() -> None:
    """x and z have 1 point each and were first once; y has 1 point and was second."""
    assert order(Fusion("combsum")([A, B])) == "xzyw"


def test_z_scores_count_from_the_lowest_in_standard_deviations() -> None:
    assert scaled([3.0, 2.0, 1.0], "z").tolist() == pytest.approx([2 / (2 / 3) ** 0.5, 1 / (2 / 3) ** 0.5, 0])


@pytest.mark.parametrize("norm", ["min-max", "z"])
def test_equal_scores_count_one_each(norm: str) -> None:
    assert scaled([0.1, 0.1, 0.1], norm).tolist() == [1, 1, 1]


def test_the_header_says_how_and_of_what() -> None:
    A.header["encoder"] = "starter"

    assert Fusion("rrf")([A, B]).header == {
        **{"fused": "rrf", "k": 60, "weights": [1.0, 1.0]},
        "of": [{"encoder": "starter"}, {}],
    }


def test_stages_are_asked_alike_and_fused() -> None:
    calls = []

    def stage(queries: list[Query], run: Run | None) -> Run:
        calls.append((queries[0].id, run))
        return A if len(calls) == 1 else B

    assert order(Fused(stage, stage, fusion=Fusion("combsum"))([Query.words("a heron")], B)) == "xzyw"
    assert calls == [("q", B), ("q", B)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"by": "sum"},
        {"norm": "max"},
        {"k": -1},
        {"weights": (0, 0)},
        {"weights": (1, float("nan"))},
        {"weights": (1, -1)},
        {"weights": (1, 2, 3)},
    ],
    ids=range(7),
)
def test_what_is_wrong_is_one_sentence(wrong: dict) -> None:
    with raises(UsageError):
        Fusion(**wrong)([A, B])


@settings(max_examples=examples(50), deadline=None)
@given(FUSIONS, rankings(), rankings())
def test_weights_of_one_and_zero_give_the_first_order(fusion: Fusion, first: Run, second: Run) -> None:
    fused = Fusion(fusion.by, fusion.norm, weights=(1, 0))([first, second])

    assert {query: order(fused, query) for query in fused} == {query: order(first, query) for query in first}


def test_learned_weights_take_the_run_that_is_right_and_are_the_most_even_of_the_best() -> None:
    """Of equal weights the sums of x and z tie; x stands first by name."""
    fusion, value, alone = learned(Fusion("combsum"), [A, B], Qrels({"q": {"x": 1}}), "RR")

    assert value == 1 and alone == (1, pytest.approx(0))
    assert order(fusion([A, B]))[0] == "x" and fusion.weights == (0.5, 0.5)


@pytest.mark.parametrize("runs", [1, 2, 3, 5, 9])
def test_the_grid_has_every_run_alone_and_adds_up_to_one(runs: int) -> None:
    tried = list(grid(runs))

    assert len(tried) == len(set(tried)) <= 300
    assert all(sum(weights) == pytest.approx(1) for weights in tried)
    assert sum(max(weights) == 1 for weights in tried) == runs


# -- query expansion in a plane where every number can be checked by hand ----------------------------------------


class Compass:
    """An encoder of words that are degrees: "30" is the direction thirty degrees to the left of east."""

    space = Space("compass", "1", "none", "none", 2)
    batch, min_side, licence = 1, None, "CC0-1.0"

    def encode_texts(self, texts: list[str]) -> np.ndarray:
        return directions([float(text) for text in texts])


def directions(degrees: list[float]) -> np.ndarray:
    turned = np.radians(np.array(degrees))
    return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)


def plane(folder: Path, degrees: list[float]) -> View:
    """A gallery whose pictures are called by their directions."""
    shard = disk.shard_path(folder, 0)
    shard.mkdir(parents=True)
    rows = [StoredRow(f"{one:g}", {}, [0], [f"{one:g}.jpg"], 1, 1, {}) for one in degrees]
    items_table.write_items(shard, table_of(rows, {}))
    disk.write_vectors(shard, directions(degrees), disk.SpaceNote(Compass.space, [], []))
    stem = disk.stem_of(Compass.space)
    disk.write_header(folder, disk.Header({0: disk.Root(str(folder), "folder")}, {stem: Compass.space}, stem, 1))
    return eyespot.open(folder).view


def expanded(view: View, n: int, alpha: float = 1.0) -> QueryExpansion:
    return QueryExpansion(view, Compass(), Exact(view.blocks), n, 10, view.live, alpha)


@pytest.mark.parametrize(
    ("alpha", "x", "y"), [(1, 5 / 4, np.sqrt(3) / 4), (3, 1 + 1 / 16, np.sqrt(3) / 16), (0, 3 / 2, np.sqrt(3) / 2)]
)
def test_neighbours_weigh_by_their_similarity(tmp_path: Path, alpha: float, x: float, y: float) -> None:
    """East, and a neighbour at 60 degrees, (1/2, √3/2), of cosine 1/2."""
    view = plane(tmp_path, [60, 180, 0])
    near = Run.from_orders({"q": ["60"]})

    (hit,) = [h for h in expanded(view, 1, alpha)([Query.words("0")], near)["q"] if h.image == "0"]

    assert hit.score == pytest.approx(x / np.hypot(x, y), abs=1e-6)


def test_a_picture_on_the_far_side_does_not_push(tmp_path: Path) -> None:
    run = expanded(plane(tmp_path, [0, 120]), 2)([Query.words("0")])

    assert run["q"][0] == ("0", pytest.approx(1, abs=1e-6))


@pytest.mark.parametrize("degrees", [-170, -16.5, 0, 93])
def test_no_neighbours_is_plain_search(tmp_path: Path, degrees: float) -> None:
    view = plane(tmp_path, np.random.default_rng(0).uniform(-180, 180, 12).round(2).tolist())
    queries = [Query.words(str(degrees))]

    plain = Nearest(view, Compass(), Exact(view.blocks), 10, view.live)(queries)

    assert expanded(view, 0)(queries)["q"] == plain["q"]


def test_a_mask_holds_for_the_neighbours_and_for_the_search(tmp_path: Path) -> None:
    view = plane(tmp_path, [0, 30, 60])
    east = np.array([False, True, True])

    run = QueryExpansion(view, Compass(), Exact(view.blocks), 1, 10, east)([Query.words("0")])

    assert [hit.image for hit in run["q"]] == ["30", "60"]
    # (1, 0) + cos 30° of the picture at 30° points to atan(cos 30° sin 30° / (1 + cos² 30°))
    wanted = 30 - np.degrees(np.arctan2(np.sqrt(3) / 4, 1 + 3 / 4))
    assert np.degrees(np.arccos(run["q"][0].score)) == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize("alpha", [-1, float("nan")])
def test_a_negative_power_is_refused(tmp_path: Path, alpha: float) -> None:
    with raises(UsageError):
        expanded(plane(tmp_path, [0]), 1, alpha)


def test_after_an_adapted_run_a_note_says_that_the_search_is_plain(tmp_path: Path) -> None:
    run = Run.from_orders({"q": ["0"]})
    run.header, run.notes = {"adapted": True}, ["a note of the first stage"]

    made = expanded(plane(tmp_path, [0]), 1)([Query.words("0")], run)

    assert made.notes[0] == "a note of the first stage" and len(made.notes) == 2
