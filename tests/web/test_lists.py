"""Named lists over HTTP: who may make, change, show and delete them, and what they hold."""

from __future__ import annotations

import io
import re
import shutil
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from eyespot import sample
from eyespot.judges.person import VERDICTS
from eyespot.types import Judgement
from eyespot.web import Judging, Role, ServerSettings
from eyespot.web._judging import combined, majority
from eyespot.web._state import AppState
from eyespot.web.found.derived import verdict_of
from eyespot.web.lists.api import params_of
from tests.web.conftest import BO, PHOTOS, TOKENS, at_this_machine, from_afar
from tests.worlds import index_gallery


@pytest.fixture(scope="module")
def world(world: ServerSettings) -> ServerSettings:
    """With a judge that needs no network."""
    return replace(world, judging=Judging((("quick", "encoder:starter"),)))


@pytest.fixture(scope="module")
def ids(here: TestClient) -> list[str]:
    return [one["id"] for one in here.get("/v1/items", params={"limit": 20}).json()["items"]]


def made(client: TestClient, name: str, **body: Any) -> Any:
    answer = client.post("/v1/lists", json={"name": name, **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_selection_becomes_a_list(here: TestClient, ids: list[str]) -> None:
    payload = made(here, "selection", items=[ids[2], ids[0], "0" * 32], query="?q=a+heron&label=kind%3Dheron")
    shown = here.get(f"/v1/lists/{payload['list']}").json()
    assert (payload["photos"], payload["unknown"], payload["queries"][0]["words"]) == (2, ["0" * 32], "a heron")
    assert [one["id"] for one in shown["items"]] == [ids[2], ids[0]] and "label=kind" in shown["queries"][0]["link"]


def test_yes_verdicts_become_a_list_with_everybodys_words(world: ServerSettings, ids: list[str]) -> None:
    with from_afar(world, TOKENS[Role.ANNOTATOR]) as ann, from_afar(world, BO) as bo:
        for client, item, verdict in ((ann, 0, "yes"), (ann, 1, "no"), (ann, 2, "yes"), (bo, 2, "no"), (bo, 3, "yes")):
            body = {"q": "a list of yes", "item": ids[item], "verdict": verdict, "rank": 10 - item}
            assert client.post("/v1/judgements", json=body).status_code == 201
        mine = made(ann, "mine", query="q=a+list+of+yes", verdict="yes")
        ours = made(ann, "ours", query="q=a+list+of+yes", verdict="yes", everybody=True)
        shown = [ann.get(f"/v1/lists/{one['list']}").json()["items"] for one in (mine, ours)]

    assert [one["id"] for one in shown[0]] == [ids[2], ids[0]]  # by rank
    assert [one["id"] for one in shown[1]] == [ids[3], ids[0]]  # two differ on 2
    assert shown[0][0]["verdicts"] == {"annotator": "yes", "bo": "no"}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"items": []}, "no photo"),
        ({"items": ["0" * 32]}, "no photo"),
        ({"verdict": "yes"}, "give the search"),
        ({"verdict": "yes", "query": "q=never+judged"}, "said yes"),
        ({"query": "q=a&where=" + "x" * 3000}, "not a search"),
        ({"name": "\u200b\n"}, "visible"),
    ],
)
def test_what_makes_no_list_is_one_sentence(here: TestClient, ids: list[str], body: Any, why: str) -> None:
    answer = here.post("/v1/lists", json={"name": f"bad {why}", "items": ids[:1] if "name" in body else [], **body})
    assert answer.status_code in (404, 422) and why in answer.json()["detail"].lower()


