"""Thousands of photos on one page: rows far from the screen leave only their height, and nothing else is otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from eyespot.web import ServerSettings
from tests.web.conftest import PHOTOS, copy_gallery, serving
from tests.web.test_browser import opened

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser

LAST = f".tile >> nth={PHOTOS - 1}"
PLACES = """() => [...document.querySelectorAll(".tile")].map((one) => one.getBoundingClientRect())
  .map((at) => [at.left, at.top + scrollY, at.width, at.height].map(Math.round))"""
AWAKE = "() => document.querySelectorAll('.tile img').length"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, settings: ServerSettings) -> Iterator[str]:
    """A gallery of its own, for verdicts are given on it."""
    gallery = copy_gallery(tmp_path_factory.mktemp("many"))
    with serving(replace(settings, gallery=gallery, cache=None)) as place:
        yield place


def with_short_blocks(route: Any) -> None:
    """The page's script, for which few photos are many."""
    answer = route.fetch()
    before, after = "const MANY = 240, BLOCK = 60;", "const MANY = 16, BLOCK = 8;"
    assert before in answer.text()
    route.fulfill(response=answer, body=answer.text().replace(before, after))


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A small window, with eight photos to a block."""
    with opened(browser, address, viewport={"width": 640, "height": 300}) as page:
        page.route("**/results.js*", with_short_blocks)
        yield page


def load_all(page: Any, query: str) -> None:
    page.goto(f"/?q={query}&ungrouped=true")
    while page.locator(".more").count():
        page.locator(".more").scroll_into_view_if_needed()
        page.wait_for_timeout(200)
    expect(page.locator(".block.far")).not_to_have_count(0)


def test_what_is_far_leaves_its_place_and_comes_back_as_it_was(browser: Any, address: str, page: Any) -> None:
    load_all(page, "many")
    with opened(browser, address, viewport={"width": 640, "height": 300}) as plain:
        plain.goto("/?q=many&ungrouped=true")
        plain.locator(".more").scroll_into_view_if_needed()
        plain.locator(LAST).wait_for()
        rows = plain.evaluate(PLACES)
        assert plain.locator(".block").count() == 0

    assert page.evaluate(AWAKE) < PHOTOS
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator(".tile img").first).to_be_visible()
    expect(page.locator(".tile").nth(40).locator("img")).to_have_count(0)
    folded = page.evaluate(PLACES)
    assert len(folded) == len(rows) == PHOTOS
    assert max(abs(a - b) for one, other in zip(folded, rows, strict=True) for a, b in zip(one, other, strict=True)) < 2


def test_keys_go_through_all_photos_and_back(page: Any) -> None:
    load_all(page, "keys+through+many")
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator(".tile img").first).to_be_visible()
    page.locator(".tile .picture").first.focus()
    for _ in range(PHOTOS):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("tiles().indexOf(focused())") == PHOTOS - 1
    for _ in range(40):
        page.keyboard.press("ArrowUp")

    assert page.evaluate("tiles().indexOf(focused())") < 10
    expect(page.locator(".tile:focus-within img")).to_be_visible()


def test_a_verdict_on_photos_that_are_far_is_on_them_when_they_come_back(page: Any) -> None:
    load_all(page, "far+verdicts")
    expect(page.locator(".tile").first.locator("img")).to_have_count(0)
    page.locator(LAST).locator(".picture").focus()
    page.keyboard.press("Shift+N")
    expect(page.locator(".unsaved")).to_have_count(0)
    page.evaluate("scrollTo(0, 0)")

    expect(page.locator(".tile").first.locator(".said")).to_have_text("✕ no")
    assert page.locator(".tile[data-verdict=no]").count() == PHOTOS


def test_back_finds_the_row_though_blocks_lie_above(page: Any) -> None:
    load_all(page, "back+to+many")
    page.locator(".tile").nth(50).scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    before = page.locator(".tile").nth(50).bounding_box()["y"]
    page.goto("/docs")
    page.go_back()
    page.locator(LAST).wait_for(state="attached")
    page.wait_for_timeout(500)

    assert abs(page.locator(".tile").nth(50).bounding_box()["y"] - before) < 40


def test_rows_of_another_width_are_full_again(page: Any) -> None:
    load_all(page, "wider")
    page.set_viewport_size({"width": 900, "height": 300})
    page.wait_for_timeout(600)
    rows: dict[int, int] = {}
    for left, top, width, _ in page.evaluate(PLACES):
        rows[top] = max(rows.get(top, 0), left + width)

    assert len(rows) > 3 and len({right for top, right in rows.items() if top != max(rows)}) == 1
