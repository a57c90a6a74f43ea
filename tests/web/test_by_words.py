"""The server searches by words, look, adapter and index like the command line, and says why a hit is there."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

import eyespot
from eyespot import rooms
from eyespot.gallery.view import Gallery
from eyespot.search.index_choice import Measured, building, store_index, stored_of
from eyespot.types import UsageError
from eyespot.web import ServerSettings, application, read_named
from tests.lazy_import import requires
from tests.web.conftest import PHOTOS, Ask, at_this_machine, make_gallery
from tests.wording import raises
from tests.worlds import draw, index_gallery
from tests.worlds.adapters import checkpoint
from tests.worlds.vectors import drawn, take


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


@pytest.fixture(scope="module")
def birds(gallery: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint for the gallery's space."""
    dim = eyespot.open(gallery).view.space.dim
    return checkpoint(tmp_path_factory.mktemp("quari") / "birds", dim, "starter")


@pytest.fixture(scope="module")
def adapted(settings: ServerSettings, birds: Path) -> Iterator[TestClient]:
    with at_this_machine(replace(settings, adapters=(("birds", str(birds)),))) as client:
        yield client


@pytest.mark.long
def test_an_adapted_search_gives_what_the_command_line_gives(adapted: TestClient, gallery: Path, birds: Path) -> None:
    payload = adapted.get("/v1/search", params={"q": "red stripes", "adapt": "birds", "limit": 20}).json()
    expected = eyespot.open(gallery).search("red stripes", k=20, adapt=birds).run
    assert [item["id"] for item in payload["items"]] == list(expected.image)
    assert (payload["exact"], "adapt=birds" in payload["link"]) == (True, True)


def test_an_adapted_search_reads_codes(settings: ServerSettings, birds: Path, tmp_path: Path) -> None:
    """Also those of shards that come while it runs; without them each search of a large gallery reads the vectors."""
    gallery = shutil.copytree(settings.gallery, tmp_path / "gallery")
    found = {"q": "red stripes", "adapt": "birds", "limit": "20"}
    served = replace(settings, gallery=gallery, cache=tmp_path / "cache", adapters=(("birds", str(birds)),))
    with at_this_machine(served) as client:
        before = client.get("/v1/search", params=found).json()["items"]
        index_gallery(gallery, codes=True)
        after = client.get("/v1/search", params=found).json()["items"]
        view = client.app.state.eyespot.snapshots.current().view  # type: ignore[attr-defined]

    assert [type(part.codes) for part in view.codes] == 3 * [np.memmap]
    assert after == before


@pytest.mark.parametrize("name", ["fishes", "{birds}", "../birds"])
def test_only_names_that_were_allowed_are_adapters(adapted: TestClient, birds: Path, name: str) -> None:
    answer = adapted.get("/v1/search", params={"q": "stripes", "adapt": name.format(birds=birds)})
    assert (answer.status_code, "birds" in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize(("dim", "encoder"), [(8, "starter"), (None, "openai/clip-vit-base-patch16")])
def test_another_space_is_refused(settings: ServerSettings, tmp_path: Path, dim: int | None, encoder: str) -> None:
    own = eyespot.open(settings.gallery).view.space.dim
    folder = checkpoint(tmp_path / "other", dim or own, encoder)
    with raises(UsageError):
        application(replace(settings, adapters=(("other", str(folder)),)))


def test_what_the_command_line_says_of_them_is_read() -> None:
    assert read_named("--adapt", ["birds = a=b"]) == (("birds", "a=b"),)
    for wrong in (["birds"], ["=a"], ["birds="], ["a=1", "a=2"], ["x" * 61 + "=a"]):
        with raises(UsageError):
            read_named("--adapt", wrong)


# -- `eyespot serve --index`: an index of `eyespot tune` searches, and every answer says what share it finds -----------


LOOK = {"q": "a heron at the water", "by": "look", "grouped": "false", "limit": "50"}


def store_pq(gallery: Path) -> None:
    """An index as `eyespot tune --recall 0.5` stores it, but of settings that no clock chose."""
    view = Gallery(gallery).view(Gallery(gallery).stem())
    settings = {"kind": "pq", "parts": 128, "probes": 1, "depth": 800, "promise": 0.5}
    with building(view) as place:
        rooms.load("indexes", "faiss", view.blocks, folder=place / "faiss", **settings)
        store_index(view, "faiss", stored_of(view, "faiss", settings, Measured(0.97, 50, 10, "drawn")), place / "faiss")


@pytest.mark.long
@requires("faiss")
def test_the_index_searches_and_the_answer_says_what_it_finds(tmp_path: Path) -> None:
    """Of thirty thousand vectors with an index of kind pq; few rows under a filter are searched exactly."""
    place = tmp_path / "gallery"
    take(place, drawn(30_000, 0))
    store_pq(place)
    with (
        at_this_machine(ServerSettings(place, cache=tmp_path / "a", index="pq")) as approximate,
        at_this_machine(ServerSettings(place, cache=tmp_path / "b")) as exact,
    ):
        queries = [LOOK | {"q": words} for words in ("a heron at the water", "a fish", "a red car", "snow", "two dogs")]
        pages = [approximate.get("/v1/search", params=params).json() for params in queries]
        at = [page["exact"] for page in pages].index(False)  # exact where the estimate of a query was too low
        answer, true = pages[at], exact.get("/v1/search", params=queries[at]).json()
        page = approximate.get("/", params={name: value for name, value in queries[at].items() if name != "limit"})
        share = re.search(r"about ([\d.]+) % of the nearest", page.text)
        some = [row["id"] for row in exact.get("/v1/items", params={"limit": 30}).json()["items"]]
        narrow = LOOK | {"where": f"id in ({', '.join(map(repr, some))})"}
        few, all_of_few = (client.get("/v1/search", params=narrow).json() for client in (approximate, exact))

    assert (true["exact"], true["recall"]) == (True, None)
    assert answer["exact"] is False and 0.4 < answer["recall"] <= 1
    assert share and abs(float(share[1]) - 100 * answer["recall"]) < 0.1
    assert len({item["id"] for item in answer["items"]} & {item["id"] for item in true["items"]}) >= 15
    assert few["exact"] and few["recall"] is None and few["items"] == all_of_few["items"]
    with raises(UsageError):
        application(ServerSettings(place, index="hnsw"))
