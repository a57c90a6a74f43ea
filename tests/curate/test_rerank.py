"""Which queries are worth re-ranking, with which candidates, and how they are split."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.curate.rerank import Division, RerankLimits, RerankSet, divide, keep_split, select
from eyespot.runs.judged import JudgedQueries
from eyespot.types import NothingFound, Qrels, Run, UsageError
from tests.wording import raises

RUN = Run.from_orders({"1": ["a", "b", "c", "d"], "2": ["a", "b", "c"], "10": ["d", "c", "b"], "3": ["d"], "5": ["a"]})
QRELS = Qrels(
    {"1": {"a": 0, "b": 2, "d": 1}, "2": {"a": 1, "b": 1, "c": 1}, "10": {"a": 1}, "3": {"d": 1}, "4": {"a": 1}}
)
LIMITS = RerankLimits(depth=3, least=1, most=2)


def without_columns(qrels: Qrels = QRELS) -> JudgedQueries:
    return JudgedQueries({}, qrels)


def why(made: RerankSet) -> dict[str, str]:
    return {one.query: one.reason for one in made.dropped}


def test_candidates_are_the_first_of_the_run_with_their_grades() -> None:
    made = select(RUN, without_columns(), LIMITS)
    assert made.judged.qrels.grades == {"1": {"a": 0, "b": 2, "c": 0}, "3": {"d": 1}}
    assert [hit.image for hit in made.run["1"]] == ["a", "b", "c"]
    assert made.unjudged == {("1", "c")}
    assert made.judged.queries["1"] == {"relevant": 1, "candidates": 3}


def test_what_is_left_out_says_why() -> None:
    assert why(select(RUN, without_columns(), LIMITS)) == {
        "2": "more than 2 relevant among the candidates",
        "4": "not in the run",
        "10": "none relevant among the candidates",
        "5": "not judged",
    }


def test_a_list_of_queries_says_which_there_are() -> None:
    made = select(RUN, JudgedQueries({"1": {"category": "x"}, "5": {}}, QRELS), LIMITS)
    assert made.judged.queries["1"]["category"] == "x"
    assert why(made) == {
        "5": "not judged",
        **dict.fromkeys("234", "not among the queries"),
        "10": "not among the queries",
    }


def test_with_judged_only_unjudged_hits_leave_the_run_first() -> None:
    made = select(RUN, without_columns(), RerankLimits(3, 1, 2, judged_only=True))
    assert made.judged.qrels.grades["1"] == {"a": 0, "b": 2, "d": 1} and not made.unjudged


def test_a_pooled_and_unjudged_image_counts_as_unjudged() -> None:
    made = select(Run.from_orders({"q": ["a", "b"]}), without_columns(Qrels({"q": {"a": 1, "b": -1}})), LIMITS)
    assert made.judged.qrels.grades == {"q": {"a": 1, "b": 0}} and made.unjudged == {("q", "b")}


def test_ties_at_the_cut_short_lists_missing_judgements_and_nothing_but_relevant_ones_are_noted() -> None:
    tied = Run.from_rankings({"q": [("a", 2.0), ("b", 1.0), ("c", 1.0)]})
    judged = without_columns(Qrels({"q": {"a": 1, "b": 0, "c": 0}}))
    limits = RerankLimits(1, judged_only=True)

    for made, counts in (
        (select(tied, judged, RerankLimits(depth=2)), ["1 of 1 queries"]),
        (select(RUN, without_columns(), LIMITS), ["1 of 2 queries", "1 of 4 candidates"]),
        (select(RUN, without_columns(Qrels({"2": {"a": 1}})), limits), [""]),
    ):
        assert [note.startswith(count) for note, count in zip(made.notes, counts, strict=True)] == [True] * len(counts)


@pytest.mark.parametrize(
    "qrels",
    [{"1": {"other": 1}}, {"1": {"a": 0, "b": 0}, "2": {"a": 1, "b": 1, "c": 1}, "3": {"d": 0}}],
    ids=["other images", "none relevant"],
)
def test_nothing_kept_says_why(qrels: dict[str, dict[str, int]]) -> None:
    with raises(NothingFound):
        select(RUN, without_columns(Qrels(qrels)), LIMITS)


@pytest.mark.parametrize("limits", [(0, 1, 50), (100, 3, 2), (100, -1, 2)])
def test_limits_that_nothing_can_meet_are_refused(limits: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError):
        RerankLimits(*limits)


def worth(queries: dict[str, dict[str, str]]) -> RerankSet:
    """A set of these queries, one relevant candidate of two each."""
    run = Run.from_orders({query: ["a", "b"] for query in queries})
    return select(run, JudgedQueries(queries, Qrels({query: {"a": 1, "b": 0} for query in queries})), RerankLimits(2))


def split_of(made: RerankSet) -> dict[str, str]:
    return {query: facts["split"] for query, facts in made.judged.queries.items()}


def test_a_split_keeps_the_proportions_of_a_column_whatever_its_case() -> None:
    kinds = ["Social"] * 4 + ["social"] * 2 + ["Feeding"] * 3
    made = worth({str(at): {"category": kind} for at, kind in enumerate(kinds)})
    split = split_of(divide(made, Division(val=3), "category"))
    val = [kinds[int(query)].lower() for query, name in split.items() if name == "val"]
    assert sorted(val) == ["feeding", "social", "social"]


@pytest.mark.parametrize(
    ("share", "queries", "seats"), [(0.2, 200, 40), (0.29, 50, 15), (0.5, 3, 2), (0, 3, 0), (1, 3, 3)]
)
def test_a_share_is_rounded_half_up(share: float, queries: int, seats: int) -> None:
    assert Division(share=share).seats(queries) == seats


def test_the_split_of_the_queries_can_be_kept() -> None:
    made = keep_split(worth({"p": {"split": "val"}, "q": {"split": "test"}, "r": {"split": "train"}}))
    assert split_of(made) == {"p": "val", "q": "test", "r": "train"}
    assert made.splits == ["val", "train", "test"] and list(made.split("train").queries) == ["r"]


def test_a_split_that_cannot_be_is_refused() -> None:
    with raises(UsageError):
        divide(worth({"p": {}, "q": {}}), Division(val=4))
    with raises(UsageError):
        keep_split(worth({"p": {"split": "val"}, "q": {"split": ""}}))


worlds = st.dictionaries(
    st.integers(0, 40).map(str),
    st.tuples(st.lists(st.integers(-1, 2), min_size=1, max_size=8), st.sampled_from(["a", "A", "b", ""])),
    min_size=1,
    max_size=12,
)
World = dict[str, tuple[list[int], str]]


def of(world: World, limits: RerankLimits) -> RerankSet | None:
    """The set of a world {query: (grades of its hits, value of a column)}; None if no query is kept."""
    run = Run.from_orders({query: [f"i{at}" for at in range(len(grades))] for query, (grades, _) in world.items()})
    grades = {query: {f"i{at}": grade for at, grade in enumerate(g)} for query, (g, _) in world.items()}
    try:
        made = select(
            run, JudgedQueries({query: {"kind": kind} for query, (_, kind) in world.items()}, Qrels(grades)), limits
        )
    except NothingFound:
        return None
    return divide(made, Division(share=0.4, seed=1), "kind")


@given(worlds, st.integers(1, 6), st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_kept_queries_obey_the_limits_and_every_query_is_kept_or_dropped(
    world: World, depth: int, least: int, more: int, judged_only: bool
) -> None:
    limits = RerankLimits(depth, least, least + more, judged_only)
    made = of(world, limits)
    if made is None:
        return
    relevant = {query: len(made.judged.qrels.relevant(query)) for query in made.judged.qrels}
    assert all(least <= count <= least + more for count in relevant.values())
    assert all(1 <= len(made.run[query]) <= depth for query in made.run)
    assert sorted([*made.judged.queries, *(one.query for one in made.dropped)]) == sorted(world)


@given(worlds)
def test_a_split_is_a_partition(world: World) -> None:
    made = of(world, RerankLimits(5, 0, 5))
    if made is None:
        return
    parts = [list(made.split(name).queries) for name in made.splits]
    assert sorted(query for part in parts for query in part) == sorted(made.judged.queries)


@given(worlds, st.randoms())
def test_the_order_of_the_queries_changes_nothing(world: World, chance: random.Random) -> None:
    made, again = (of(dict(chance.sample([*world.items()], len(world))), RerankLimits(5, 1, 3)) for _ in range(2))
    assert (made is None) == (again is None)
    if made is not None and again is not None:
        assert list(made.judged.queries.items()) == list(again.judged.queries.items())
        assert (dict(made.run), made.dropped, made.notes) == (dict(again.run), again.dropped, again.notes)
