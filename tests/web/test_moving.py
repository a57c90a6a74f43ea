"""A search that recorded verdicts and clicks move: on the page, in the API, for each person."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from eyespot.web import Access, Role, ServerSettings
from tests.web.conftest import at_this_machine, copy_gallery, from_afar
from tests.web.test_calibration import judged_to_the_end

Q = "stripes on green"


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    """A server of a gallery of one's own."""
    return ServerSettings(copy_gallery(tmp_path), cache=tmp_path / "cache", hosts=None)


@pytest.fixture
def opened(settings: ServerSettings) -> Iterator[TestClient]:
    """Whoever sits at the machine that serves."""
    with at_this_machine(settings) as client:
        yield client


def search(client: TestClient, **given: Any) -> Any:
    answer = client.get("/v1/search", params={"q": Q, "limit": 72} | given)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(page: Any) -> list[str]:
    return [item["id"] for item in page["items"]]


def judge(client: TestClient, item: str, verdict: str, by: str | None = None) -> None:
    body = {"q": Q, "item": item, "verdict": verdict} | ({"by": by} if by else {})
    assert client.post("/v1/judgements", json=body).status_code == 201


def test_verdicts_move_a_search_only_where_that_is_chosen(opened: TestClient) -> None:
    plain = search(opened)
    last = ids(plain)[-1]
    judge(opened, last, "yes")

    moved = search(opened, feedback="mine")

    assert ids(search(opened)) == ids(plain)
    assert ids(moved)[0] == last
    assert moved["moved"] == {"yes": 1, "no": 0, "missing": 0, "by": "visitor"} and moved["exact"] is True
    assert "moved" in [reason["code"] for reason in moved["items"][0]["why"]]
    assert search(opened)["moved"] is None
    assert opened.get("/v1/search", params={"q": "heron", "by": "words", "feedback": "mine"}).status_code == 422


def test_a_reader_moves_no_search_by_verdicts(settings: ServerSettings) -> None:
    access = (Access.by("reader-token-0123456789", "reader", Role.READER),)
    with from_afar(replace(settings, access=access), "reader-token-0123456789") as reader:
        answer = reader.get("/v1/search", params={"q": Q, "feedback": "everybody"})
    assert answer.status_code == 422


def test_clicks_are_kept_by_query_and_move_it_later_but_are_no_verdicts(opened: TestClient) -> None:
    first, *_, last = ids(search(opened))
    for item, like in ((last, True), (first, True), (first, None)):
        assert opened.post("/v1/clicks", json={"q": Q, "item": item, "like": like}).status_code == 200
    assert search(opened, feedback="mine")["moved"] == {"yes": 1, "no": 0, "missing": 0, "by": "visitor"}
    assert search(opened, q="waves", feedback="mine")["moved"] == {"yes": 0, "no": 0, "missing": 0, "by": "visitor"}
    assert opened.get("/v1/judgements").json()["judgements"] == []
    assert opened.post("/v1/clicks", json={"q": Q, "item": "gone", "like": True}).status_code == 404


def test_the_page_says_what_is_known_of_the_rest_and_leads_to_an_audit_of_it(opened: TestClient) -> None:
    opened.post("/name", data={"name": "ada", "next": "/"})
    for item, verdict in zip(ids(search(opened)), ("yes", "no", "yes"), strict=False):
        judge(opened, item, verdict)
    page = opened.get("/", params={"q": Q}).text
    audit = opened.post("/annotate/queries", data={"text": Q, "audit": "20"})
    stands = opened.get("/annotate/standing", params={"query": Q, "what": "audit"}).json()

    assert "2 yes of 3 looked at. 69 without a verdict." in re.sub("<[^>]+>", "", page)
    assert 'id="let-move"' in page and 'id="draw-audit"' in page
    assert audit.url.params["what"] == "audit" and stands["audit"]["size"] == 20
    assert (stands["labelled"], stands["relevant"]) == (3, 2)  # the same verdicts, in both places
    weighed = opened.get("/", params={"q": "2:stripes + green"}).text  # whose verdicts the annotators' pages have not
    assert 'id="draw-audit"' not in weighed


def test_a_ranking_that_verdicts_moved_is_measured_by_none(opened: TestClient) -> None:
    judged_to_the_end(opened, Q, relevant=20)
    assert search(opened)["relevant"] is not None
    assert search(opened, feedback="mine")["relevant"] is None


def test_why_names_the_verdicts_of_oneself_or_everybody_that_moved_the_ranking(opened: TestClient) -> None:
    first, *_, last = ids(search(opened))
    judge(opened, last, "yes")
    judge(opened, first, "no", "ada")

    mine, everybody, plain = (
        opened.get(f"/v1/why/{last}", params={"q": Q} | given).json()["moved"]
        for given in ({"feedback": "mine"}, {"feedback": "everybody"}, {})
    )
    page = opened.get(f"/why/{last}", params={"q": Q, "feedback": "mine"})

    assert [re.findall(r"[01] (?:yes|no)|2 people", one["sentence"]) for one in (*mine, *everybody)] == [
        ["1 yes", "0 no"],
        ["1 yes", "1 no", "2 people"],
    ]
    assert plain == [] and "1 yes and 0 no" in page.text
    ada = search(opened, feedback="person:ada", like=[last])["moved"]
    assert ada == {"yes": 1, "no": 1, "missing": 0, "by": "ada"}
    assert "ada" in opened.get("/v1/search", params={"q": Q, "feedback": "eve"}).json()["detail"]


def test_every_new_verdict_and_click_counts_at_once(opened: TestClient) -> None:
    first, second, *_, last = ids(search(opened))

    def recorded() -> str:
        moved = search(opened, feedback="mine")["moved"]
        return f"{moved['yes']} yes and {moved['no']} no"

    counts = [recorded()]
    judge(opened, last, "yes")
    counts.append(recorded())
    for like in (False, True, None):
        opened.post("/v1/clicks", json={"q": Q, "item": first, "like": like})
        counts.append(recorded())
    judge(opened, second, "no")
    counts.append(recorded())

    assert counts == [
        "0 yes and 0 no", "1 yes and 0 no", "1 yes and 1 no", "2 yes and 0 no", "1 yes and 0 no", "1 yes and 1 no"
    ]  # fmt: skip
