"""Which queries are worth re-ranking, with which candidates, and how they are split."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from eyespot.curate.rerank import (
    RerankSet,
    apportioned,
    digest,
    divide,
    draw_stratified,
    keep_split,
    select,
    validation_seats,
    write,
)
from eyespot.runs import read_judged, read_qrels, read_run, reranking
from eyespot.runs.judged import JudgedQueries
from eyespot.settings import SettingsConflict
from eyespot.settings.build import RerankSetSettings
from eyespot.types import NothingFound, Qrels, Run, UsageError
from tests.wording import raises

RUN = Run.from_orders({"1": ["a", "b", "c", "d"], "2": ["a", "b", "c"], "10": ["d", "c", "b"], "3": ["d"], "5": ["a"]})
QRELS = Qrels(
    {"1": {"a": 0, "b": 2, "d": 1}, "2": {"a": 1, "b": 1, "c": 1}, "10": {"a": 1}, "3": {"d": 1}, "4": {"a": 1}}
)


def settings_of(folder: Path = Path(), **settings: Any) -> RerankSetSettings:
    """The settings of a set in `folder`/set, of the run and the judgements beside it."""
    files = {"run": folder / "run.txt", "qrels": folder / "qrels.txt", "out": folder / "set"}
    return RerankSetSettings.read(**files, **settings)


LIMITS = settings_of(depth=3, least=1, most=2)


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
    made = select(RUN, without_columns(), settings_of(depth=3, most=2, judged_only=True))
    assert made.judged.qrels.grades["1"] == {"a": 0, "b": 2, "d": 1} and not made.unjudged


def test_a_pooled_and_unjudged_image_counts_as_unjudged() -> None:
    made = select(Run.from_orders({"q": ["a", "b"]}), without_columns(Qrels({"q": {"a": 1, "b": -1}})), LIMITS)
    assert made.judged.qrels.grades == {"q": {"a": 1, "b": 0}} and made.unjudged == {("q", "b")}


def test_ties_at_the_cut_short_lists_missing_judgements_and_nothing_but_relevant_ones_are_noted() -> None:
    tied = Run({"q": [("a", 2.0), ("b", 1.0), ("c", 1.0)]})
    judged = without_columns(Qrels({"q": {"a": 1, "b": 0, "c": 0}}))
    limits = settings_of(depth=1, judged_only=True)

    for made, counts in (
        (select(tied, judged, settings_of(depth=2)), ["1 of 1 queries"]),
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


def worth(queries: dict[str, dict[str, str]], **settings: Any) -> RerankSet:
    """A set of these queries, one relevant candidate of two each."""
    run = Run.from_orders({query: ["a", "b"] for query in queries})
    judged = JudgedQueries(queries, Qrels({query: {"a": 1, "b": 0} for query in queries}))
    return select(run, judged, settings_of(depth=2, **settings))


def split_of(made: RerankSet) -> dict[str, str]:
    return {query: facts["split"] for query, facts in made.judged.queries.items()}


def test_a_split_keeps_the_proportions_of_a_column_whatever_its_case() -> None:
    kinds = ["Social"] * 4 + ["social"] * 2 + ["Feeding"] * 3
    made = worth({str(at): {"category": kind} for at, kind in enumerate(kinds)}, val=3)
    split = split_of(divide(made, "category"))
    val = [kinds[int(query)].lower() for query, name in split.items() if name == "val"]
    assert sorted(val) == ["feeding", "social", "social"]


@pytest.mark.parametrize(
    ("share", "queries", "seats"), [(0.2, 200, 40), (0.29, 50, 15), (0.5, 3, 2), (0, 3, 0), (1, 3, 3)]
)
def test_a_share_is_rounded_half_up(share: float, queries: int, seats: int) -> None:
    assert validation_seats(settings_of(val_share=share), queries) == seats


def test_the_split_of_the_queries_can_be_kept() -> None:
    made = keep_split(worth({"p": {"split": "val"}, "q": {"split": "test"}, "r": {"split": "train"}}))
    assert split_of(made) == {"p": "val", "q": "test", "r": "train"}
    assert made.splits == ["val", "train", "test"] and list(made.split("train").queries) == ["r"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: divide(worth({"p": {}, "q": {}}, val=4)),
        lambda: keep_split(worth({"p": {"split": "val"}, "q": {"split": ""}})),
        *(partial(apportioned, {"a": 1, "b": 2}, seats) for seats in (-1, 4)),
    ],
    ids=range(4),
)
def test_what_cannot_be_is_refused(ask: Callable[[], object]) -> None:
    with raises(UsageError):
        ask()


@pytest.mark.parametrize(
    "settings",
    [*({"depth": 0}, {"least": 3, "most": 2}, {"least": -1}), *({"val": -1}, {"val": 1, "val_share": 0.1})],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any]) -> None:
    with raises(SettingsConflict):
        settings_of(**settings)


worlds = st.dictionaries(
    st.integers(0, 40).map(str),
    st.tuples(st.lists(st.integers(-1, 2), min_size=1, max_size=8), st.sampled_from(["a", "A", "b", ""])),
    min_size=1,
    max_size=12,
)
World = dict[str, tuple[list[int], str]]


def of(world: World, **limits: Any) -> RerankSet | None:
    """The set of a world {query: (grades of its hits, value of a column)}; None if no query is kept."""
    run = Run.from_orders({query: [f"i{at}" for at in range(len(grades))] for query, (grades, _) in world.items()})
    grades = {query: {f"i{at}": grade for at, grade in enumerate(g)} for query, (g, _) in world.items()}
    try:
        made = select(
            run,
            JudgedQueries({query: {"kind": kind} for query, (_, kind) in world.items()}, Qrels(grades)),
            settings_of(**limits),
        )
    except NothingFound:
        return None
    return divide(made, "kind")


@given(worlds, st.integers(1, 6), st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_kept_queries_obey_the_limits(world: World, depth: int, least: int, more: int, judged_only: bool) -> None:
    limits = {"depth": depth, "least": least, "most": least + more, "judged_only": judged_only}
    made = of(world, val_share=0.4, seed=1, **limits)
    if made is None:
        return
    relevant = {query: len(made.judged.qrels.relevant(query)) for query in made.judged.qrels}
    assert all(least <= count <= least + more for count in relevant.values())
    assert all(1 <= len(made.run[query]) <= depth for query in made.run)
    assert sorted([*made.judged.queries, *(one.query for one in made.dropped)]) == sorted(world)


# -- A split keeps proportions, and hangs on nothing but the queries and the seed --------------------------------


sizes = st.dictionaries(st.text(max_size=3), st.integers(0, 30), max_size=8)


def test_the_remainders_decide_by_hand() -> None:
    # quotas 2.4 and 1.6; then 6.2, 2.5 and 1.3
    assert apportioned({"a": 6, "b": 4}, 4) == {"a": 2, "b": 2}
    assert apportioned({"a": 62, "b": 25, "c": 13}, 10) == {"a": 6, "b": 3, "c": 1}


def test_equal_remainders_are_settled_by_lot() -> None:
    winners = {name for seed in range(20) for name, n in apportioned({"a": 1, "b": 1}, 1, seed).items() if n}
    assert winners == {"a", "b"}


@given(sizes, st.fractions(0, 1), st.integers())
def test_counts_are_within_one_of_the_quota(sizes: dict[str, int], share: Fraction, seed: int) -> None:
    total = sum(sizes.values())
    seats = int(share * total)
    counts = apportioned(sizes, seats, seed)
    assert sum(counts.values()) == seats
    assert all(0 <= counts[name] <= size for name, size in sizes.items())
    assert all(abs(counts[name] - Fraction(seats * size, total or 1)) < 1 for name, size in sizes.items())


def test_another_seed_is_another_draw() -> None:
    strata = {"a": [str(number) for number in range(30)]}
    assert len({frozenset(draw_stratified(strata, 10, seed)) for seed in range(5)}) == 5


# -- A re-ranking set on disk ------------------------------------------------------------------------------------


TEXTS = {"3": 'A mongoose, "standing"', "4": "A lark\nsinging", "11": "Ein Käfer | <b>"}


def set_of(folder: Path, images: tuple[str, ...] = ("70", "71", "72")) -> RerankSet:
    """Three queries with two candidates each of which the second is unjudged; a fourth is left out."""
    kinds = {"3": "Social", "4": "Social", "11": ""}
    queries = {query: {"text": TEXTS[query], "category": kinds[query]} for query in TEXTS} | {"5": {"text": "none"}}
    run = Run({query: [(images[0], 0.5), (images[1], 0.25), (images[2], 0.125)] for query in queries})
    run.header = {"source": "/home/ann/run.txt", "encoder": "starter"}
    qrels = Qrels({"3": {images[0]: 1}, "4": {images[0]: 1}, "11": {images[0]: 2}, "5": {images[2]: 1}})
    return divide(select(run, JudgedQueries(queries, qrels), with_files(folder, most=1)), "category")


def with_files(folder: Path, **settings: Any) -> RerankSetSettings:
    """Two candidates a query, one query for validation; with the files whose digests the card has."""
    folder.mkdir(exist_ok=True)
    for name in ("run.txt", "qrels.txt"):
        (folder / name).write_bytes(b"q Q0 a 1 0.5 t\n")
    return settings_of(folder, **{"depth": 2, "val": 1, **settings})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The set, written."""
    write(set_of(tmp_path), "category")
    return tmp_path / "set"


