"""The ledger: what was acknowledged is there, nothing stands twice; grades from its votes, and tables that hold all."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from eyespot.ledger.export import COLUMNS, Reading, distinct_names, qrels, voters, write_table
from eyespot.ledger.judgements import WITHDRAWN, JudgementRow, Judgements, query_digest
from eyespot.ledger.photo_lists import LONGEST_NAME, ListQuery, PhotoLists
from eyespot.storage.sqlite import DamagedLedger
from eyespot.types import EyespotError, Judgement, NothingFound, Query, Spent, Term, UsageError, Verdict
from tests.examples import examples
from tests.wording import raises

RECORD = """
import sys
from pathlib import Path
from eyespot.ledger.judgements import Judgements
from eyespot.types import Judgement, Spent, Verdict
path, who, first = sys.argv[1:]
with Judgements(Path(path)) as ledger:
    for number in range(int(first), 10**6):
        ledger.record([Judgement("q", f"{who}{number}", "model", "p", Verdict(0.5), spent=Spent(1))])
        print(number, flush=True)
"""


def entry(image: str = "a", probability: float = 0.75, judge: str = "model", **more: object) -> Judgement:
    return Judgement("q", image, judge, "p", Verdict(probability), **more)  # type: ignore[arg-type]


def verdicts(ledger: Judgements, judge: str = "model") -> dict[str, float | None]:
    known = ledger.known("q", [row.judgement.image for row in ledger.rows()], judge, "p")
    return {image: one.verdict and one.verdict.probability for image, one in known.items()}


def test_the_digest_of_a_query_forgets_its_id_and_knows_its_terms(tmp_path: Path) -> None:
    """A picture counts by its bytes, wherever it lies, and is not the words that spell its path."""
    terms = [(Term(1, "a"),), (Term(2, "a"),), (Term(1, "b"),), (Term(1, "a"), Term(1, "b"))]
    assert len({query_digest(Query(id, one)) for id in "xy" for one in terms}) == len(terms)

    for name, data in {"a.jpg": b"1", "b.jpg": b"1", "c.jpg": b"2"}.items():
        (tmp_path / name).write_bytes(data)
    a, b, c = (query_digest(Query.picture(tmp_path / name)) for name in ("a.jpg", "b.jpg", "c.jpg"))
    assert a == b != c and query_digest(Query.words(str(tmp_path / "a.jpg"))) != a
    with raises(UsageError):
        query_digest(Query.picture(tmp_path / "gone.jpg"))


def test_what_was_asked_can_be_read_again(ledger: Judgements) -> None:
    query = Query("mine", (Term(2, "a heron \ud800"), Term(-1, "people")))
    digests = ledger.enter([query, Query.words("dusk")])
    ledger.record([entry()])

    queries = ledger.queries()

    assert queries[digests[query]] == Query(digests[query], query.terms)
    assert queries["q"] is None and len(queries) == 3


@given(
    st.lists(
        st.builds(
            Judgement,
            query=st.just("q"),
            image=st.integers().map(str),
            judge=st.just("model"),
            prompt=st.just("p"),
            verdict=st.builds(
                Verdict,
                st.floats(0, 1),
                st.none() | st.integers(-5, 5),
                st.text(st.characters(codec="utf-8")),
                st.none() | st.floats(0, 1),
            ),
            refused=st.booleans(),
            rank=st.none() | st.integers(1, 1000),
            at=st.floats(0, 1e10),
            spent=st.builds(Spent, st.integers(0, 9), st.integers(0, 10**12), st.integers(0, 9), st.floats(0, 1e6)),
            exchanges=st.just(()),
        ),
        unique_by=lambda one: one.image,
    )
)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_recorded_comes_back_as_it_was(ledger: Judgements, judgements: list[Judgement]) -> None:
    query = uuid4().hex  # the ledger is the same for every example
    given = [one._replace(query=query) for one in judgements]
    ledger.record(given)

    known = ledger.known(query, [one.image for one in given], "model", "p")

    assert known == {one.image: one for one in given}
    assert [row.judgement for row in ledger.rows() if row.judgement.query == query] == given


def test_half_a_character_in_a_reason_costs_only_itself(ledger: Judgements) -> None:
    ledger.record([Judgement("q", "a", "model", "p", Verdict(0.5, reason="an \ud800 owl")), entry("b")])

    assert [row.judgement.verdict and row.judgement.verdict.reason for row in ledger.rows()] == ["an ? owl", ""]


def test_a_model_has_one_verdict_on_a_pair_and_what_two_cost_is_added_up(ledger: Judgements) -> None:
    first = entry("a", 0.25, at=1.0, spent=Spent(1, 10, 1, 0.5))
    ledger.record([first, entry("a", 0.75, at=2.0, spent=Spent(2, 20, 2, 1))])
    ledger.record([first])  # the same answer again

    (row,) = ledger.rows()

    assert row.judgement == entry("a", 0.25, at=1.0, spent=Spent(3, 30, 3, 1.5))


def test_another_wording_judge_query_or_turn_has_a_verdict_of_its_own(ledger: Judgements) -> None:
    one = entry()
    ledger.record([one, one._replace(prompt="other"), one._replace(judge="other"), one._replace(query="other")])
    ledger.record([one], turn=1)

    assert len(list(ledger.rows())) == 5
    assert len(ledger.known("q", ["a"], "model", "p")) == len(ledger.known("q", ["a"], "model", "p", turn=1)) == 1


def test_a_failure_is_kept_and_stands_in_no_verdicts_way(ledger: Judgements) -> None:
    failed = Judgement("q", "a", "model", "p", None, "the server hung up", spent=Spent(3))
    ledger.record([failed])
    assert verdicts(ledger) == {}
    assert [(row.judgement.failure, row.judgement.spent.calls) for row in ledger.rows()] == [("the server hung up", 3)]

    ledger.record([failed, entry("a", 0.5), failed])

    assert verdicts(ledger) == {"a": 0.5}


def test_only_the_images_asked_about_are_told(ledger: Judgements) -> None:
    ledger.record([])
    assert ledger.known("q", [], "model", "p") == {} == ledger.queries() and ledger.judge_counts("q") == []

    ledger.record([entry("a"), entry("b"), entry("it's", 0.0, refused=True)])

    known = ledger.known("q", ["it's", "b", "c"], "model", "p")
    assert set(known) == {"it's", "b"} and known["it's"].refused


def test_judges_are_named_in_the_order_in_which_they_came(ledger: Judgements) -> None:
    ledger.record([entry(judge="m"), entry(judge="a")])
    ledger.record([entry(judge="m")._replace(prompt="other")])

    assert ledger.judges() == ["m", "a"]


def test_reading_goes_on_while_another_program_is_in_the_middle_of_writing(ledger: Judgements) -> None:
    ledger.record([entry("a")])
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    known = verdicts(ledger)

    other.execute("ROLLBACK")
    other.close()
    assert set(known) == {"a"}


def test_a_long_reader_sees_one_moment_and_holds_nobody_up(ledger: Judgements) -> None:
    ledger.record([entry("a"), entry("b")])
    rows = ledger.rows()
    first = next(rows)

    ledger.record([entry("c")])

    assert [first.judgement.image, *(row.judgement.image for row in rows)] == ["a", "b"]


def test_a_limit_on_file_sizes_is_one_sentence_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    cramped = ["bash", "-c", 'ulimit -f 200; exec "$@"', "-", sys.executable, "-c", RECORD, str(path), "x", "0"]
    full = subprocess.run(cramped, cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, timeout=120)

    with Judgements(path) as ledger:
        images = set(verdicts(ledger))
        ledger.record([entry("after")])  # where there is room, recording goes on

    assert ".EyespotError: " in full.stderr.splitlines()[-1]
    assert {f"x{number}" for number in full.stdout.split()} <= images and images


def test_a_place_that_is_no_ledger_is_said(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("no database at all, only words " * 100)

    with raises(DamagedLedger):
        Judgements(tmp_path / "ledger.sqlite")
    with raises(EyespotError):
        Judgements(tmp_path)


def test_it_says_who_judged_for_a_query_and_on_how_many_images(ledger: Judgements) -> None:
    """Ada changes her mind on b, takes d and e back, and says no to e; the model failed on b."""
    yes, no = Verdict(1.0, 1), Verdict(0.0, 0)
    votes = [("q", "b", "person:ada", yes), ("q", "b", "person:ada", no), ("q", "c", "person:ada", yes)]
    votes += [("q", image, "person:ada", verdict) for verdict in (yes, None) for image in "de"]
    votes += [("q", "e", "person:ada", no)]
    votes += [("q", "a", "model:x", yes), ("q", "b", "model:x", None), ("other", "a", "person:bob", yes)]
    for *who, verdict in votes:
        failure = "" if verdict else WITHDRAWN if who[2] == "person:ada" else "no answer"
        ledger.record([Judgement(*who, "p", verdict, failure)])
    judge_counts = ledger.judge_counts("q")
    ledger.record([Judgement("q", "b", "person:ada", "p", yes)])
    after = ledger.judge_counts("q")

    assert sorted(count[:3] for count in judge_counts) == [("model:x", "p", 1), ("person:ada", "p", 3)]
    last = {count[0]: count.last for count in judge_counts}
    assert [(count.images, count.last > last[count[0]]) for count in after if count[0] == "person:ada"] == [(3, True)]


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

    renamed = lists.set_name(other.id, "egrets")  # its own name in another case
    assert renamed.name == "egrets" and renamed.changed > other.changed
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
