"""The ledger of judgements: what was acknowledged is there, nothing stands twice, and nobody waits for a reader."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

from hypothesis import HealthCheck, given, settings, strategies as st

from eyespot.ledger.judgements import WITHDRAWN, Judgements, query_digest
from eyespot.storage.sqlite import DamagedLedger
from eyespot.types import EyespotError, Judgement, Query, Spent, Term, UsageError, Verdict
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
