"""Two rankings of one query: encoders, ways to search, before and after a judge; what moved, and which is better."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as trying
from hypothesis import strategies as st

from eyespot.judges.person import VERDICTS
from eyespot.ledger.judgements import PERSON, WITHDRAWN, Judgements
from eyespot.types import Judgement, Query, Term, Verdict
from eyespot.web import Access, Judging, Role, ServerSettings
from eyespot.web._judging import PROMPT
from eyespot.web.sides import TwoRankings, judged_queries
from tests.examples import examples
from tests.made_once import made_once
from tests.web.conftest import TOKENS, at_this_machine, copy_gallery
from tests.worlds import index_gallery

PHOTOS = 18


def make(place: Path) -> None:
    """Photos in the spaces of two encoders."""
    gallery = copy_gallery(place, PHOTOS)
    index_gallery(gallery, place / "photos", encoders=["crops:5:starter"])


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> ServerSettings:
    folder = tmp_path_factory.mktemp("sides")
    made = made_once("sides", make)
    shutil.copytree(made / "gallery", folder / "gallery")
    access = tuple(Access.by(token, role.name.lower(), role) for role, token in TOKENS.items())
    judging = Judging(judges=(("quick", "encoder:starter"),))
    return ServerSettings(folder / "gallery", access=access, hosts=None, cache=folder / "cache", judging=judging)


@pytest.fixture(scope="module")
def client(settings: ServerSettings) -> Iterator[Any]:
    with at_this_machine(settings) as opened:
        yield opened


# -- numbers ----------------------------------------------------------------------------------------------------


def test_overlap_correlation_and_changes_can_be_counted_by_hand() -> None:
    two = TwoRankings("abcd", "badx")
    assert (two.overlap(1), two.overlap(2), two.overlap(4)) == (0, 1, 0.75)
    assert two.shared == ["a", "b", "d"] and two.tau == pytest.approx(1 / 3)  # of three pairs one is turned
    assert [two.change(id) for id in "abcdx"] == ["▼ 1", "▲ 1", "only left", "▲ 1", "only right"]
    assert TwoRankings("ab", "ab").tau == 1 and TwoRankings("ab", "ba").tau == -1
    assert TwoRankings("a", "b").tau is None and TwoRankings("a", "b").overlap(10) == 0
    assert TwoRankings("", "").overlap(10) == 0


@pytest.mark.long
def test_the_numbers_are_those_of_two_searches(client: Any) -> None:
    answer = client.get("/v1/sides", params={"q": "heron", "left_by": "look", "right_by": "both"}).json()
    searched = [
        [one["id"] for one in client.get("/v1/search", params={"q": "heron", "by": by}).json()["items"]]
        for by in ("look", "both")
    ]

    ranks = {one["id"]: (one["left"], one["right"]) for one in answer["items"]}
    assert ranks == {id: (searched[0].index(id) + 1, searched[1].index(id) + 1) for id in searched[0]}
    assert answer["overlap"]["50"] == 1 and -1 <= answer["tau"] < 1
    encoders = client.get("/v1/sides", params={"q": "stripes"}).json()
    assert (encoders["left"]["name"], encoders["right"]["name"]) == ("starter", "crops:5:starter")


# -- the page ---------------------------------------------------------------------------------------------------


def test_the_page_shows_both_with_what_moved_and_the_command(client: Any) -> None:
    page = client.get("/sides", params={"q": "heron", "left_by": "look", "right_by": "both"}).text
    judged = client.get("/sides", params={"q": "a fish", "rerank": "quick"}).text
    assert "overlap@10" in page and "▲" in page and "▼" in page and "eyespot compare" in page
    assert "order of quick" in judged
    assert page.count('<option value="both" selected>') == page.count('<option value="look" selected>') == 1
    assert 'href="/sides?q=heron' in client.get("/?q=heron").text


@pytest.mark.parametrize(
    ("params", "code", "message"),
    [
        ({"q": "a", "left_encoder": "no"}, 422, "no"),
        ({"q": "a", "right_adapt": "no"}, 422, "no adapter"),
        ({"q": "a", "right_rerank": "no"}, 422, "no judge"),
        ({"q": "a", "left_by": "<b>"}, 422, ""),
        ({"q": "red stripes", "left_by": "look", "right_by": "words"}, 404, ""),  # no label holds these words
        ({}, 422, ""),
    ],
)
def test_what_is_not_there_is_one_sentence(client: Any, params: dict[str, str], code: int, message: str) -> None:
    answer = client.get("/v1/sides", params=params)
    assert (answer.status_code, message in answer.text) == (code, True)


WORDS = ("heron", "egret", "gull")
SAID = st.tuples(
    st.sampled_from(WORDS), st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from((0, 1, 2, "doubt", None))
)


@trying(max_examples=examples(40), deadline=None)
@given(st.lists(SAID, max_size=14))
def test_queries_to_measure_are_counted_as_they_are_read(rows: list[tuple[str, str, str, int | str | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder, Judgements(Path(folder) / "judgements.sqlite") as ledger:
        names = ledger.enter([Query(word, (Term(1.0, word),)) for word in WORDS])
        digests = {query.id: digest for query, digest in names.items()}
        for at, (word, person, image, grade) in enumerate(rows):
            doubt = grade == "doubt"
            verdict = (
                None if grade is None else Verdict(None, 0 if doubt else int(grade), "doubt" if doubt else "", None)
            )
            failure = WITHDRAWN if grade is None else ""
            one = Judgement(digests[word], image, f"person:{person}", PROMPT, verdict, failure, at=float(at))
            ledger.record([one, one._replace(judge="model", at=at + 0.5)])
            if at % 3 == 0:  # what was counted once is not taken for what came later
                assert ledger.measurable(PROMPT) == len(judged_queries(ledger))

        assert ledger.measurable(PROMPT) == len(judged_queries(ledger))


@pytest.mark.long
def test_verdicts_are_marked_and_measure_both_sides(settings: ServerSettings, tmp_path: Path) -> None:
    shutil.copytree(settings.gallery, tmp_path / "gallery")
    with at_this_machine(replace(settings, gallery=tmp_path / "gallery", cache=tmp_path / "cache")) as client:
        for q in ("heron", "egret"):
            hits = client.get("/v1/search", params={"q": q, "by": "both"}).json()["items"]
            for at, item in enumerate(hits[:6]):
                body = {"q": q, "item": item["id"], "verdict": "yes" if at < 3 else "no"}
                assert client.post("/v1/judgements", json=body).status_code == 201

        params = {"q": "heron", "left_by": "look", "right_by": "both"}
        page = client.get("/sides", params=params).text
        measured = client.get("/sides", params={**params, "measure": "true"}).text
        reader = {"Authorization": f"Bearer {TOKENS[Role.READER]}"}
        seen = client.get("/sides", params={**params, "measure": "true"}, headers=reader).text

    assert "✓ yes" in page and "✕ no" in page and "measure=true" in page
    assert "verdicts on 2 queries" in measured and "<td>AP</td>" in measured
    # The right side is the ranking that was judged from its top: all three relevant photos before the others
    assert '<td class="number">1.000</td>' in measured
    assert "<td>AP</td>" not in seen and "✓ yes" not in seen  # who may not judge


def test_queries_count_the_verdicts_of_most_and_a_withdrawal_is_ones_own(tmp_path: Path) -> None:
    query = Query("q", (Term(1.0, "a heron"),))
    with Judgements(tmp_path / "ledger.sqlite") as ledger:
        digest = ledger.enter([query])[query]

        def say(who: str, image: str, vote: str | None, at: float, prompt: str = PROMPT) -> None:
            verdict = None if vote is None else VERDICTS[vote]
            failure = "" if vote else WITHDRAWN
            ledger.record([Judgement(digest, image, f"{PERSON}{who}", prompt, verdict, failure, at=at)])

        for at, who in enumerate(("ann", "bo", "cy")):
            say(who, "good", "y", at)
            say(who, "bad", "n", at)
        say("dee", "good", "n", 5)  # the last to speak, and one of four
        say("dee", "bad", "y", 5)
        say("dee", "bad", None, 6)
        say("ann", "good", "n", 7, "another question")
        found = [its for _, its in judged_queries(ledger)]

    assert found == [{"good": 1, "bad": 0}]
