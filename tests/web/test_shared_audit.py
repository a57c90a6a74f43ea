"""An audit that two people share: one plan, no photo for both, one result, at two servers of one ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from eyespot.web import ServerSettings
from tests.web.conftest import at_this_machine
from tests.web.test_calibration import text_of
from tests.worlds import annotation as world

Q = {"query": "a heron"}


@pytest.fixture
def people(tmp_path: Path) -> Iterator[tuple[TestClient, TestClient]]:
    """Ada and Bo, each at a server of their own over one gallery of 60 pictures; Ada labelled the first ten."""
    settings = ServerSettings(world.gallery(tmp_path), cache=tmp_path / "cache")
    with at_this_machine(settings) as ada, at_this_machine(settings) as bo:
        ada.post("/name", data={"name": "Ada"})
        bo.post("/name", data={"name": "Bo"})
        ada.post("/annotate/queries", data={"text": "a heron"})
        first = ada.get("/annotate/photos", params={**Q, "count": 10}).json()["photos"]
        mark(ada, [one["image"] for one in first], "y")
        yield ada, bo


def mark(client: TestClient, images: list[str], verdict: str = "n") -> None:
    response = client.post("/annotate/marks", params=Q, json={"marks": dict.fromkeys(images, verdict)})
    assert response.status_code == 200, response.text


def held(client: TestClient) -> list[str]:
    """The photos of the audit that somebody was handed and has not marked."""
    payload = client.get("/annotate/photos", params={**Q, "what": "audit", "count": 500}).json()
    return [one["image"] for one in payload["photos"] if one["mark"] is None]


def stands(client: TestClient) -> Any:
    return client.get("/annotate/standing", params=Q).json()


def work(client: TestClient) -> list[str]:
    """Mark what is handed out until there is no more; gives the photos."""
    marked: list[str] = []
    while True:
        while images := held(client):
            mark(client, images[:4])  # page by page, so that both are at it
            marked += images[:4]
        if not client.post("/annotate/grow", params={**Q, "what": "audit"}).json()["new"]:
            return marked


def draw(client: TestClient, **more: float) -> int:
    return client.post("/annotate/audit", params={**Q, **more}).status_code


@pytest.mark.long
def test_two_people_finish_one_audit_and_no_photo_is_drawn_twice(people: tuple[TestClient, TestClient]) -> None:
    ada, bo = people
    assert draw(ada, size=45) == 201
    before = stands(bo)["joinable"]
    assert bo.post("/annotate/audit/join", params=Q).status_code == 200

    with ThreadPoolExecutor(2) as pool:
        hers, his = pool.map(work, people)

    assert before == {"people": ["Ada"], "size": 45, "done": 0} and stands(bo)["joinable"] is None
    assert len(hers) + len(his) == 45 == len({*hers, *his}) and hers and his
    audit = stands(ada)["audit"]
    assert audit == stands(bo)["audit"] and (audit["done"], audit["people"]) == (45, ["Ada", "Bo"])
    assert audit["left"]["high"] <= 5 and audit["together"] == 10


@pytest.mark.long
def test_what_both_found_counts_for_both(people: tuple[TestClient, TestClient]) -> None:
    ada, bo = people
    draw(ada, size=50)
    bo.post("/annotate/audit/join", params=Q)
    mark(bo, held(bo)[:3], "y")
    for client in people:
        work(client)

    both = [stands(client) for client in people]

    assert [standing["audit"]["together"] for standing in both] == [13, 13]
    assert [standing["found_at_least"] for standing in both] == [1.0, 1.0] and both[1]["relevant"] == 3


@pytest.mark.long
def test_nobody_draws_a_second_audit_beside_one_that_is_under_way(people: tuple[TestClient, TestClient]) -> None:
    ada, bo = people
    draw(ada, size=20)

    refused = bo.post("/annotate/audit", params=Q)

    assert refused.status_code == 422 and "20 photos of the audit are still to be labelled" in refused.json()["detail"]
    assert bo.get("/annotate/photos", params={**Q, "what": "audit"}).status_code == 404


@pytest.mark.long
def test_without_an_audit_there_is_nothing_to_join(people: tuple[TestClient, TestClient]) -> None:
    response = people[1].post("/annotate/audit/join", params=Q)

    assert response.status_code == 422 and "draw one" in response.json()["detail"]


@pytest.mark.long
def test_a_tenth_is_labelled_by_both_when_asked_for(people: tuple[TestClient, TestClient]) -> None:
    ada, bo = people
    draw(ada, size=40, twice=0.1)
    bo.post("/annotate/audit/join", params=Q)
    hers = work(ada)
    waiting = stands(ada)["audit"]
    his = work(bo)

    assert len(hers) + len(his) == 44 and len({*hers, *his}) == 40 and len({*hers} & {*his}) == 4
    assert waiting["left"] is None and waiting["done"] < 40
    assert stands(ada)["audit"]["done"] == 40 and stands(bo)["audit"]["left"] is not None


@pytest.mark.long
def test_who_is_left_alone_is_told_that_a_second_person_ends_the_audit(
    people: tuple[TestClient, TestClient], tmp_path: Path
) -> None:
    ada, bo = people
    draw(ada, size=40, twice=0.1)
    bo.post("/annotate/audit/join", params=Q)
    with closing(sqlite3.connect(next(tmp_path.rglob("ledger.sqlite")))) as ledger, ledger:
        ledger.execute("UPDATE audit_shares SET at = at - 1000")
    work(ada)
    audit, refused = stands(ada)["audit"], ada.post("/annotate/audit", params=Q)
    bo.post("/name", data={"name": "Cy"})
    bo.post("/annotate/audit/join", params=Q)
    work(bo)

    assert (audit["done"], audit["waiting"]) == (36, 4)
    assert refused.status_code == 422 and "wait for the label of a second person" in refused.json()["detail"]
    assert (stands(bo)["audit"]["done"], stands(bo)["audit"]["waiting"]) == (40, 0)


@pytest.mark.long
def test_who_is_left_alone_may_wait_no_longer_once_every_photo_has_a_label(
    people: tuple[TestClient, TestClient], tmp_path: Path
) -> None:
    ada, bo = people
    draw(ada, size=40, twice=0.1)
    bo.post("/annotate/audit/join", params=Q)
    early = ada.post("/annotate/audit/release", params=Q)
    with closing(sqlite3.connect(next(tmp_path.rglob("ledger.sqlite")))) as ledger, ledger:
        ledger.execute("UPDATE audit_shares SET at = at - 1000")
    work(ada)
    bo.post("/name", data={"name": "Cy"})
    strange = bo.post("/annotate/audit/release", params=Q)
    released = ada.post("/annotate/audit/release", params=Q).json()
    audit = stands(ada)["audit"]

    assert early.status_code == strange.status_code == 422
    assert released == {"released": 4} and (audit["done"], audit["waiting"]) == (40, 0) and audit["left"] is not None
    assert ada.post("/annotate/audit/release", params=Q).status_code == 422


@pytest.mark.long
def test_what_somebody_left_unlabelled_goes_to_the_other_after_a_while(
    people: tuple[TestClient, TestClient], tmp_path: Path
) -> None:
    ada, bo = people
    draw(ada, size=30)
    bo.post("/annotate/audit/join", params=Q)
    work(bo)
    assert stands(bo)["audit"]["done"] == 6  # Ada holds the first 24
    with closing(sqlite3.connect(next(tmp_path.rglob("ledger.sqlite")))) as ledger, ledger:
        ledger.execute("UPDATE audit_shares SET at = at - 1000")

    work(bo)

    assert stands(bo)["audit"]["done"] == 30 == stands(ada)["audit"]["done"]


@pytest.mark.long
def test_the_next_audit_leaves_out_what_either_has_labelled(people: tuple[TestClient, TestClient]) -> None:
    ada, bo = people
    draw(ada, size=20)
    bo.post("/annotate/audit/join", params=Q)
    seen = {*work(ada), *work(bo)}

    drawn = ada.post("/annotate/audit", params={**Q, "size": 10}).json()

    assert len(seen) == 20 and drawn == {"drawn": 10, "rest": 30}
    assert not seen.intersection(held(ada)) and stands(bo)["audit"]["size"] == 10


def test_the_page_offers_the_size_of_the_audit(people: tuple[TestClient, TestClient]) -> None:
    page = people[0].get("/annotate/label", params=Q, headers={"Accept": "text/html"}).text

    assert 'id="size" min="1" max="100000" value="300"' in page and 'id="twice"' in page
    assert "a tenth labelled by two" in text_of(people[0], "/annotate/label?query=a+heron")
    assert [draw(people[0], **wrong) for wrong in ({"size": 0}, {"twice": 2.0})] == [422, 422]


@pytest.mark.long
def test_the_page_of_queries_shows_an_audit_to_who_has_just_joined_it(people: tuple[TestClient, TestClient]) -> None:
    ada, bo = people
    draw(ada, size=45)
    mark(bo, [stretch_of(bo)[0]], "y")
    before = bo.get("/annotate/query", params=Q).text

    bo.post("/annotate/audit/join", params=Q)

    # The rows of both, and of all together
    assert (before.count("audit 0 of 45"), before.count("not audited")) == (2, 1)
    assert bo.get("/annotate/query", params=Q).text.count("audit 0 of 45") == 3


def stretch_of(client: TestClient) -> list[str]:
    return [one["image"] for one in client.get("/annotate/photos", params={**Q, "count": 1}).json()["photos"]]