def test_a_list_is_renamed_grows_and_is_cut(here: TestClient, ids: list[str]) -> None:
    one, other = made(here, "one", items=ids[:2]), made(here, "other", items=ids[1:4])
    place = f"/v1/lists/{one['list']}"
    changed = here.patch(place, json={"name": "Both", "remove": [ids[0]], "items": [ids[5]]}).json()

    assert changed["name"] == "Both"
    assert [item["id"] for item in here.get(place).json()["items"]] == [ids[1], ids[5]]
    found = here.get("/v1/lists", params={"part": "oth"}).json()["lists"]
    assert {each["list"] for each in found} == {one["list"], other["list"]}
    assert here.patch(place, json={"name": other["name"]}).status_code == 422


def test_only_the_maker_or_owner_deletes_and_shows_a_list(world: ServerSettings, ids: list[str]) -> None:
    with (
        from_afar(world, TOKENS[Role.ANNOTATOR]) as ann,
        from_afar(world, BO) as bo,
        from_afar(world, TOKENS[Role.OWNER]) as owner,
    ):
        payload = made(ann, "of ann", items=ids[:1])
        one, page = f"/v1/lists/{payload['list']}", payload["page"]
        refused = [bo.delete(one), bo.post(f"{one}/link"), bo.post(f"{page}/delete"), bo.post(f"{page}/link")]
        assert [bo.get(one).status_code, *(answer.status_code for answer in refused)] == [200, 403, 403, 403, 403]
        assert ann.post(f"{one}/link").json()["link"].startswith("/shared/")
        assert [owner.delete(f"{one}/link").status_code, owner.delete(one).status_code] == [204, 204]
        assert ann.get(one).status_code == 404


def test_a_reader_searches_within_no_list(world: ServerSettings, here: TestClient, ids: list[str]) -> None:
    name = made(here, "not for readers", items=ids[:1])["name"]
    with from_afar(world, TOKENS[Role.READER]) as reader, from_afar(world, BO) as bo:
        for place in ("/", "/v1/search", "/v1/items", "/hits"):
            params = {"list": name, "cursor": ""} | ({} if place == "/v1/items" else {"q": "a heron"})
            assert reader.get(place, params=params).status_code == 403, place
        assert bo.get("/v1/items", params={"list": name}).status_code == 200


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("q=what+is+this?", "what is this?"),
        ("q=why?+how?&by=look", "why? how?"),
        ("?q=a+heron", "a heron"),
        ("/?q=who?", "who?"),
        ("http://photos.example/?q=a+heron", "a heron"),
    ],
)
def test_the_search_of_a_list_keeps_its_question_marks(address: str, words: str) -> None:
    assert params_of(address).q == words


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [("y", "yes"), ("yn", "doubt"), ("yynd", "yes"), ("yyndd", "doubt"), ("ddn", "doubt"), ("", None)],
)
def test_the_verdict_of_most_is_one_rule(votes: str, verdict: str | None) -> None:
    names = {"y": "yes", "n": "no", "d": "doubt"}
    ballots = {str(who): {"photo": Judgement("q", "photo", str(who), "p", VERDICTS[v])} for who, v in enumerate(votes)}
    of_most = combined(ballots).get("photo")
    assert majority(names[vote] for vote in votes) == verdict
    assert verdict_of(of_most) == verdict