def test_the_folder_comes_back(folder: Path) -> None:
    """With zeros that are no judgements, what was left out, and how the run was made but not where it lay."""
    made, found = set_of(folder.parent), reranking.read(folder)
    assert {query: facts["text"] for query, facts in found.queries.items()} == TEXTS
    wanted = {"category": "Social", "relevant": "1", "candidates": "2", "split": made.judged.queries["3"]["split"]}
    assert found.queries["3"] == {"text": TEXTS["3"]} | wanted
    assert found.qrels.grades == made.judged.qrels.grades and found.candidates is not None
    assert dict(found.candidates) == dict(made.run) and list(found.images) == ["70", "71"]
    rows = pq.read_table(folder / "qrels.parquet").to_pylist()
    assert [(row["image"], row["grade"], row["judged"]) for row in rows[:2]] == [("70", 1, True), ("71", 0, False)]
    assert read_qrels(folder).header["unjudged"] == 3
    with (folder / "dropped.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    reason = "none relevant among the candidates"
    assert row == {"query_id": "5", "reason": reason, "relevant": "0", "candidates": "2"}
    assert read_run(folder / "candidates.parquet").header == {"source": "run.txt", "encoder": "starter"}


def test_no_text_of_the_folder_is_a_formula_and_all_come_back(tmp_path: Path) -> None:
    run = Run({"=1": [("a", 0.5), ("b", 0.25)], "-2": [("a", 0.5)]})
    queries = {"=1": {"text": "@SUM(1)", "category": "-"}, "-2": {"text": "+x"}}
    judged = JudgedQueries(queries, Qrels({"=1": {"a": 1}, "-2": {"a": 1}}))
    write(divide(select(run, judged, with_files(tmp_path, most=1))))

    texts = [(tmp_path / "set" / name).read_text() for name in ("queries.csv", "dropped.csv")]
    cells = [cell for text in texts for row in csv.reader(text.splitlines()) for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))] == []
    assert reranking.read(tmp_path / "set").queries["=1"]["text"] == "@SUM(1)"


