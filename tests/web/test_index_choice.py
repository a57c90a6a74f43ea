"""`eyespot serve --index`: an index of `eyespot tune` searches, and every answer says what share it finds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from eyespot.types import UsageError
from eyespot.web import ServerSettings, application
from tests.command import run_eyespot
from tests.web.conftest import at_this_machine
from tests.wording import raises
from tests.worlds.vectors import drawn, take

pytest.importorskip("faiss")
pytestmark = pytest.mark.long
LOOK = {"q": "a heron at the water", "by": "look", "ungrouped": "true", "limit": "50"}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty thousand vectors with an index of kind pq."""
    place = tmp_path_factory.mktemp("tuned") / "gallery"
    take(place, drawn(30_000, 0))
    done = run_eyespot("tune", "-g", place, "--kind", "pq", "--recall", 0.5)
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def approximate(tuned: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with at_this_machine(ServerSettings(tuned, cache=tmp_path_factory.mktemp("a"), index="pq")) as client:
        yield client


@pytest.fixture(scope="module")
def exact(tuned: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with at_this_machine(ServerSettings(tuned, cache=tmp_path_factory.mktemp("b"))) as client:
        yield client


def test_the_index_searches_and_the_answer_says_what_it_finds(approximate: TestClient, exact: TestClient) -> None:
    told, true = (client.get("/v1/search", params=LOOK).json() for client in (approximate, exact))
    page = approximate.get("/", params=LOOK).text
    share = re.search(r"about ([\d.]+) % of the nearest", page)
    assert (true["exact"], true["recall"]) == (True, None)
    assert share and abs(float(share[1]) - 100 * told["recall"]) < 0.1
    assert told["exact"] is False and 0.4 < told["recall"] <= 1
    both = {item["id"] for item in told["items"]} & {item["id"] for item in true["items"]}
    assert len(both) >= 25


def test_few_rows_under_a_filter_are_searched_exactly(approximate: TestClient, exact: TestClient) -> None:
    some = [row["id"] for row in exact.get("/v1/items", params={"limit": 30}).json()["items"]]
    narrow = LOOK | {"where": f"id in ({', '.join(map(repr, some))})"}
    told, true = (client.get("/v1/search", params=narrow).json() for client in (approximate, exact))
    assert told["exact"] and told["recall"] is None
    assert told["items"] == true["items"]


def test_an_index_that_is_not_there_is_refused_at_the_start(tuned: Path) -> None:
    with raises(UsageError):
        application(ServerSettings(tuned, index="hnsw"))
