"""A result by verdict: all, yes, no, doubt, unjudged, by one's own verdicts or by everybody's."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from eyespot import sample
from eyespot.web import Judging, Role, ServerSettings
from tests.web.conftest import BO, PHOTOS, TOKENS, at_this_machine, from_afar
from tests.worlds import index_gallery

TABS = ("yes", "no", "doubt", "unjudged")


@pytest.fixture(scope="module")
def world(world: ServerSettings) -> ServerSettings:
    return replace(world, judging=Judging((("quick", "encoder:starter"),)))


def found(client: TestClient, **given: Any) -> list[dict[str, Any]]:
    answer = client.get("/v1/search", params={"limit": 100, **given})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def say(client: TestClient, words: str, item: dict[str, Any], verdict: str) -> None:
    body = {"q": words, "item": item["id"], "verdict": verdict, "rank": item["rank"]}
    assert client.post("/v1/judgements", json=body).status_code == 201


def counts(client: TestClient, **given: Any) -> dict[str, int]:
    page = client.get("/", params=given).text
    return {tab: int(count) for tab, count in re.findall(r'data-tab="(\w+)".*?data-count="(\d+)"', page)}


def test_each_tab_has_the_photos_of_its_verdict_in_the_order_of_the_search(here: TestClient) -> None:
    every = found(here, q="stripes")
    marks = {4: "yes", 1: "yes", 2: "no", 60: "doubt", 0: "no"}
    for at, verdict in marks.items():
        say(here, "stripes", every[at], verdict)
    tabs = {tab: found(here, q="stripes", verdict=tab) for tab in TABS}
    ids = {tab: [one["id"] for one in items] for tab, items in tabs.items()}

    assert ids["yes"] == [every[1]["id"], every[4]["id"]]
    assert (ids["no"], ids["doubt"]) == ([every[0]["id"], every[2]["id"]], [every[60]["id"]])
    assert ids["unjudged"] == [one["id"] for at, one in enumerate(every) if at not in marks]
    assert [one["first_rank"] for one in tabs["unjudged"]] == [at for at in range(1, PHOTOS + 1) if at - 1 not in marks]
    assert counts(here, q="stripes") == {"all": PHOTOS, "yes": 2, "no": 2, "doubt": 1, "unjudged": PHOTOS - 5}
    page = here.get("/", params={"q": "stripes", "verdict": "unjudged"}).text  # whose verdicts are at these ranks
    assert re.findall(r'data-id="([^"]+)" data-rank="(\d+)"', page)[0] == (every[3]["id"], "4")


def test_a_tab_that_is_paged_through_stays_as_it_was(here: TestClient) -> None:
    every = found(here, q="discs")
    first = here.get("/v1/search", params={"q": "discs", "verdict": "unjudged", "limit": 30}).json()
    for one in first["items"]:
        say(here, "discs", one, "no")
    following = here.get("/v1/search", params={"q": "discs", "cursor": first["next"], "limit": 100}).json()

    seen = [one["id"] for one in first["items"] + following["items"]]
    assert seen == [one["id"] for one in every]
    assert len(found(here, q="discs", verdict="unjudged")) == PHOTOS - 30


@pytest.mark.long
def test_verdicts_are_ones_own_or_everybodys(world: ServerSettings) -> None:
    with from_afar(world, TOKENS[Role.ANNOTATOR]) as ann, from_afar(world, BO) as bo:
        every = found(ann, q="a red disc")
        for who, at, verdict in ((ann, 0, "yes"), (bo, 0, "no"), (ann, 1, "yes"), (bo, 1, "yes"), (bo, 2, "yes")):
            say(who, "a red disc", every[at], verdict)
        mine = counts(ann, q="a red disc")
        ours = counts(ann, q="a red disc", whose="everybody")
        shown = found(ann, q="a red disc", whose="everybody", verdict="yes")

    assert (mine["yes"], mine["no"], ours["yes"], ours["no"], ours["doubt"]) == (2, 0, 2, 0, 1)
    assert [one["id"] for one in shown] == [every[1]["id"], every[2]["id"]]


def test_tabs_are_of_what_a_filter_or_a_judge_leaves(here: TestClient) -> None:
    every = found(here, q="green stripes")
    for at in range(12):
        say(here, "green stripes", every[at], "yes" if at % 2 else "no")
    herons = [one for one in every if one["kind"] == "heron"]
    shown = counts(here, q="green stripes", label="kind=heron")

    wanted = {one["id"] for at, one in enumerate(every[:12]) if at % 2 and one["kind"] == "heron"}
    assert {one["id"] for one in found(here, q="green stripes", label="kind=heron", verdict="yes")} == wanted
    assert shown["all"] == len(herons) == shown["yes"] + shown["no"] + shown["unjudged"]
    reranked = found(here, q="green stripes", rerank="quick", verdict="unjudged")
    order = [one["id"] for one in found(here, q="green stripes", rerank="quick")]
    assert [one["id"] for one in reranked] == [id for id in order if id not in {one["id"] for one in every[:12]}]


def test_an_empty_tab_is_a_page_with_all_tabs_and_readers_have_none(here: TestClient, world: ServerSettings) -> None:
    page = here.get("/", params={"q": "nobody judged this", "verdict": "doubt"})
    assert page.status_code == 200 and page.text.count("data-tab=") == 5
    with from_afar(world, TOKENS[Role.READER]) as reader:
        assert "data-tab" not in reader.get("/", params={"q": "stripes"}).text
        assert reader.get("/v1/search", params={"q": "stripes", "verdict": "yes"}).status_code == 422


def test_a_search_within_a_list_finds_its_photos_alone(here: TestClient) -> None:
    every = found(here, q="stripes")
    ids = [every[at]["id"] for at in (30, 3, 12)]
    payload = here.post("/v1/lists", json={"name": "Three", "items": ids}).json()
    by_name = found(here, q="stripes", list="three")

    assert [one["id"] for one in by_name] == [ids[1], ids[2], ids[0]]
    assert {one["id"] for one in here.get("/v1/items", params={"list": payload["list"]}).json()["items"]} == set(ids)
    here.patch(f"/v1/lists/{payload['list']}", json={"remove": [ids[0]]})
    assert len(found(here, q="stripes", list="three")) == 2
    assert here.get("/v1/search", params={"q": "stripes", "list": "no such"}).status_code == 404
    assert here.get("/", params={"list": "three"}).text.count('<li class="tile') == 2


@pytest.mark.long
def test_a_judged_tile_takes_its_copies_out_of_the_unjudged(tmp_path: Path, settings: ServerSettings) -> None:
    """Also where the result ends, as by words, and where a copy that is folded away was judged."""
    (tmp_path / "photos").mkdir()
    rows = ["file_name,title"]
    for place in sorted(sample.photos().glob("categorization__fish*.jpg"))[:6]:
        shutil.copy(place, tmp_path / "photos")
        with Image.open(place) as photo:
            photo.resize((photo.width // 2, photo.height // 2)).save(tmp_path / "photos" / f"small-{place.name}")
        rows += [f"{place.name},trout", f"small-{place.name},trout"]
    (tmp_path / "photos" / "metadata.csv").write_text("\n".join(rows) + "\n")
    index_gallery(tmp_path / "gallery", tmp_path / "photos")
    ways: list[dict[str, Any]] = [{"q": "fish", "by": "look"}, {"q": "trout", "by": "words"}]
    with at_this_machine(replace(settings, gallery=tmp_path / "gallery", cache=None)) as here:
        for way in ways:
            tiles, every = found(here, **way), found(here, **way, grouped="false")
            assert (len(tiles), len(every)) == (6, 12)
            twin = next(one for one in every if one["path"].endswith(name_of(tiles[0])) and one["id"] != tiles[0]["id"])
            say(here, way["q"], twin, "yes")
            shown = [one["id"] for one in found(here, **way, verdict="yes")]
            left = counts(here, **way)
            say(here, way["q"], tiles[0], "yes")

            assert shown == [twin["id"]] and left == {"all": 6, "yes": 1, "no": 0, "doubt": 0, "unjudged": 5}
            assert [one["id"] for one in found(here, **way, verdict="unjudged")] == [one["id"] for one in tiles[1:]]
            assert {one["id"] for one in found(here, **way, verdict="yes")} == {tiles[0]["id"], twin["id"]}


def name_of(item: dict[str, Any]) -> str:
    return str(item["path"]).rpartition("/")[2].removeprefix("small-")
