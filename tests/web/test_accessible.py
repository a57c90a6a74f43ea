"""What axe-core finds wrong with the pages, in light and dark, and whether each fits a desk and a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from eyespot.pipelines.human_review import Case, write_queue
from eyespot.web import Judging, ServerSettings
from tests.lazy_import import requires
from tests.web.conftest import DESK, PHONE, copy_gallery, opened, serving
from tests.web.test_filters import birds
from tests.web.test_map import copy_mapped

Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser
SCREENS = (("light", DESK), ("dark", PHONE))


@pytest.fixture(scope="module")
def address_of(tmp_path_factory: pytest.TempPathFactory, settings: ServerSettings) -> Iterator[Callable[[str], str]]:
    """Servers by name: photos that somebody judges, with a judge and a queue of cases; birds; and a map."""
    folder = tmp_path_factory.mktemp("axe")
    write_queue(folder / "queue.jsonl", [Case("c", "Is it a cup?", (), {"text": "a cup"})])

    def settings_of(name: str) -> ServerSettings:
        if name == "birds":
            return ServerSettings(birds(), cache=folder / "birds")
        if name == "map":
            return ServerSettings(copy_mapped(folder / "map"))
        judging, reviews = Judging((("quick", "encoder:starter"),), depth=10), (folder / "queue.jsonl",)
        gallery = copy_gallery(folder, 24)
        return replace(settings, gallery=gallery, cache=None, judging=judging, reviews=reviews)

    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(serving(settings_of(name))))


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
    page.get_by_text("A condition of your own").click()


def unfolded(page: Any) -> None:
    page.set_viewport_size(PHONE)
    expect(page.get_by_label("heron")).to_be_hidden()
    page.locator("#show-filters").click()
    expect(page.get_by_label("heron")).to_be_visible()
    filtered(page)


def offered(page: Any) -> None:
    page.get_by_text("Re-rank", exact=True).click()
    page.get_by_text("judged already").wait_for()


def reranked(page: Any) -> None:
    if page.locator(".looking button").count():
        page.locator(".looking button").click()
    page.get_by_text("10 of the first 10 photos judged").wait_for()


def judged(page: Any) -> None:
    for _ in range(30):
        if not page.locator("#grid").count():
            break
        for tile in page.locator(".tile").all():
            tile.locator("button[data-verdict=yes]").click()
        page.locator(".tile:not([data-verdict])").first.wait_for(state="detached")
        with page.expect_navigation():  # a page that is still coming has no grid yet
            page.locator("#onward").click()
    page.get_by_role("link", name="To the hits").click()
    page.locator(".cuts, .relevant b").first.wait_for()


def labelled(page: Any) -> None:
    if not page.locator("input[name=text]").count():
        page.locator("input[name=name]").fill("ada")
        page.locator("form[action='/name'] button").click()
    page.locator("input[name=text]").fill("stripes")
    page.locator("form[action='/annotate/queries'] button").click()
    page.wait_for_url("**/annotate/label**")
    page.locator("img").first.wait_for()


def stands(page: Any) -> None:
    labelled(page)
    page.locator(".shot.here").wait_for()
    page.keyboard.press("y")
    page.get_by_text("All saved", exact=True).wait_for()
    page.goto("/annotate")
    page.locator("table").first.wait_for()


def about(page: Any) -> None:
    stands(page)
    page.get_by_role("link", name="About stripes").click()
    page.locator(".facts-of").wait_for()


def flagged(page: Any) -> None:
    labelled(page)
    page.locator(".shot.here").wait_for()
    page.keyboard.press("f")
    page.keyboard.press("1")
    page.locator(".shot .flag", has_text="a face").first.wait_for()
    page.goto("/annotate/flagged")


def disputed(page: Any) -> None:
    for who, key in (("ada", "y"), ("bo", "n")):
        page.context.clear_cookies()
        page.goto("/annotate")
        page.locator("input[name=name]").fill(who)
        with page.expect_navigation():  # going on before would leave the name unsaid
            page.locator("form[action='/name'] button").click()
        page.goto("/annotate/label?query=stripes&first=0")
        page.locator("#shot-0").click()
        page.keyboard.press(key)
        page.get_by_text("All saved", exact=True).wait_for()
    page.goto("/annotate/disputes?query=stripes")
    page.locator(".here").wait_for()


def whole_map(page: Any) -> None:
    page.locator("#plot[data-ready]").wait_for()
    page.evaluate("corners = [[0, 0], [65535, 0], [65535, 65535], [0, 65535]]; choose()")
    page.locator("#chosen-photos h2").wait_for()


def summed(page: Any) -> None:
    page.locator("#summary summary").click()
    page.locator(".timeline svg[data-roves]").wait_for()


def reviewing(page: Any) -> None:
    if page.locator("input[name=name]").count():
        page.locator("input[name=name]").fill("ada")
        with page.expect_navigation():
            page.keyboard.press("Enter")
    page.locator(".queries a").click()
    page.get_by_role("heading", name="Is it a cup?").wait_for()


def nothing(_: Any) -> None: ...


def chosen(page: Any) -> None:
    page.locator(".tile .picture").first.focus()
    page.keyboard.press("Shift+ArrowRight")
    page.get_by_role("button", name="Put on a list").click()


def shared_by_a_link(page: Any) -> None:
    page.locator(".tile .picture").first.focus()
    page.keyboard.press("y")
    page.locator("#share summary").click()
    page.get_by_role("button", name="Link for a colleague").click()
    page.goto(page.get_by_label("The link").input_value())


def one_list(page: Any) -> None:
    page.locator(".tile .picture").first.focus()
    page.keyboard.press("y")
    page.locator("#share summary").click()
    page.get_by_role("button", name="Make a list").click()
    page.get_by_text("More", exact=True).click()


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
    "calibrated": ("/spread?q=blue", judged),
    "photos of a tab": ("/?q=stripes&verdict=unjudged", nothing),
    "chosen photos": ("/?q=chosen", chosen),
    "a list": ("/?q=listed", one_list),
    "a list by its link": ("/?q=linked", shared_by_a_link),
    "lists": ("/lists", nothing),
    "the history": ("/history", nothing),
    "why a photo was found": ("/?q=2:stripes+-+red", explained),
    "its reasons": ("/?q=2:stripes+-+red", reasons),
    "adding photos": ("/add", nothing),
    "deciding": ("/review", reviewing),
    "the summary": ("/?q=stripes", summed),
    "taxa": ("birds/?q=stripes&label=genus%3DArdea", nothing),
    "filters that leave nothing": ("birds/?q=stripes&label=order%3DPasseriformes&label=site%3Driver", nothing),
    "the map": ("map/map?q=stripes", whole_map),
    "two rankings": ("/sides?q=heron&left_by=look&right_by=both", nothing),
    "the way in": ("/login", nothing),
    "the API": ("/docs", nothing),
    "annotation": ("/annotate", nothing),
    "labelling": ("/annotate", labelled),
    "how annotation stands": ("/annotate", stands),
    "about a query": ("/annotate", about),
    "flagged photos": ("/annotate", flagged),
    "disputes": ("/annotate", disputed),
}


def wrong_with(page: Any) -> list[str]:
    """What axe finds, and where."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']} ({one['impact']}): {one['nodes'][0]['html'][:200]}" for one in found]


def test_axe_finds_what_is_wrong(browser: Any) -> None:
    page = browser.new_page()
    page.set_content('<main><img src="a.jpg"><p style="color: #bbb; background: #fff">pale</p></main>')

    found = {one.partition(" ")[0] for one in wrong_with(page)}

    page.close()
    assert found >= {"image-alt", "color-contrast"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=requires("openTSNE") if "map" in name else ()) for name in PAGES]
)
def test_nothing_keeps_anybody_out(browser: Any, address_of: Callable[[str], str], name: str) -> None:
    """In light on a desk and in dark on a phone, which nothing makes scroll sideways."""
    place, do = PAGES[name]
    server, _, path = place.partition("/")
    with opened(browser, address_of(server), viewport=DESK) as page:
        page.goto(f"/{path}")
        do(page)
        for scheme, screen in SCREENS:
            page.set_viewport_size(screen)
            page.emulate_media(color_scheme=scheme)
            assert wrong_with(page) == [], scheme
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
