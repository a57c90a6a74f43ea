"""A gallery whose ledger cannot be written is searched all the same: what it has is read, and who judges is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from eyespot.web import Judging, ServerSettings
from tests.web.conftest import at_this_machine, copy_gallery

PHOTOS = 6
PLACES = (
    "/?q=a+fish",
    "/hits?q=a+fish&cursor={run}.1",
    "/spread?q=a+fish",
    "/?q=a+fish&rerank=quick",
    "/annotate",
    "/annotate/label?query=a+heron",
    "/annotate/set.zip",
)
CALLS = ("/v1/runs/{run}", "/v1/runs/{run}/calibration", "/v1/judgements", "/v1/runs/{run}/rerank?judge=quick")


def lock(gallery: Path) -> None:
    """As on a disk that is mounted for reading alone: SQLite gets no log to write to beside the ledger."""
    log = gallery / "ledger.sqlite-wal"
    log.unlink(missing_ok=True)
    log.mkdir()


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gallery with one verdict, on the first hit for a fish, and a mark; its ledger cannot be written any more."""
    gallery = copy_gallery(tmp_path_factory.mktemp("unwritable"), PHOTOS)
    with at_this_machine(ServerSettings(gallery)) as client:
        best = client.get("/v1/search", params={"q": "a fish"}).json()["items"][0]["id"]
        response = client.post("/v1/judgements", json={"q": "a fish", "item": best, "verdict": "yes", "rank": 1})
        assert response.status_code == 201
        client.post("/name", data={"name": "Ada"})
        client.post("/annotate/queries", data={"text": "a heron"})
        first = client.get("/annotate/photos", params={"query": "a heron"}).json()["photos"][0]["image"]
        assert client.post("/annotate/marks?query=a+heron", json={"marks": {first: "y"}}).json()["changed"] == 1
    lock(gallery)
    return gallery


@pytest.fixture(scope="module")
def client(judged: Path) -> Iterator[TestClient]:
    with at_this_machine(ServerSettings(judged, judging=Judging((("quick", "encoder:starter"),)))) as opened:
        yield opened


@pytest.mark.parametrize("place", [*PLACES, *CALLS])
def test_who_only_looks_is_served(client: TestClient, place: str) -> None:
    run = client.get("/v1/search", params={"q": "a fish"}).json()["run"]
    assert client.get(place.format(run=run), headers={"Accept": "text/html"}).status_code == 200


def test_verdicts_and_marks_that_it_has_are_seen_and_new_ones_refused(client: TestClient, judged: Path) -> None:
    run = client.get("/v1/search", params={"q": "a fish"}).json()["run"]
    items = client.get(f"/v1/runs/{run}").json()["items"]
    other = client.get("/v1/search", params={"q": "a hat"}).json()["run"]
    client.post("/name", data={"name": "Ada"})  # the verdicts are those of whoever has no name
    listed = client.get("/annotate/photos", params={"query": "a heron"}).json()["photos"]
    refused = [
        client.post("/v1/judgements", json={"q": "a hat", "item": items[1]["id"], "verdict": "no"}),
        client.post(f"/v1/runs/{other}/rerank", json={"judge": "quick"}),
        client.post("/annotate/marks?query=a+heron", json={"marks": {listed[1]["image"]: "n"}}),
    ]
    again = client.get("/annotate/photos", params={"query": "a heron"}).json()["photos"]

    assert [item["verdict"] for item in items] == ["yes", *[None] * (PHOTOS - 1)]
    assert [one["mark"] for one in again] == ["y", *[None] * (PHOTOS - 1)]
    for answer in refused:
        assert (answer.status_code, str(judged / "ledger.sqlite") in answer.json()["detail"]) == (500, True)


def test_what_is_no_ledger_is_told(tmp_path: Path) -> None:
    gallery = copy_gallery(tmp_path, PHOTOS)
    (gallery / "ledger.sqlite").write_bytes(b"no ledger at all" * 100)
    with at_this_machine(ServerSettings(gallery)) as client:
        answer = client.get("/v1/judgements")
    assert (answer.status_code, str(gallery / "ledger.sqlite") in answer.json()["detail"]) == (500, True)