def test_an_update_takes_off_what_has_no_yes_any_more(world: ServerSettings, ids: list[str]) -> None:
    with from_afar(world, TOKENS[Role.ANNOTATOR]) as ann, from_afar(world, BO) as bo:

        def say(at: int, verdict: str) -> None:
            assert ann.post("/v1/judgements", json={"q": "kept", "item": ids[at], "verdict": verdict}).is_success

        for at in range(4):
            say(at, "yes")
        yes = {"query": "q=kept", "verdict": "yes"}
        one = made(ann, "kept by ann", **yes)["list"]
        assert ann.patch(f"/v1/lists/{one}", json={"items": [ids[9]]}).json()["photos"] == 5  # by another way
        say(0, "no")
        assert ann.delete("/v1/judgements", params={"q": "kept", "item": ids[1]}).is_success
        say(5, "yes")
        added = ann.patch(f"/v1/lists/{one}", json=yes).json()
        update = ann.patch(f"/v1/lists/{one}", json={**yes, "update": True}).json()
        refused = bo.patch(f"/v1/lists/{one}", json={**yes, "update": True})
        wrong = ann.patch(f"/v1/lists/{one}", json={"items": ids[:1], "update": True})
        left = [item["id"] for item in ann.get(f"/v1/lists/{one}").json()["items"]]
        for at in (2, 3):
            assert bo.post("/v1/judgements", json={"q": "kept", "item": ids[at], "verdict": "no"}).is_success
        everybody = ann.patch(f"/v1/lists/{one}", json={**yes, "update": True, "everybody": True}).json()
        for at in (2, 3, 5):
            say(at, "no")
        nobody = ann.patch(f"/v1/lists/{one}", json={**yes, "update": True}).json()

    assert (added["photos"], added["removed"], update["removed"]) == (6, 0, 2)
    assert left == [ids[at] for at in (2, 3, 9, 5)]
    assert refused.status_code == 409 and "another name" in refused.json()["detail"] and wrong.status_code == 422
    assert everybody["removed"] == 2
    assert (nobody["removed"], nobody["photos"]) == (1, 1)


@pytest.fixture
def shared(world: ServerSettings, here: TestClient, ids: list[str]) -> Iterator[tuple[TestClient, str, str]]:
    """A stranger without a token, the path of a link, and the list that it leads to."""
    name = f"shown {len(here.get('/v1/lists').json()['lists'])}"
    one = made(here, name, items=ids[:3], query="q=shown")["list"]
    assert here.post("/v1/judgements", json={"q": "shown", "item": ids[1], "verdict": "doubt"}).status_code == 201
    with from_afar(replace(world, trust_loopback=False)) as stranger:
        yield stranger, here.post(f"/v1/lists/{one}/link").json()["link"], one


def test_a_link_shows_the_photos_and_verdicts_without_a_token(shared: tuple[TestClient, str, str]) -> None:
    stranger, link, _ = shared
    page = stranger.get(link)
    photos = [stranger.get(f"{link}/{number}-{size}.jpg") for number in (1, 2, 3) for size in (320, 1600)]
    assert page.status_code == 200 and "visitor ? doubt" in re.sub(r"<[^>]+>", "", page.text)
    assert page.text.count('class="tile ') == 3 and page.headers["x-robots-tag"] == "noindex"
    assert {photo.headers["content-type"] for photo in photos} == {"image/jpeg"}
    assert {stranger.get(f"{link}/{number}-320.jpg").status_code for number in (0, 4)} == {404}


def test_alt_texts_say_what_is_known_and_a_link_tells_strangers_no_more_than_the_title(
    here: TestClient, shared: tuple[TestClient, str, str], ids: list[str]
) -> None:
    stranger, link, _ = shared
    item = next(one for one in here.get("/v1/items").json()["items"] if one["title"] == "photo 4")
    place = made(here, "alt texts", items=[item["id"]])["page"]
    known = "photo 4, 2021-05-05, at 46.04, 7.04, kind: egret"

    for page in ("/?q=stripes", f"/photo/{item['id']}", place):
        assert f'alt="{known}"' in here.get(page, headers={"Accept": "text/html"}).text, page
    alts = re.findall('alt="([^"]*)"', stranger.get(link).text)
    assert any(alts) and not [alt for alt in alts if "kind:" in alt or " at " in alt or re.search("20[0-9]{2}-", alt)]


def test_a_photo_keeps_its_place(here: TestClient, shared: tuple[TestClient, str, str], ids: list[str]) -> None:
    stranger, link, one = shared
    before = stranger.get(f"{link}/2-320.jpg").content
    here.patch(f"/v1/lists/{one}", json={"remove": [ids[0]]})

    assert stranger.get(f"{link}/2-320.jpg").content == before and f"{link}/2-320.jpg" in stranger.get(link).text
    assert stranger.get(f"{link}/1-320.jpg").status_code == 404
    here.delete(f"/v1/lists/{one}/link")
    assert [stranger.get(place).status_code for place in (link, f"{link}/2-320.jpg")] == [404, 404]


