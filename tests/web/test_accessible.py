"""What axe-core finds wrong with the pages: nothing serious, in light and dark, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from eyespot.web import Judging, ServerSettings
from tests.web.conftest import copy_gallery, serving

Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
pytestmark = pytest.mark.long  # minutes of a browser
SCREENS = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, settings: ServerSettings) -> Iterator[str]:
    """A gallery in which somebody has judged, with a judge that may be asked."""
    gallery = copy_gallery(tmp_path_factory.mktemp("axe"), 24)
    judging = Judging((("quick", "encoder:starter"),), depth=10)
    with serving(replace(settings, gallery=gallery, cache=None, judging=judging)) as place:
        yield place


def opened(page: Any) -> None:
    page.locator(".tile .picture").first.click()
    page.locator("#large h2").wait_for()


def explained(page: Any) -> None:
    opened(page)
    page.keyboard.press("w")
    page.locator(".heat").wait_for()


def filtered(page: Any) -> None:
    page.get_by_text("A condition of your own").click()


def unfolded(page: Any) -> None:
    page.set_viewport_size(SCREENS["phone"])
    page.locator("#show-filters").click()
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
    "a photo large": ("/?q=stripes", opened),
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
    """What axe calls serious or critical, and where."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] in ("serious", "critical")
    ]


def test_axe_finds_what_is_wrong(browser: Any) -> None:
    page = browser.new_page()
    page.set_content('<main><img src="a.jpg"><p style="color: #bbb; background: #fff">pale</p></main>')

    found = {one.partition(":")[0] for one in wrong_with(page)}

    page.close()
    assert found >= {"image-alt", "color-contrast"}


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_seriously_wrong(browser: Any, address: str, name: str) -> None:
    place, do = PAGES[name]
    context = browser.new_context(base_url=address, viewport=SCREENS["desk"])
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(place)
    do(page)

    wrong = {}
    for screen, scheme in product(SCREENS, ("light", "dark")):
        page.set_viewport_size(SCREENS[screen])
        page.emulate_media(color_scheme=scheme)
        wrong[screen, scheme] = wrong_with(page)

    context.close()
    assert wrong == {looked: [] for looked in product(SCREENS, ("light", "dark"))}