def test_it_is_known_by_its_look_and_by_split(folder: Path) -> None:
    made = set_of(folder.parent)
    (val,) = made.split("val").queries
    assert dict(read_run(folder)) == dict(made.run)
    assert list(read_qrels(folder)) == ["3", "4", "11"]
    assert list(read_qrels(folder, "rerank-set:val")) == [val]
    assert list(read_run(folder, "rerank-set:val")) == [val]
    assert list(read_judged(folder).queries) == ["3", "4", "11"]


def test_unknown_splits_foreign_tables_and_full_folders_are_refused(folder: Path) -> None:
    with raises(UsageError):
        reranking.read(folder, "dev")
    (folder / "queries.csv").write_text("query_id,split\n3,val\n4,test\n")
    with raises(UsageError):
        reranking.read(folder)
    before = sorted(folder.iterdir())
    with raises(UsageError):
        write(set_of(folder.parent))
    assert sorted(folder.iterdir()) == before


def test_the_card_counts_and_names_its_sources(folder: Path) -> None:
    card = (folder / "card.md").read_text()
    sha = hashlib.sha256(b"q Q0 a 1 0.5 t\n").hexdigest()
    for line in (
        *("# set", "| val | 1 | 2 | 1 | 1 |", "| test | 2 | 4 | 2 | 2 |"),
        "| test | 0.7500 | 0.8155 | 0.7500 |",  # one of two is relevant: first or second, (1 + 1/2) / 2
        *("| none relevant among the candidates | 1 |", "| seed | 0 |", f"| run | run.txt | {sha} |"),
    ):
        assert line in card.splitlines()


def test_the_same_set_is_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write(set_of(tmp_path / "again"), "category")
    assert digest(folder) == digest(tmp_path / "again" / "set")


def test_the_digest_of_a_folder_tells_names_and_contents(tmp_path: Path) -> None:
    for folder, name, text in (("a", "x", "1"), ("b", "y", "1"), ("c", "x", "2"), ("d", "x", "1")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    a, b, c, d = (digest(tmp_path / folder) for folder in "abcd")
    assert a == d and len({a, b, c}) == 3


def test_what_cannot_be_written_leaves_no_folder_behind(tmp_path: Path) -> None:
    run, qrels = Run.from_orders({" q": ["a", "b"]}), Qrels({" q": {"a": 1}})
    made = divide(select(run, JudgedQueries({" q": {}}, qrels), with_files(tmp_path)))
    with raises(UsageError):
        write(made)
    assert not (tmp_path / "set").exists()


def test_columns_of_the_users_come_along_and_do_not_pass_for_others(tmp_path: Path) -> None:
    queries = {"q": {"text": "a lark", "question": "which?", "id": 7, "relevant": "yes", "tags": ["x", "é"], "n": None}}
    made = select(
        Run.from_orders({"q": ["a", "b"]}), JudgedQueries(queries, Qrels({"q": {"a": 1}})), with_files(tmp_path, val=0)
    )
    write(divide(made))
    assert reranking.read(tmp_path / "set").queries["q"] == {
        **{"text": "a lark", "question": "which?", "id": "7", "tags": '["x", "é"]', "n": ""},
        **{"split": "test", "relevant": "1", "candidates": "2"},
    }