@pytest.mark.long
def test_a_long_list_is_read_a_stretch_at_a_time(world: ServerSettings) -> None:
    with at_this_machine(world) as client:
        state: AppState = client.app.state.eyespot  # type: ignore[attr-defined]
        ids = [one["id"] for one in client.get("/v1/items", params={"limit": 72}).json()["items"]]
        gone = [f"{number:032x}" for number in range(60_000)]
        one = state.ledger.writable.lists.make("long", "ann", [*ids[:3], *gone, *ids[3:]])
        link = state.ledger.writable.lists.link(one.id)
        pages = [client.get(f"/v1/lists/{one.id}", params={"first": at}).json() for at in (0, 100, 60_000)]
        photo = client.get(f"/shared/{link}/1-320.jpg")
        shown = client.get(f"/shared/{link}").text
        within = client.get("/v1/items", params={"list": "long", "limit": 100}).json()["items"]

    assert photo.status_code == 200 and shown.count('<li class="tile ') == 3
    assert [[item["id"] for item in page["items"]] for page in pages] == [ids[:3], [], ids[3:]]
    assert [page["next"] for page in pages] == [100, 200, None] and len(within) == 72


def test_a_link_opens_nothing_else(shared: tuple[TestClient, str, str], ids: list[str]) -> None:
    stranger, link, one = shared
    places = [
        "/", "/v1/items", f"/v1/thumbnails/320/{ids[0]}", f"/v1/lists/{one}", f"/lists/{one}", "/v1/judgements",
        f"{link}/1-640.jpg", f"{link}/../../v1/items", f"{link}/x", f"/photo/{ids[0]}", "/shared/", f"{link}x",
    ]  # fmt: skip

    opened = {place: code for place in places if (code := stranger.get(place).status_code) < 400}
    assert opened in ({}, {"/": 303})
    assert stranger.post(link).status_code == 405
    assert {stranger.get("/shared/" + "A" * long).status_code for long in (43, 40)} == {404}  # one of them was cut


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_a_link_shows_what_was_ticked_and_nothing_more(
    world: ServerSettings, here: TestClient, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dates, labels and places each by their own tick; a zip without EXIF, owners and folders; an end."""
    item = next(one for one in here.get("/v1/items").json()["items"] if one["title"] == "photo 4")
    place = made(here, "by terms", items=[item["id"], *ids[:2]], query="?q=terms")["page"]
    shows = {"facts": ("2021-05-05", "egret"), "places": ("latitude", "Where"), "verdicts": ("Everybody",)}
    with from_afar(replace(world, trust_loopback=False)) as stranger:
        for ticked in ({"facts"}, {"places"}, {"verdicts"}, {"facts", "places", "download"}, set[str]()):
            link = here.post(f"/v1{place}/link", json=dict.fromkeys(ticked, True)).json()["link"]
            page, zipped = stranger.get(link), stranger.get(f"{link}/photos.zip")
            for name, words in shows.items():
                assert all((word in text_of(page.text)) == (name in ticked) for word in words), (name, ticked)
            assert (zipped.status_code == 200, "photos.zip" in page.text) == ("download" in ticked,) * 2
            if "download" in ticked:
                with zipfile.ZipFile(io.BytesIO(zipped.content)) as archive:
                    table = archive.read("photos.csv").decode()
                    photo = next(name for name in archive.namelist() if name.startswith("photos/"))
                    assert not Image.open(io.BytesIO(archive.read(photo))).getexif()
                assert "egret" in table and "latitude" in table and str(Path(item["path"]).parent) not in table
        assert here.post(f"/v1{place}/link", json={"owner": True}).status_code == 422
        link = here.post(f"/v1{place}/link", json={"days": 2}).json()["link"]
        assert "ends on 20" in text_of(stranger.get(link).text)
        now = time.time()
        monkeypatch.setattr("eyespot.web.lists.shared.time.time", lambda: now + 2 * 86_400 + 60)
        assert {stranger.get(one).status_code for one in (link, f"{link}/1-320.jpg")} == {404}


def test_when_and_where_are_of_the_whole_list(here: TestClient) -> None:
    items = here.get("/v1/items", params={"limit": 72}).json()["items"]
    place = made(here, "whole", items=[one["id"] for one in items])["page"]
    link = here.post(f"/v1{place}/link", json={"facts": True, "places": True}).json()["link"]
    for first in (0, 70):
        text = here.get(link, params={"first": first}).text
        drawn = [re.findall(rf'class="{kind}[^>]*><title>[^<]*: (\d+)<', text) for kind in ("bar-of-time", "heat")]
        known = [sum(one[name] is not None for one in items) for name in ("taken", "latitude")]
        assert [sum(map(int, counts)) for counts in drawn] == known and min(known) > 2
        assert text.count('class="tile ') == len(items) - first


def test_a_password_opens_one_link_and_wrong_ones_are_counted(
    world: ServerSettings, here: TestClient, ids: list[str]
) -> None:
    place = made(here, "behind a password", items=ids[:2], query="?q=a+password")["page"]
    another = made(here, "another", items=ids[:1])["page"]
    other = here.post(f"/v1{another}/link", json={"password": "two"}).json()["link"]
    form = {"verdicts": "true", "password": "ångström", "days": ""}
    link = re.search(r"/shared/[\w-]{43}", here.post(f"{place}/link", data=form).text)
    assert link is not None
    with from_afar(replace(world, trust_loopback=False)) as stranger:
        closed = [stranger.get(one) for one in (link[0], f"{link[0]}/1-320.jpg")]
        assert [one.status_code for one in closed] == [401, 404] and "tile" not in closed[0].text
        wrong = [stranger.post(f"{link[0]}/open", data={"password": f"guess {at}"}).status_code for at in range(30)]
        assert wrong[0] == 401 and wrong[-1] == 429
        opened = stranger.post(f"{link[0]}/open", data={"password": "ångström"})
        assert opened.status_code == 303 and text_of(stranger.get(link[0]).text).count("Everybody") == 1
        assert stranger.get(f"{link[0]}/1-320.jpg").status_code == 200
        assert stranger.get(other).status_code == 401  # the cookie of one link opens no other


def test_lists_work_without_scripts(here: TestClient, ids: list[str]) -> None:
    assert here.post("/v1/judgements", json={"q": "by form", "item": ids[4], "verdict": "yes"}).status_code == 201
    page = here.post("/lists", data={"name": "By form", "query": "q=by+form"})
    other = made(here, "Other of forms", items=ids[:2])
    place = page.url.path
    assert place.startswith("/lists/") and "1 photo ·" in re.sub(r"<[^>]+>", "", page.text)
    assert "3 photos" in here.post(f"{place}/join", data={"other": other["list"]}).text
    assert "2 photos" in here.post(f"{place}/remove", data={"item": ids[0]}).text
    assert '<h1 dir="auto">Renamed</h1>' in here.post(f"{place}/rename", data={"name": "Renamed"}).text
    assert "/shared/" in here.post(f"{place}/link").text
    assert "Renamed" in here.get("/lists", params={"part": "BY FORM"}).text
    assert "Delete “Renamed”?" in here.get(f"{place}/delete").text
    assert "Renamed" not in here.post(f"{place}/delete").text


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
    tabs = {tab: found(here, q="stripes", verdict=tab) for tab in ("yes", "no", "doubt", "unjudged")}
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
