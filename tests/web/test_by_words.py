"""The server searches by words and look like the command line, says why a hit is there, and pages through it."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

import eyespot
from eyespot.web import ServerSettings
from tests.web.conftest import PHOTOS, Ask, at_this_machine, make_gallery
from tests.worlds import draw, index_gallery


def test_words_alone_end_where_no_label_holds_them(client: TestClient, search: Ask) -> None:
    found = search(q="heron", by="words", limit=10)
    assert (found["by"], found["total"], len(found["items"])) == ("words", PHOTOS // 3, 10)
    rest = search(q="heron", by="words", limit=500, cursor=found["next"])
    assert len(rest["items"]) == PHOTOS // 3 - 10 and rest["next"] is None
    assert client.get("/v1/search", params={"q": "zyzzyva", "by": "words"}).status_code == 404


@pytest.mark.long
def test_the_count_of_photos_with_words_is_that_of_their_groups(tmp_path: Path) -> None:
    """Of six herons three have a copy; what is said not to be it takes its copy along."""
    for seed in range(16):
        draw(tmp_path / "photos" / f"{'heron' if seed < 6 else 'other'} {seed}.png", seed)
    for seed in range(3):
        with Image.open(tmp_path / "photos" / f"heron {seed}.png") as photo:
            photo.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "photos" / f"heron {seed} turned.png")
    index_gallery(tmp_path / "gallery", tmp_path / "photos")
    with at_this_machine(ServerSettings(tmp_path / "gallery", hosts=None, cache=tmp_path / "cache")) as client:
        ask = {"q": "heron", "by": "words", "limit": 4}
        first = client.get("/v1/search", params=ask).json()
        rest = client.get("/v1/search", params=ask | {"cursor": first["next"]}).json()
        every = client.get("/v1/search", params=ask | {"grouped": "false"}).json()
        best = next(item for item in first["items"] if item["others"])
        less = client.get("/v1/search", params={"q": "heron", "unlike": best["id"], "limit": 50}).json()

    assert sum(item["others"] for item in (*first["items"], *rest["items"])) == 3 and every["total"] == 9
    assert first["total"] == len(first["items"]) + len(rest["items"]) == 6 and rest["next"] is None
    stems = [Path(item["path"]).stem.removesuffix(" turned") for item in less["items"]]
    assert less["total"] == 15 and Path(best["path"]).stem.removesuffix(" turned") not in stems


def test_what_is_like_a_photo_is_found_by_look(client: TestClient, search: Ask) -> None:
    item = search(q="heron", by="words")["items"][0]["id"]
    refused = client.get("/v1/search", params={"q": "heron", "by": "words", "like": item})
    unknown = client.get("/v1/search", params={"q": "heron", "by": "smell"})
    assert refused.status_code == 422 == unknown.status_code and "search by look" in refused.json()["detail"]

    for place in ("/", f"/photo/{item}"):
        page = client.get(place, params={"q": "heron", "by": "words"}, headers={"Accept": "text/html"}).text
        links = [html.unescape(link) for link in re.findall(r'href="(/\?[^"]*\blike=[^"]*)"', page)]
        assert links
        for link in links[:3]:
            answer = client.get(link, headers={"Accept": "text/html"})
            assert answer.status_code == 200 and 'data-act="like"' in answer.text


@pytest.mark.parametrize("by", ["look", "words", "both"])
def test_the_order_is_that_of_the_command_line(search: Ask, gallery: Path, by: str) -> None:
    found = search(q="heron 12", by=by, limit=30)
    expected = eyespot.open(gallery).search("heron 12", k=30, by=by).run
    assert [item["id"] for item in found["items"]] == list(expected.image)
    np.testing.assert_allclose([item["score"] for item in found["items"]], expected.score, atol=1e-6)
    assert found["exact"] is True and ("why" in found["items"][0]) == (by != "look")


def test_the_page_offers_the_ways_and_shows_why(client: TestClient) -> None:
    page = client.get("/", params={"q": "heron", "by": "words"}, headers={"Accept": "text/html"}).text
    assert '<option value="words" selected>' in page and "label kind" in page
    assert "by labels</span>" in page


@pytest.mark.long
def test_labels_that_change_while_it_serves_are_those_of_the_next_search(tmp_path: Path) -> None:
    """The same hits, scores, reasons and counts as of a server that starts afterwards, also for words at hand."""
    gallery, table = make_gallery(tmp_path, 9), tmp_path / "photos" / "metadata.csv"
    asks = [{"q": words, "by": by, "limit": 9} for words in ("heron", "heron - egret") for by in ("words", "both")]

    def answers(client: TestClient) -> list[Any]:
        found = [client.get("/v1/search", params=ask).json() for ask in asks]
        return [[page["items"], page["total"], page["notes"]] for page in found]

    settings = ServerSettings(gallery, hosts=None, cache=tmp_path / "cache")
    with at_this_machine(settings) as client:
        before = answers(client)
        assert answers(client) == before
        table.write_text(table.read_text().replace("heron", "x").replace("egret", "heron").replace("x", "egret"))
        index_gallery(gallery)
        after = answers(client)
    with at_this_machine(settings) as started_later:
        assert answers(started_later) == after != before
