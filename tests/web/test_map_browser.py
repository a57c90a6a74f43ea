"""The map in a real browser: points are drawn, moved, hovered over, opened and chosen; the summary is drawn on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from eyespot.web import ServerSettings
from tests.lazy_import import requires
from tests.web.conftest import PHOTOS, opened, rewrite_script, serving
from tests.web.test_map import copy_mapped

pytestmark = [pytest.mark.long, requires("openTSNE")]
expect = pytest.importorskip("playwright.sync_api").expect
INKED = "paper.pixels.reduce((sum, one) => sum + (one !== 0), 0)"
LEFT, ALL = "[[0, 0], [32768, 0], [32768, 65535], [0, 65535]]", "[[0, 0], [65535, 0], [65535, 65535], [0, 65535]]"


@pytest.fixture(scope="module")
def address(settings: ServerSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    gallery = copy_mapped(tmp_path_factory.mktemp("map-browser"))
    with serving(replace(settings, gallery=gallery, cache=None)) as place:
        yield place


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address, viewport={"width": 1280, "height": 1100}) as page:
        yield page


def open_map(page: Any, place: str = "/map") -> None:
    page.goto(place)
    page.locator("#plot[data-ready]").wait_for()


def at_rest(page: Any) -> list[float]:
    page.wait_for_function(
        """() => {
        const now = JSON.stringify([...view.target, view.zoom]), same = now === window.shownBefore;
        window.shownBefore = now;
        return same;
    }""",
        polling=100,
    )
    return list(page.evaluate("[...view.target, view.zoom]"))


def drag(page: Any, *places: tuple[float, float]) -> None:
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=6)
    page.mouse.up()


@pytest.mark.parametrize("how", ["canvas", "webgl"])
def test_the_map_is_drawn_with_a_graphics_card_and_without_and_keys_move_it(page: Any, how: str) -> None:
    open_map(page, f"/map#{how}")
    assert page.evaluate("picture.count") == PHOTOS
    kinds = {"canvas": "OnCanvas", "webgl": "WithCard"}
    assert page.evaluate("paper.constructor.name") in ({kinds[how]} if how == "canvas" else set(kinds.values()))
    shot, view = page.locator("#plot").screenshot(), at_rest(page)
    page.locator("#plot").focus()
    page.keyboard.press("+")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("(before) => view.zoom !== before", arg=view[-1])
    at_rest(page)
    assert page.locator("#plot").screenshot() != shot


def test_a_machine_that_is_too_slow_draws_a_sample_while_the_map_moves_and_all_at_rest(page: Any) -> None:
    open_map(page, "/map#canvas")
    whole = page.evaluate(INKED)
    page.evaluate("for (const _ of [1, 2, 3, 4]) paper.pace(100)")  # two slow frames halve it
    moving = page.evaluate(f"[draw(true), {INKED}][1]")
    page.evaluate("rest()")

    assert 0 < moving < whole / 2
    assert page.evaluate(f"[{INKED}, paper.share]") == [whole, 0.25]
    page.evaluate("rest()")
    assert page.evaluate("paper.share") == 0.5  # a move without a slow frame: more of them again


def test_a_photo_shows_under_the_pointer_and_opens_and_back_finds_the_same_view(page: Any) -> None:
    open_map(page)
    before = at_rest(page)
    page.locator("#in").click()
    page.wait_for_function("(before) => view.zoom !== before", arg=before[-1])
    view = at_rest(page)
    at = page.evaluate("picture.finder.nearest(view.target[0] * 65535, view.target[1] * 65535, 65535)")
    x, y = page.evaluate(f"onScreen(...[0, 1].map((one) => picture.finder.positions[2 * {at} + one] / 65535))")
    box = page.locator("#plot").bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    expect(page.locator("#hover img")).to_be_visible()
    page.mouse.click(box["x"] + x, box["y"] + y)
    page.wait_for_url("**/photo/**")
    page.go_back()
    page.locator("#plot[data-ready]").wait_for()
    assert at_rest(page) == view


def test_a_lasso_with_the_mouse_becomes_a_list_of_photos(page: Any) -> None:
    open_map(page)
    box = page.locator("#plot").bounding_box()
    page.keyboard.press("l")  # wherever the focus is
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98)]
    drag(page, *((box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners))
    expect(page.get_by_role("heading", name=f"{PHOTOS} photos chosen")).to_be_focused()
    expect(page.locator("#chosen-photos .few img").first).to_be_visible()
    page.get_by_role("link", name="Show them").click()
    page.wait_for_url(re.compile("region="))
    expect(page.get_by_label("Only the region drawn on the map")).to_be_checked()
    assert page.locator("#total").inner_text() == str(PHOTOS)


def choose(page: Any, corners: str = LEFT) -> int:
    """Choose what lies in a part of the map, and say how many photos that is."""
    page.evaluate(f"corners = {corners}; choose()")
    heading = page.locator("#chosen-photos h2")
    heading.wait_for()
    return int(heading.text_content().split()[0])


def test_what_is_chosen_is_saved_as_a_list_once_it_can_be_in_as_many_requests_as_it_needs(page: Any) -> None:
    rewrite_script(page, "map.js", "const PART = 10000;", "const PART = 7;")
    open_map(page)
    count, save = choose(page), page.get_by_role("button", name="Save as a list")
    assert 7 < count < PHOTOS
    page.get_by_label("A name for the list").fill("The left half")
    page.route("**/v1/lists", lambda route: route.fulfill(status=507, json={"detail": "the disk is full"}))
    save.click()
    expect(page.get_by_text("It was not saved: the disk is full.")).to_be_visible()
    page.unroute("**/v1/lists")
    page.route("**/v1/lists", lambda route: route.abort())
    save.click()
    expect(page.get_by_text("It was not saved: ")).not_to_contain_text("the disk is full")
    page.unroute("**/v1/lists")
    save.click()
    page.get_by_role("link", name="To the list “The left half”").click()
    page.wait_for_url("**/lists/**")
    expect(page.get_by_role("heading", name="The left half")).to_be_visible()
    assert [one["photos"] for one in page.evaluate("fetch('/v1/lists').then((one) => one.json())")["lists"]] == [count]


def test_hits_are_lit_up_from_a_search_and_clusters_are_reached_without_the_map(browser: Any, page: Any) -> None:
    page.goto("/?q=red+stripes")
    page.get_by_role("link", name="Map", exact=True).last.click()
    page.locator("#plot[data-ready]").wait_for()
    assert page.evaluate("picture.lit.length") == PHOTOS
    assert page.get_by_role("searchbox").input_value() == "red stripes"
    with opened(browser, page.url.partition("/map")[0], java_script_enabled=False) as plain:
        plain.goto("/map")
        plain.locator("#clusters a").first.click()
        plain.wait_for_url(re.compile("region="))
        assert plain.locator(".tile").count() > 0


def open_summary(page: Any) -> None:
    page.goto("/?q=stripes")
    page.locator("#summary summary").click()
    page.locator(".timeline svg[data-roves]").wait_for()


def test_a_span_of_the_timeline_dragged_or_chosen_with_keys_a_bar_and_a_box_of_the_places_filter(page: Any) -> None:
    open_summary(page)
    bars = page.locator(".timeline a .slot")
    first, last = bars.nth(0).bounding_box(), bars.nth(11).bounding_box()
    drag(page, (first["x"] + 3, first["y"] + 20), (last["x"] + 3, last["y"] + 20))
    page.wait_for_url(re.compile("after=2020-01.*before=2021-01"))
    assert page.locator("#total").text_content() == "24"
    page.locator("#q").fill("red stripes")  # the months stay, as the days that their boxes hold
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("q=red.*after=2020-01-01.*before=2021-01-01"))
    assert page.locator("#total").text_content() == "24"

    open_summary(page)
    page.locator(".timeline a").first.focus()
    for _ in range(11):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("after=2020-01.*before=2021-01"))
    page.locator("#summary summary").click()
    page.locator(".timeline a").first.click()
    page.wait_for_url(re.compile("after=2020-01.*before=2020-02"))

    open_summary(page)
    box = page.locator(".spots [role=group]").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    drag(page, (box["x"] + 4, box["y"] + box["height"] - 4), middle)
    page.wait_for_url(re.compile("near="))
    assert 0 < int(page.locator("#total").text_content()) < PHOTOS // 2
