"""Rankings to one: by hand, and the laws that hold for any."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.search.fused import Fused, Fusion, grid, learned, scaled
from eyespot.types import Qrels, Query, Run, UsageError
from tests.examples import examples
from tests.wording import raises

A = Run.from_rankings({"q": [("x", 0.9), ("y", 0.5), ("z", 0.1)]})
B = Run.from_rankings({"q": [("z", 30.0), ("y", 20.0), ("w", 10.0)]})


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
    return Run.from_rankings(made)


RUNS = st.lists(rankings(), min_size=1, max_size=4)
LAW = settings(max_examples=examples(50), deadline=None)
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


@LAW
@given(
    FUSIONS, st.lists(rankings(), min_size=1, max_size=4).flatmap(lambda r: st.tuples(st.just(r), st.permutations(r)))
)
def test_the_order_of_the_runs_does_not_matter(fusion: Fusion, both: tuple[list[Run], list[Run]]) -> None:
    given, turned = both

    assert dict(fusion(given)) == dict(fusion(turned))


@LAW
@given(FUSIONS, rankings(), rankings())
def test_weights_of_one_and_zero_give_the_first_order(fusion: Fusion, first: Run, second: Run) -> None:
    fused = Fusion(fusion.by, fusion.norm, weights=(1, 0))([first, second])

    assert {query: order(fused, query) for query in fused} == {query: order(first, query) for query in first}


@LAW
@given(st.sampled_from(["combsum", "combmnz"]), rankings(), rankings(), st.sampled_from([0.25, 2.0, 8.0]))
def test_the_scale_of_scores_does_not_matter(by: str, first: Run, second: Run, times: float) -> None:
    longer = {query: [(hit.image, hit.score * times + 2) for hit in hits] for query, hits in first.items()}
    plain, stretched = (Fusion(by)([run, second]) for run in (first, Run.from_rankings(longer)))

    assert {q: dict(hits) for q, hits in plain.items()} == {
        q: pytest.approx(dict(hits)) for q, hits in stretched.items()
    }


def test_learned_weights_take_the_run_that_is_right_and_are_the_most_even_of_the_best() -> None:
    """Of equal weights the sums of x and z tie; x stands first by name."""
    found = learned(Fusion("combsum"), [A, B], Qrels({"q": {"x": 1}}), "RR")

    assert found.value == 1 and found.alone == (1, pytest.approx(0))
    assert order(found.fusion([A, B]))[0] == "x" and found.fusion.weights == (0.5, 0.5)


@pytest.mark.parametrize("runs", [1, 2, 3, 5, 9])
def test_the_grid_has_every_run_alone_and_adds_up_to_one(runs: int) -> None:
    tried = list(grid(runs))

    assert len(tried) == len(set(tried)) <= 300
    assert all(sum(weights) == pytest.approx(1) for weights in tried)
    assert sum(max(weights) == 1 for weights in tried) == runs
