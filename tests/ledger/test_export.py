"""Votes to grades: majorities, thresholds, what stays unjudged; and tables that hold everything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from eyespot.ledger.export import COLUMNS, Reading, distinct_names, qrels, voters, write_table
from eyespot.ledger.judgements import WITHDRAWN, JudgementRow
from eyespot.ledger.photo_lists import LONGEST_NAME, ListQuery, PhotoLists
from eyespot.types import Judgement, NothingFound, Spent, UsageError, Verdict
from tests.wording import raises

NAMES = {"d1": "a heron", "d2": "an owl"}


def row(
    value: Verdict | float | int | None, judge: str = "m", query: str = "d1", image: str = "a", turn: int = 0
) -> JudgementRow:
    """A whole number is a grade, any other a probability, None a failure."""
    verdict = Verdict(grade=value) if isinstance(value, int) else Verdict(value) if isinstance(value, float) else value
    return JudgementRow(
        Judgement(query, image, judge, "p", verdict, "" if verdict else "hung up", spent=Spent(1, 2, 3, 0.5)), turn
    )


def grades(rows: list[JudgementRow], reading: Reading = Reading()) -> dict[str, dict[str, int]]:
    return qrels(rows, NAMES, reading).grades


@pytest.mark.parametrize(
    ("value", "reading", "grade"),
    [
        (0.5, Reading(), 1),
        (0.49, Reading(), 0),
        (0.49, Reading(threshold=0.4), 1),
        (3, Reading(), 3),
        (3, Reading(least_grade=4), 0),
        (4, Reading(least_grade=4), 1),
        (Verdict(0.9, 0), Reading(), 0),
    ],
)
def test_a_verdict_becomes_a_grade(value: Verdict | float | int, reading: Reading, grade: int) -> None:
    assert grades([row(value)], reading) == {"a heron": {"a": grade}}


ADA, BOB = "person:ada", "person:bob"


def marked(one: JudgementRow, **more: object) -> JudgementRow:
    return replace(one, judgement=one.judgement._replace(**more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        *(
            ([row(vote, f"m{number}") for number, vote in enumerate(votes)], {"a heron": {"a": grade}})
            for votes, grade in [([1.0, 0.0], 0), ([1.0, 0.0, 1.0], 1), ([0.0, 1.0, 0.0], 0), ([1.0, 1.0, 0.0, 0.0], 0)]
        ),
        ([row(None), marked(row(0.0, image="b"), refused=True), row(1.0, query="d3")], {}),
        ([row(1.0, query="d2")], {"an owl": {"a": 1}}),
        ([row(1.0, ADA), row(1.0, BOB), row(0.0, ADA)], {"a heron": {"a": 0}}),  # the last word of a person
        ([row(1.0), row(0.0, turn=1), row(1.0, turn=2)], {"a heron": {"a": 1}}),  # each turn of a model has a vote
        ([row(1.0), row(None)], {"a heron": {"a": 1}}),  # a failure takes no vote back
        ([row(1, ADA), row(0, BOB), marked(row(None, ADA), failure=WITHDRAWN)], {"a heron": {"a": 0}}),
        ([row(1, ADA), marked(row(None, ADA), failure=WITHDRAWN)], {}),
    ],
)
def test_the_majority_counts_and_doubt_is_a_no(rows: list[JudgementRow], expected: dict[str, dict[str, int]]) -> None:
    assert grades(rows) == expected


@given(st.lists(st.integers(0, 4), min_size=1, max_size=7), st.randoms())
def test_votes_have_no_order_and_the_grade_is_one_that_was_given(votes: list[int], chance: object) -> None:
    rows = [row(vote, f"m{number}") for number, vote in enumerate(votes)]
    shuffled = list(rows)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]

    assert grades(rows) == grades(shuffled)
    assert grades(rows)["a heron"]["a"] in votes


@pytest.mark.parametrize(
    ("there", "named", "chosen"),
    [(["a"], [], {"a"}), (["a", "b"], ["b"], {"b"}), (["a", "b"], ["all"], {"a", "b"}), ([], [], set())],
)
def test_who_votes(there: list[str], named: list[str], chosen: set[str]) -> None:
    assert voters(there, named) == chosen


@pytest.mark.parametrize(("there", "named"), [(["a", "b"], []), (["a", "b"], ["a", "c"]), ([], ["c"])])
def test_voters_that_cannot_be_are_refused(there: list[str], named: list[str]) -> None:
    with raises(UsageError):
        voters(there, named)


def test_equal_names_get_the_beginning_of_their_digest() -> None:
    named = distinct_names({"0123456789": "./a.jpg", "9876543210": "./a.jpg", "5": "dusk"})

    assert list(named.values()) == ["./a.jpg (01234567)", "./a.jpg (98765432)", "dusk"]


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_a_table_holds_every_column_of_every_row(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"j.{ending}"
    count = write_table([row(0.75), row(2, turn=1), row(None, query="d3")], NAMES, path)

    if ending == "parquet":
        rows = pq.read_table(path).to_pylist()
        write_table([], NAMES, tmp_path / "empty.parquet")
        assert tuple(pq.read_table(tmp_path / "empty.parquet").column_names) == COLUMNS
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]

    assert count == len(rows) == 3
    assert all(tuple(one) == COLUMNS for one in rows)
    assert [(one["name"], one["turn"], one["probability"], one["grade"], one["failure"]) for one in rows] == [
        ("a heron", 0, 0.75, None, ""),
        ("a heron", 1, None, 2, ""),
        (None, 0, None, None, "hung up"),
    ]
    assert (rows[0]["calls"], rows[0]["tokens_in"], rows[0]["tokens_out"], rows[0]["money"]) == (1, 2, 3, 0.5)


# -- named lists of photos ----------------------------------------------------------------------------------------


HERON = ListQuery("d" * 32, "a heron", "q=a+heron")


@pytest.fixture
def lists(tmp_path: Path) -> Iterator[PhotoLists]:
    with PhotoLists(tmp_path / "ledger.sqlite") as opened:
        yield opened


def test_a_list_is_there_after_a_restart(tmp_path: Path) -> None:
    with PhotoLists(tmp_path / "ledger.sqlite") as before:
        id = before.make(" Herons\nat dawn ", "ada", ["b", "a", "b"], [HERON]).id
    with PhotoLists(tmp_path / "ledger.sqlite") as after:
        one = after.find("herons AT dawn")
        assert (one.id, one.name, one.maker, one.photos) == (id, "Herons at dawn", "ada", 2)
        assert (after.photos(id), after.queries(id)) == (["b", "a"], [HERON])


def test_photos_come_behind_and_go_and_a_joined_list_has_those_and_queries_of_both(lists: PhotoLists) -> None:
    one, other = lists.make("x", "ada", ["a", "b"]), lists.make("y", "ada", ["b", "d"], [HERON])
    lists.add(one.id, ["b", "c"])
    changed = lists.remove(one.id, ["a", "not there"])
    assert lists.photos(one.id) == ["b", "c"] and changed.changed > one.changed

    lists.join(one.id, other.id)

    assert (lists.photos(one.id), lists.queries(one.id)) == (["b", "c", "d"], [HERON])
    assert lists.photos(other.id) == ["b", "d"]


def test_no_two_lists_have_one_name(lists: PhotoLists) -> None:
    lists.make("Herons", "ada", ["a"])
    other = lists.make("Egrets", "ada", ["a"])
    for wrong in (lambda: lists.make("herons", "bo", []), lambda: lists.set_name(other.id, "HERONS")):
        with pytest.raises(UsageError, match="already"):
            wrong()

    assert lists.set_name(other.id, "egrets").name == "egrets"  # its own name in another case
    assert [one.name for one in lists.all()] == ["egrets", "Herons"]


@pytest.mark.parametrize("name", ["", " \n", "x" * (LONGEST_NAME + 1), "\x00"])
def test_a_name_that_nobody_could_read_is_refused(lists: PhotoLists, name: str) -> None:
    with pytest.raises(UsageError, match="visible"):
        lists.make(name, "ada", ["a"])
    assert lists.all() == []


def test_lists_are_found_by_a_part_of_their_name_or_words(lists: PhotoLists) -> None:
    lists.make("Dawn", "ada", ["a"], [HERON])
    lists.make("Noon", "ada", ["a"])

    assert [[one.name for one in lists.all(part)] for part in ("daw", "HERON", "owl")] == [["Dawn"], ["Dawn"], []]


def test_a_link_leads_to_its_list_until_it_is_taken_back_or_replaced(lists: PhotoLists) -> None:
    one = lists.make("x", "ada", ["a"])
    first = lists.link(one.id)
    assert lists.by_token(first).id == one.id and lists.find(one.id).linked
    assert first.encode() not in b"".join(file.read_bytes() for file in lists.path.parent.iterdir())
    second = lists.link(one.id)
    with pytest.raises(NothingFound):
        lists.by_token(first)
    lists.unlink(one.id)

    assert first != second and not lists.find(one.id).linked
    with pytest.raises(NothingFound):
        lists.by_token(second)


def test_a_deleted_list_leaves_nothing_behind(lists: PhotoLists) -> None:
    one = lists.make("x", "ada", ["a"], [HERON])
    token = lists.link(one.id)
    lists.delete(one.id)
    again = lists.make("x", "ada", ["b"])

    assert (lists.photos(again.id), lists.queries(again.id)) == (["b"], [])
    with pytest.raises(NothingFound):
        lists.by_token(token)
