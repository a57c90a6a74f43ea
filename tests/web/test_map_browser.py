"""The map in a real browser: points are drawn, moved, hovered over, opened and chosen; the summary is drawn on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from eyespot.web import ServerSettings
from tests.lazy_import import requires
from tests.web.conftest import PHOTOS, serving
from tests.web.test_browser import opened
from tests.web.test_map import copy_mapped

pytestmark = [pytest.mark.long, requires("openTSNE")]
expect = pytest.importorskip("playwright.sync_api").expect
READY = "#plot[data-ready]"


@pytest.fixture(scope="module")
def address(settings: ServerSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    gallery = copy_mapped(tmp_path_factory.mktemp("map-browser"))
    with serving(replace(settings, gallery=gallery, cache=None)) as place:
        yield place


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address) as page:
        yield page


def spot(page: Any, at: int) -> tuple[float, float]:
    """Where a point is on the screen."""
    place = f"[0, 1].map((one) => picture.finder.positions[2 * {at} + one] / 65535)"
    left, top = page.evaluate(f"onScreen(...{place})")
    box = page.locator("#plot").bounding_box()
    return box["x"] + left, box["y"] + top


@pytest.mark.parametrize("how", ["canvas", "webgl"])
def test_the_map_is_drawn_with_a_graphics_card_and_without(page: Any, how: str) -> None:
    page.goto(f"/map#{how}")
    page.locator(READY).wait_for()
    assert page.evaluate("picture.count") == PHOTOS
    kinds = {"canvas": "OnCanvas", "webgl": "WithCard"}
    assert page.evaluate("paper.constructor.name") in ({kinds[how]} if how == "canvas" else set(kinds.values()))
    shot = page.locator("#plot").screenshot()
    page.keyboard.press("Tab")
    page.locator("#plot").focus()
    page.keyboard.press("+")
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(500)
    assert page.locator("#plot").screenshot() != shot


INKED = "paper.pixels.reduce((sum, one) => sum + (one !== 0), 0)"


def test_a_machine_that_is_too_slow_draws_a_sample_while_the_map_moves_and_all_at_rest(page: Any) -> None:
    page.goto("/map#canvas")
    page.locator(READY).wait_for()
    whole = page.evaluate(INKED)
    page.evaluate("for (const _ of [1, 2, 3, 4]) paper.pace(100)")  # two slow frames halve it
    moving = page.evaluate(f"[draw(true), {INKED}][1]")
    page.evaluate("rest()")

    assert 0 < moving < whole / 2
    assert page.evaluate(f"[{INKED}, paper.share]") == [whole, 0.25]
    page.evaluate("rest()")
    assert page.evaluate("paper.share") == 0.5  # a move without a slow frame: more of them again


def test_a_photo_shows_under_the_pointer_and_opens_and_back_finds_the_same_view(page: Any) -> None:
    page.goto("/map")
    page.locator(READY).wait_for()
    page.locator("#in").click()
    page.wait_for_timeout(400)
    view = page.evaluate("[...view.target, view.zoom]")
    x, y = spot(page, page.evaluate("picture.finder.nearest(view.target[0] * 65535, view.target[1] * 65535, 65535)"))
    page.mouse.move(x, y)
    expect(page.locator("#hover img")).to_be_visible()
    page.mouse.click(x, y)
    page.wait_for_url("**/photo/**")
    page.go_back()
    page.locator(READY).wait_for()
    assert page.evaluate("[...view.target, view.zoom]") == view


def test_a_lasso_with_the_mouse_becomes_a_list_of_photos(page: Any) -> None:
    page.set_viewport_size({"width": 1280, "height": 1100})
    page.goto("/map")
    page.locator(READY).wait_for()
    box = page.locator("#plot").bounding_box()
    page.locator("#lasso").click()
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for x, y in places[1:]:
        page.mouse.move(x, y, steps=4)
    page.mouse.up()
    expect(page.get_by_role("heading", name=f"{PHOTOS} photos chosen")).to_be_focused()
    expect(page.locator("#chosen-photos .few img").first).to_be_visible()
    page.get_by_role("link", name="Show them").click()
    page.wait_for_url(re.compile("region="))
    expect(page.get_by_label("Only the region drawn on the map")).to_be_checked()
    assert page.locator("#total").inner_text() == str(PHOTOS)


def choose_left_half(page: Any) -> int:
    """Choose what lies in the left half of the map, and say how many photos that is."""
    page.goto("/map")
    page.locator(READY).wait_for()
    page.evaluate("corners = [[0, 0], [32768, 0], [32768, 65535], [0, 65535]]; choose()")
    heading = page.locator("#chosen-photos h2")
    heading.wait_for()
    return int(heading.text_content().split()[0])


def with_short_parts(route: Any) -> None:
    """The page's script, which sends seven ids at once."""
    answer = route.fetch()
    assert "const PART = 10000;" in answer.text()
    route.fulfill(response=answer, body=answer.text().replace("const PART = 10000;", "const PART = 7;"))


