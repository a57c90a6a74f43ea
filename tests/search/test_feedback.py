"""Judged photos move a search: in a small world checked by hand, and the laws of the record."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import eyespot
from eyespot.judges.person import VERDICTS
from eyespot.ledger.clicks import Clicks
from eyespot.ledger.judgements import WITHDRAWN, Judgements
from eyespot.search.collection import Collection
from eyespot.search.feedback import Feedback, moved, recorded, rows_of
from eyespot.settings.search import RankingSettings
from eyespot.types import Judgement, NothingFound, Query, Run, Verdict
from tests.wording import raises
from tests.worlds import make_gallery

QUERY = Query.words("stripes")


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return eyespot.open(make_gallery(tmp_path_factory.mktemp("feedback"), 24))


def images(run: Run) -> list[str]:
    return [hit.image for hit in run["q"]]


def judge(ledger: Path, image: str, verdict: Verdict | None, who: str = "person:ada", prompt: str = "p") -> None:
    with Judgements(ledger) as judgements:
        digest = judgements.enter([QUERY])[QUERY]
        failure = "" if verdict else WITHDRAWN
        judgements.record([Judgement(digest, image, who, prompt, verdict, failure, at=time.time())])


def test_a_yes_comes_first_and_the_header_says_what_moved_the_run(collection: Collection) -> None:
    last = images(collection.search("stripes", k=24).run)[-1]

    run = collection.search("stripes", k=24, feedback=Feedback(yes=(last,), by="Ada")).run

    assert images(run)[0] == last
    assert run.header["moved"] == {"yes": 1, "no": 0, "missing": 0, "by": "Ada"}
    assert run.header["exact"] is True


def test_a_moved_search_is_the_exact_ranking_by_the_moved_vector(collection: Collection) -> None:
    plain = images(collection.search("stripes", k=24, by="look").run)
    feedback = Feedback(yes=(plain[20], plain[22]), no=(plain[0],))

    run = collection.search("stripes", k=24, by="look", feedback=feedback).run

    view = collection.view
    yes, no = (view.vectors(view.rows_of(ids)) for ids in (feedback.yes, feedback.no))
    vector = moved(collection.encoder.encode_texts(["stripes"])[0], yes, no, collection.contrast)
    scores = view.vectors(range(24)) @ vector
    assert view.rows_of(images(run)) == np.argsort(-scores, kind="stable").tolist()
    assert [hit.score for hit in run["q"]] == pytest.approx(sorted(scores.tolist(), reverse=True), abs=1e-5)


def test_photos_that_are_gone_are_counted_and_move_nothing(collection: Collection) -> None:
    """And neither does a ledger that is not there."""
    plain = collection.search("stripes", k=24).run

    run = collection.search("stripes", k=24, feedback=Feedback(yes=("gone",), no=("gone too",))).run

    assert images(run) == images(plain) == images(collection.search("stripes", k=24, feedback=True).run)
    assert run.header["moved"] == {"yes": 0, "no": 0, "missing": 2, "by": ""}
    assert "2 judged photos" in run.notes[0]


def test_a_photo_that_is_a_yes_and_a_no_counts_as_neither() -> None:
    moves = rows_of(Feedback(("a", "b"), ("b", "c")), np.array([3, 5, 5, 7]))

    assert (moves.yes, moves.no, moves.missing) == ([3], [7], 0)


def test_other_wordings_of_a_query_are_moved_too(collection: Collection) -> None:
    last = images(collection.search("stripes", k=24).run)[-1]
    other = Query("q", Query.words("waves").terms)
    moves = Feedback(yes=(last,))

    stage = collection.stage(
        RankingSettings(by="look"), k=24, mask=collection.allowed(), feedback=moves, rewriting=lambda query: other
    )
    run = stage([QUERY])

    assert images(run)[0] == last
    assert run.header["wordings"] == {"q": ["waves"]}


def test_the_record_of_a_query_is_that_of_its_words(collection: Collection, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    judge(ledger, "a", VERDICTS["y"])
    judge(ledger, "b", VERDICTS["n"])
    judge(ledger, "c", VERDICTS["d"])
    judge(ledger, "d", VERDICTS["y"])
    judge(ledger, "d", None)

    assert recorded(ledger, QUERY) == Feedback(("a",), ("b",), "ada")
    assert recorded(ledger, Query.words("waves")) == Feedback()


def test_the_majority_of_people_counts_and_an_even_vote_moves_nothing(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    for who, marks in {"ada": "yny", "bob": "yyn", "cy": "ydn"}.items():
        for image, verdict in zip("abc", marks, strict=True):
            judge(ledger, image, VERDICTS[verdict], f"person:{who}")

    assert recorded(ledger, QUERY) == Feedback(("a",), ("c",), "3 people")


def test_a_model_counts_where_it_is_named(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    judge(ledger, "a", Verdict(0.9, None), "encoder:starter")
    judge(ledger, "b", Verdict(0.2, None), "encoder:starter")
    judge(ledger, "b", VERDICTS["y"])

    assert recorded(ledger, QUERY) == Feedback(("b",), (), "ada")
    assert recorded(ledger, QUERY, "encoder:starter") == Feedback(("a",), ("b",), "encoder:starter")
    with raises(NothingFound):
        recorded(ledger, QUERY, "eve")


def test_the_last_click_counts_and_a_verdict_stands_before_it(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    judge(ledger, "a", VERDICTS["n"])
    with Judgements(ledger) as judgements, Clicks(ledger) as clicks:
        digest = judgements.enter([QUERY])[QUERY]
        for images_, likes in ((["a", "b", "c"], True), (["b"], False), (["c"], None)):
            clicks.record(digest, "person:ada", images_, likes)

    assert recorded(ledger, QUERY) == Feedback((), ("a", "b"), "ada")
