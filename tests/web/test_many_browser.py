"""Thousands of photos on one page: rows far from the screen leave only their height, and nothing else is otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.conftest import PHOTOS, opened, press

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser

SMALL = {"width": 640, "height": 300}
LAST = f".tile >> nth={PHOTOS - 1}"
PLACES = """() => [...document.querySelectorAll(".tile")].map((one) => one.getBoundingClientRect())
  .map((at) => [at.left, at.top + scrollY, at.width, at.height].map(Math.round))"""
TOP = "() => document.querySelectorAll('.tile')[50]?.getBoundingClientRect().top"


def with_short_blocks(route: Any) -> None:
    """The page's script, for which few photos are many."""
    answer = route.fetch()
    before, after = "const MANY = 240, BLOCK = 60;", "const MANY = 16, BLOCK = 8;"
    assert before in answer.text()
    route.fulfill(response=answer, body=answer.text().replace(before, after))


@pytest.fixture
def page(browser: Any, served: str) -> Iterator[Any]:
    """A small window, with eight photos to a block."""
    with opened(browser, served, viewport=SMALL) as page:
        page.route("**/results.js*", with_short_blocks)
        yield page


def load_all(page: Any, query: str) -> None:
    page.goto(f"/?q={query}&grouped=false")
    page.locator(".more").scroll_into_view_if_needed()
    page.locator(LAST).wait_for(state="attached")


def load_folded(page: Any, query: str) -> None:
    load_all(page, query)
    expect(page.locator(".block.far")).not_to_have_count(0)


def test_what_is_far_leaves_its_place_and_comes_back_as_it_was(browser: Any, served: str, page: Any) -> None:
    load_folded(page, "many")
    with opened(browser, served, viewport=SMALL) as plain:
        load_all(plain, "many")
        rows = plain.evaluate(PLACES)
        assert plain.locator(".block").count() == 0

    assert page.locator(".tile img").count() < PHOTOS
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator(".tile img").first).to_be_visible()
    expect(page.locator(".tile").nth(40).locator("img")).to_have_count(0)
    folded = page.evaluate(PLACES)
    assert len(folded) == len(rows) == PHOTOS
    assert max(abs(a - b) for one, other in zip(folded, rows, strict=True) for a, b in zip(one, other, strict=True)) < 2

    page.set_viewport_size({"width": 900, "height": 300})
    page.wait_for_function(f"""() => {{  // all rows but the last end where the grid ends
        const ends = {{}}, grid = document.querySelector("#grid").getBoundingClientRect().right;
        for (const [left, top, width] of ({PLACES})()) ends[top] = Math.max(ends[top] || 0, left + width);
        const rows = Object.values(ends).slice(0, -1);
        return rows.length > 3 && rows.every((end) => Math.abs(end - grid) < 3);
    }}""")


def test_keys_go_through_all_photos_and_back_and_a_verdict_is_on_those_that_are_far(page: Any) -> None:
    load_folded(page, "keys+through+many")
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator(".tile img").first).to_be_visible()
    page.locator(".tile .picture").first.focus()
    press(page, ["ArrowRight"] * PHOTOS)
    assert page.evaluate("tiles().indexOf(focused())") == PHOTOS - 1
    expect(page.locator(".tile").first.locator("img")).to_have_count(0)
    press(page, ["Shift+N"])
    expect(page.locator(".unsaved")).to_have_count(0)
    page.locator(LAST).locator(".picture").focus()
    press(page, ["ArrowUp"] * 40)

    assert page.evaluate("tiles().indexOf(focused())") < 10
    expect(page.locator(".tile:focus-within img")).to_be_visible()
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator(".tile").first.locator(".said")).to_have_text("✕ no")
    assert page.locator(".tile[data-verdict=no]").count() == PHOTOS


def test_back_finds_the_row_though_blocks_lie_above(page: Any) -> None:
    load_folded(page, "back+to+many")
    page.locator(".tile").nth(50).scroll_into_view_if_needed()
    expect(page.locator(".tile").nth(50).locator("img")).to_be_visible()
    before = page.evaluate(TOP)
    page.goto("/login")
    page.go_back()

    page.wait_for_function(f"(before) => Math.abs(({TOP})() - before) < 40", arg=before)
