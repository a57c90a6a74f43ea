"""A shared list over the network: several people ask for photos at the same moment, and all of them get some."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from fastapi.testclient import TestClient

from eyespot.curate.annotate.annotation_store import AnnotationStore
from eyespot.curate.annotate.candidates import list_nearest
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.search.collection import Collection
from eyespot.web import ServerSettings
from tests.web.conftest import at_this_machine
from tests.worlds import annotation as world

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
    place = world.gallery(tmp_path, 160, 10)
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
