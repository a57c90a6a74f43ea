"""An audit that two people share: one plan, no photo for both, one result, at two servers of one ledger; and a list."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from fastapi.testclient import TestClient

from eyespot.curate.annotate.annotation_store import AnnotationStore
from eyespot.curate.annotate.candidates import list_nearest
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.search.collection import Collection
from eyespot.web import ServerSettings
from tests.made_once import made_once
from tests.web.conftest import at_this_machine
from tests.worlds import annotation as world

Q = {"query": "a heron"}


@pytest.fixture
def people(tmp_path: Path) -> Iterator[tuple[TestClient, TestClient]]:
    """Ada and Bo, each at a server of their own over one gallery of 60 pictures; Ada labelled the first ten."""
    made = made_once("web-audit", world.gallery)
    settings = ServerSettings(Path(shutil.copytree(made / "gallery", tmp_path / "gallery")), cache=tmp_path / "cache")
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


def join(client: TestClient) -> int:
    return client.post("/annotate/audit/join", params=Q).status_code


@pytest.mark.long
def test_two_people_finish_one_audit_and_no_photo_is_drawn_twice(people: tuple[TestClient, TestClient]) -> None:
    """What either finds counts for both, and their next audit leaves out what either has labelled."""
    ada, bo = people
    wrong = [join(bo), draw(ada, size=0)]
    assert draw(ada, size=45) == 201
    before = stands(bo)["joinable"]
    wrong.append(draw(bo))
    assert join(bo) == 200
    mark(bo, held(bo)[:3], "y")

    with ThreadPoolExecutor(2) as pool:
        hers, his = pool.map(work, people)

    assert wrong == [422] * 3
    assert before == {"people": ["Ada"], "size": 45, "done": 0} and stands(bo)["joinable"] is None
    assert len(hers) + len(his) == 42 == len({*hers, *his}) and hers and his
    both = [stands(client) for client in people]
    audit = both[0]["audit"]
    assert audit == both[1]["audit"] and (audit["done"], audit["people"]) == (45, ["Ada", "Bo"])
    assert audit["together"] == 13 and audit["left"]["high"] <= 5
    assert [one["found_at_least"] for one in both] == [pytest.approx(both[0]["found_at_least"])] * 2
    assert (both[1]["relevant"], draw(ada, size=5)) == (3, 201)
    assert not {*hers, *his}.intersection(held(ada)) and stands(bo)["audit"]["size"] == 5


# -- a list that several share ---------------------------------------------------------------------------------------

PEOPLE = 4
TEAM = {"query": "1", "what": "team"}


def person(client: TestClient, name: str) -> TestClient:
    """Another browser at the same server, of somebody who has said their name."""
    opened = TestClient(client.app, base_url="http://127.0.0.1", client=("127.0.0.1", 4000))
    opened.post("/name", data={"name": name})
    return opened


@pytest.mark.long
def test_all_who_come_to_the_end_of_a_list_at_once_get_photos_of_what_it_grows_by(tmp_path: Path) -> None:
    """The list holds 24 photos, which the first of them has; it grows once, for all who wait for it."""
    made = made_once("web-team-160", lambda folder: world.gallery(folder, 160, 10))
    place = Path(shutil.copytree(made / "gallery", tmp_path / "gallery"))
    with AnnotationStore(place / "ledger.sqlite") as store:
        store.take_in([AnnotationQuery("1", world.WORDS, {})])
        list_nearest(store, "1", Collection(place), 24)
    with at_this_machine(ServerSettings(place, cache=None)) as client:
        first, *others = [person(client, f"person {number}") for number in range(PEOPLE)]
        first.post("/annotate/grow", params=TEAM)
        gate = Barrier(len(others))

        def ask(who: TestClient) -> int:
            gate.wait()
            return int(who.post("/annotate/grow", params=TEAM).json()["new"])

        with ThreadPoolExecutor(len(others)) as pool:
            handed = list(pool.map(ask, others))
        shown = [len(one.get("/annotate/photos", params=TEAM).json()["photos"]) for one in others]

    assert shown == handed and 0 not in handed
