"""What axe-core finds wrong with the pages, in light and dark, and whether each fits a desk and a phone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from eyespot.curate.rmir.audit import VERDICTS, Sealed, write_panel
from eyespot.pipelines.human_review import Case, Queue, write_queue
from eyespot.web import Judging, ServerSettings
from tests.command import run_eyespot
from tests.lazy_import import requires
from tests.web.conftest import (
    DESK,
    PHONE,
    at_this_machine,
    copy_gallery,
    copy_team_gallery,
    opened,
    press,
    serving,
    team_of,
)
from tests.web.test_calibration import judged_to_the_end
from tests.web.test_filters import birds
from tests.web.test_map import copy_mapped
from tests.worlds import index_gallery, rmir

Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser
Open = Callable[[str], str]
FILES = ("card", "transcript", "hits", "copies", "estimate")  # that commands write
ESTIMATE = ("--looks", 10, "--seed", 1, "--judge", "encoder:starter", "--accuracy", "0.9,0.9,50,50")


def prepare(folder: Path, settings: ServerSettings) -> tuple[ServerSettings, dict[str, str]]:
    """Photos that somebody has judged and put on a list, with a judge, a queue and an audit; the places of the list."""
    gallery = copy_gallery(folder, 24)
    photo = str(folder / "photos" / "000.jpg")
    write_queue(folder / "queue.jsonl", [Case("c", "Is it a cup?", (photo,), {"text": "a cup"})])
    panel = [Sealed("t", "causal", "Why?", True, 0.9, [{"judge": "j", "verdict": "true", "reasoning": "It fits."}])]
    (folder / "audit").mkdir()
    write_panel(folder / "audit", panel)
    write_queue(folder / "audit" / VERDICTS, [Case("t", "Why? accept: yes, drop: no", (photo, photo))])
    audit = Queue(folder / "audit" / VERDICTS)
    audit.decide(audit.open()[0], "drop", "Cem")
    judging = Judging((("quick", "encoder:starter"),), depth=10)
    reviews = (folder / "queue.jsonl", folder / "audit" / VERDICTS)
    settings = replace(settings, gallery=gallery, cache=None, judging=judging, reviews=reviews)
    with at_this_machine(settings) as client:
        judged_to_the_end(client, "blue", 6)
        items = [one["id"] for one in client.get("/v1/items").json()["items"]]
        made = client.post("/v1/lists", json={"name": "Five", "items": items[:5]}).json()
        more = {"facts": True, "places": True, "download": True}
        link = client.post(f"/v1/lists/{made['list']}/link", json=more).json()["link"]
        made_too = client.post("/v1/lists", json={"name": "Two", "items": items[:2]}).json()
        locked = client.post(f"/v1/lists/{made_too['list']}/link", json={"password": "axe"}).json()["link"]
    places = {"list": made["page"], "link": link, "locked": locked, "photo": f"photo/{items[0]}"}
    return settings, {name: urlsplit(place).path.lstrip("/") for name, place in places.items()} | {"id": items[0]}


def files(folder: Path) -> Path:
    """The pages that commands write, each with content."""
    gallery, out = rmir.photos(folder), folder / "pages"
    rmir.made(rmir.recipe(folder / "rmir", gallery), folder / "made")
    shutil.copytree(folder / "made" / "set", out)
    for line in (
        ("build", "transcript", folder / "made", "--html", out / "transcript.html"),
        ("search", "a windmill", "-g", gallery, "--html", out / "hits.html"),
        ("duplicates", "-g", gallery, "--html", out / "copies.html"),
        ("estimate", "a windmill", "--by", "category", *ESTIMATE, "-g", gallery, "--html", out / "estimate.html"),
    ):
        run_eyespot(*line)
    return out


def disputing(folder: Path, stack: ExitStack) -> str:
    """The address of a team with a dispute and a flag."""
    # A team of its own: flags are of photos, so the pages of other tests would show these.
    team = stack.enter_context(team_of(copy_team_gallery(folder)))
    team.take_in(("axe", "stripes to see"), photos=24)
    first = team.store.candidates("axe")[0].image
    for who, mark in (("Ada", "y"), ("Bo", "n")):
        team.store.mark("axe", who, {first: mark})
    with at_this_machine(ServerSettings(team.gallery)) as client:
        client.cookies.set("eyespot_name", "Ada")
        for flag in ({"kind": "face"}, {"kind": "other", "reason": "a-word-without-an-end-" * 9}):
            assert client.post("/annotate/flags", data={"image": first, **flag}).status_code == 200
    return str(team.address)


@pytest.fixture(scope="module")
def url_of(tmp_path_factory: pytest.TempPathFactory, settings: ServerSettings) -> Iterator[Open]:
    """The address of a page, on a server that is started for the first of its pages."""
    folder = tmp_path_factory.mktemp("axe")
    places: dict[str, str] = {}

    @cache
    def start(server: str) -> str:
        if server == "team":
            return disputing(folder / "team", stack)
        if server == "files":
            return files(folder / "files").as_uri()
        if server == "empty":
            index_gallery(folder / "empty")
            return stack.enter_context(serving(ServerSettings(folder / "empty")))
        if server == "birds":
            return stack.enter_context(serving(ServerSettings(birds(), cache=folder / "birds")))
        if server == "map":
            return stack.enter_context(serving(ServerSettings(copy_mapped(folder / "map"))))
        prepared, about = prepare(folder, settings)
        places.update(about)
        return stack.enter_context(serving(prepared))

    def url(place: str) -> str:
        server, _, path = place.partition("/")
        return start(server) + f"/{path}".format(**places)

    with ExitStack() as stack:
        yield url


def nothing(_: Any) -> None: ...


def enlarged(page: Any) -> None:
    page.locator(".tile .picture").first.click()
    page.locator("#large h2").wait_for()


def explained(page: Any) -> None:
    enlarged(page)
    page.keyboard.press("w")
    page.locator(".heat").wait_for()


def reasons(page: Any) -> None:
    enlarged(page)
    page.goto(page.locator("a[href^='/why/']").first.get_attribute("href"))
    page.locator(".heat").wait_for()


def filtered(page: Any) -> None:
    page.get_by_text("A filter in SQL").click()


def unfolded(page: Any) -> None:
    page.set_viewport_size(PHONE)
    expect(page.get_by_label("heron")).to_be_hidden()
    page.locator("#show-filters").click()
    expect(page.get_by_label("heron")).to_be_visible()
    filtered(page)


def offered(page: Any) -> None:
    page.get_by_text("Sort with a model", exact=True).click()
    page.get_by_text("judged already").wait_for()


def reranked(page: Any) -> None:
    if page.locator(".looking button").count():
        page.locator(".looking button").click()
    page.get_by_text("10 of the first 10 photos judged").wait_for()


def calibrated(page: Any) -> None:
    page.get_by_text("What next?").click()
    page.locator(".steps p:visible").first.wait_for()


def chosen(page: Any) -> None:
    page.locator(".tile .picture").first.focus()
    page.keyboard.press("Shift+ArrowRight")
    page.get_by_role("button", name="Put on a list").click()


def unfolded_list(page: Any) -> None:
    page.get_by_text("More", exact=True).click()


def whole_map(page: Any) -> None:
    page.locator("#plot[data-ready]").wait_for()
    page.evaluate("corners = [[0, 0], [65535, 0], [65535, 65535], [0, 65535]]; choose()")
    page.locator("#chosen-photos h2").wait_for()


def summed(page: Any) -> None:
    page.locator("#summary summary").click()
    page.locator(".timeline svg[data-roves]").wait_for()


def labelled(page: Any) -> None:
    page.locator(".shot.here").wait_for()
    press(page, "f1")
    page.locator(".shot .flag", has_text="a face").first.wait_for()


def its_own(page: Any) -> None:
    page.goto(page.locator("[hx-get^='/summary/']").first.get_attribute("hx-get"))


def agreed_with(page: Any) -> None:
    page.get_by_text("How far you agree").click()
    page.get_by_text("the panel: yes").wait_for()


def decided(page: Any) -> None:
    page.locator(".queries a").first.click()
    page.get_by_role("heading", name="Is it a cup?").wait_for()


PAGES: dict[str, tuple[str, Callable[[Any], None]]] = {
    "all photos": ("/", nothing),
    "hits": ("/?q=stripes", nothing),
    "a photo large": ("/?q=stripes", enlarged),
    "filters": ("/?q=stripes&label=kind%3Dheron", filtered),
    "filters of a phone": ("/?q=stripes&label=kind%3Dheron", unfolded),
    "nothing found": ("/?q=stripes&where=width%3E99999", nothing),
    "what judges cost": ("/?q=stripes", offered),
    "a judge's order": ("/?q=discs&rerank=quick", reranked),
    "a spread to judge": ("/spread?q=red", nothing),
    "what to count by": ("/count?q=red", nothing),
    "photos to count": ("/count?q=red&looks=60", nothing),
    "calibrated": ("/?q=blue", calibrated),
    "photos of a tab": ("/?q=stripes&verdict=unjudged", nothing),
    "chosen photos": ("/?q=chosen", chosen),
    "a list": ("/{list}", unfolded_list),
    "a list by its link": ("/{link}", nothing),
    "lists": ("/lists", nothing),
    "why a photo was found": ("/?q=2:stripes+-+red", explained),
    "its reasons": ("/?q=2:stripes+-+red", reasons),
    "the summary": ("/?q=stripes", summed),
    "the summary alone": ("/?q=stripes", its_own),
    "a photo": ("/{photo}?q=stripes", nothing),
    "photos alike": ("/alike/{id}?q=stripes", nothing),
    "a list to delete": ("/{list}/delete", nothing),
    "a list behind a password": ("/{locked}", nothing),
    "what is not there": ("/nowhere", nothing),
    "a parameter of an earlier version": ("/?q=stripes&box=1", nothing),
    "a wrong filter": ("/?q=stripes&where=width+is+large", nothing),
    "no photos yet": ("empty/", nothing),
    "the first photos": ("empty/add", nothing),
    "judges compared": ("/review", agreed_with),
    "the way in": ("/login", nothing),
    "the API": ("/docs", nothing),
    "adding photos": ("/add", nothing),
    "deciding": ("/review", decided),
    "taxa": ("birds/?q=stripes&label=genus%3DArdea", nothing),
    "filters that leave nothing": ("birds/?q=stripes&label=order%3DPasseriformes&label=site%3Driver", nothing),
    "the map": ("map/map?q=stripes", whole_map),
    "annotation": ("team/annotate", nothing),
    "labelling": ("team/annotate/label?query=axe", labelled),
    "about a query": ("team/annotate/query?query=axe", nothing),
    "flagged photos": ("team/annotate/flagged", nothing),
    "disputes": ("team/annotate/disputes?query=axe", nothing),
    **{f"{name}.html": (f"files/{name}.html", nothing) for name in FILES},
}


def wrong_with(page: Any) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{one['id']} ({one['impact']}): {one['nodes'][0]['html'][:200]}" for one in found]


def test_axe_finds_what_is_wrong(browser: Any) -> None:
    page = browser.new_page()
    page.set_content('<main><img src="a.jpg"><p style="color: #bbb; background: #fff">pale</p></main>')
    found = {one.partition(" ")[0] for one in wrong_with(page)}
    page.close()

    assert found >= {"image-alt", "color-contrast"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=requires("openTSNE") if name == "the map" else ()) for name in PAGES]
)
def test_nothing_keeps_anybody_out(browser: Any, url_of: Open, name: str) -> None:
    """In light on a desk and in dark on a phone; nothing makes either scroll sideways."""
    place, do = PAGES[name]
    url = url_of(place)
    server = "/".join(url.split("/")[:3])
    who = "" if name == "annotation" or place.startswith("files") else "Cem"
    with opened(browser, server, who, viewport=DESK) as page:
        page.goto(url)
        do(page)
        for scheme, screen in (("light", DESK), ("dark", PHONE)):
            page.set_viewport_size(screen)
            page.emulate_media(color_scheme=scheme)
            assert wrong_with(page) == [], scheme
            colour = page.evaluate("getComputedStyle(document.body).backgroundColor").strip("rgb()").split(",")
            assert (sum(map(int, colour)) < 120) == (scheme == "dark")
            assert page.evaluate("document.documentElement.scrollWidth") == screen["width"]
