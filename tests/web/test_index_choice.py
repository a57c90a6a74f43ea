"""`eyespot serve --index`: an index of `eyespot tune` searches, and every answer says what share it finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eyespot import rooms
from eyespot.gallery.view import Gallery
from eyespot.search.index_choice import Measured, building, store_index, stored_of
from eyespot.types import UsageError
from eyespot.web import ServerSettings, application
from tests.web.conftest import at_this_machine
from tests.wording import raises
from tests.worlds.vectors import drawn, take

pytest.importorskip("faiss")
pytestmark = pytest.mark.long
LOOK = {"q": "a heron at the water", "by": "look", "grouped": "false", "limit": "50"}


def store_pq(gallery: Path) -> None:
    """An index as `eyespot tune --recall 0.5` stores it, but of settings that no clock chose."""
    view = Gallery(gallery).view(Gallery(gallery).stem())
    settings = {"kind": "pq", "parts": 128, "probes": 1, "depth": 800, "promise": 0.5}
    with building(view) as place:
        rooms.load("indexes", "faiss", view.blocks, folder=place / "faiss", **settings)
        store_index(view, "faiss", stored_of(view, "faiss", settings, Measured(0.97, 50, 10, "drawn")), place / "faiss")


def test_the_index_searches_and_the_answer_says_what_it_finds(tmp_path: Path) -> None:
    """Of thirty thousand vectors with an index of kind pq; few rows under a filter are searched exactly."""
    place = tmp_path / "gallery"
    take(place, drawn(30_000, 0))
    store_pq(place)
    with (
        at_this_machine(ServerSettings(place, cache=tmp_path / "a", index="pq")) as approximate,
        at_this_machine(ServerSettings(place, cache=tmp_path / "b")) as exact,
    ):
        asked = [LOOK | {"q": words} for words in ("a heron at the water", "a fish", "a red car", "snow", "two dogs")]
        pages = [approximate.get("/v1/search", params=params).json() for params in asked]
        at = [page["exact"] for page in pages].index(False)  # exact where the estimate of a query was too low
        told, true = pages[at], exact.get("/v1/search", params=asked[at]).json()
        share = re.search(r"about ([\d.]+) % of the nearest", approximate.get("/", params=asked[at]).text)
        some = [row["id"] for row in exact.get("/v1/items", params={"limit": 30}).json()["items"]]
        narrow = LOOK | {"where": f"id in ({', '.join(map(repr, some))})"}
        few, all_of_few = (client.get("/v1/search", params=narrow).json() for client in (approximate, exact))

    assert (true["exact"], true["recall"]) == (True, None)
    assert told["exact"] is False and 0.4 < told["recall"] <= 1
    assert share and abs(float(share[1]) - 100 * told["recall"]) < 0.1
    assert len({item["id"] for item in told["items"]} & {item["id"] for item in true["items"]}) >= 15
    assert few["exact"] and few["recall"] is None and few["items"] == all_of_few["items"]
    with raises(UsageError):
        application(ServerSettings(place, index="hnsw"))