def save_as(page: Any, name: str) -> None:
    page.get_by_label("A name for the list").fill(name)
    page.get_by_role("button", name="Save as a list").click()


def test_what_is_chosen_is_saved_as_a_list_in_as_many_requests_as_it_needs(page: Any) -> None:
    count = choose_left_half(page)
    assert 7 < count < PHOTOS
    page.route("**/map.js*", with_short_parts)
    assert choose_left_half(page) == count
    save_as(page, "The left half")
    page.get_by_role("link", name="To the list “The left half”").click()
    page.wait_for_url("**/lists/**")
    expect(page.get_by_role("heading", name="The left half")).to_be_visible()
    page.goto("/lists")
    shown = page.get_by_role("listitem").filter(has_text="The left half")
    expect(shown).to_contain_text(f"{count} photos")
    assert [one["photos"] for one in page.evaluate("fetch('/v1/lists').then((one) => one.json())")["lists"]] == [count]


def test_a_list_that_is_not_saved_says_why_and_can_be_saved_then(page: Any) -> None:
    choose_left_half(page)
    page.route("**/v1/lists", lambda route: route.fulfill(status=507, json={"detail": "the disk is full"}))
    save_as(page, "Another half")
    expect(page.get_by_text("It was not saved: the disk is full.")).to_be_visible()
    page.unroute("**/v1/lists")
    page.route("**/v1/lists", lambda route: route.abort())
    page.get_by_role("button", name="Save as a list").click()
    expect(page.get_by_text("It was not saved: ")).not_to_contain_text("the disk is full")
    page.unroute("**/v1/lists")
    page.get_by_role("button", name="Save as a list").click()
    expect(page.get_by_role("link", name="To the list “Another half”")).to_be_visible()


def test_hits_are_lit_up_from_a_search(page: Any) -> None:
    page.goto("/?q=red+stripes")
    page.get_by_role("link", name="Map", exact=True).last.click()
    page.locator(READY).wait_for()
    assert page.evaluate("picture.lit.length") == PHOTOS
    assert page.get_by_role("searchbox").input_value() == "red stripes"


def test_clusters_are_reached_by_the_table_without_the_map(browser: Any, address: str) -> None:
    with opened(browser, address, java_script_enabled=False) as page:
        page.goto("/map")
        link = page.locator("#clusters a").first
        link.click()
        page.wait_for_url(re.compile("region="))
        assert page.locator(".tile").count() > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("wide", [1280, 390])
def test_nothing_keeps_anybody_out(browser: Any, address: str, scheme: str, wide: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    size = {"width": wide, "height": 900}
    with opened(browser, address, color_scheme=scheme, viewport=size, bypass_csp=True) as page:
        page.goto("/map?q=stripes")
        page.locator(READY).wait_for()
        page.evaluate("corners = [[0, 0], [65535, 0], [65535, 65535], [0, 65535]]; choose()")
        page.locator("#chosen-photos h2").wait_for()
        found = axe.run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
        summed(page)
        found = axe.run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# -- the summary ----------------------------------------------------------------------------------------------


def summed(page: Any) -> None:
    page.goto("/?q=stripes")
    page.locator("#summary summary").click()
    page.locator(".timeline svg[data-roves]").wait_for()


def test_a_span_dragged_over_the_timeline_filters(page: Any) -> None:
    summed(page)
    bars = page.locator(".timeline a .slot")
    first, last = bars.nth(0).bounding_box(), bars.nth(11).bounding_box()
    page.mouse.move(first["x"] + 3, first["y"] + 20)
    page.mouse.down()
    page.mouse.move(last["x"] + 3, last["y"] + 20, steps=6)
    page.mouse.up()
    page.wait_for_url(re.compile("after=2020-01.*before=2021-01"))
    assert page.locator("#total").text_content() == "24"


def test_a_span_is_chosen_with_keys_and_a_bar_is_a_link(page: Any) -> None:
    summed(page)
    page.locator(".timeline a").first.focus()
    for _ in range(11):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("after=2020-01.*before=2021-01"))
    page.locator("#summary summary").click()
    page.locator(".timeline a").first.click()
    page.wait_for_url(re.compile("after=2020-01.*before=2020-02"))


def test_a_box_dragged_over_the_places_filters(page: Any) -> None:
    summed(page)
    box = page.locator(".spots svg").bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + box["height"] - 4)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=6)
    page.mouse.up()
    page.wait_for_url(re.compile("box="))
    assert 0 < int(page.locator("#total").text_content()) < PHOTOS // 2
