"""Disputes between annotators in a real browser: settled where one is, taken back, and looked at large."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from eyespot.web import ServerSettings
from tests.web.conftest import at_this_machine, copy_gallery, serving
from tests.web.test_browser import opened

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser
DISPUTES = 24


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, settings: ServerSettings) -> Iterator[str]:
    """Ada says yes to 24 photos, Bob says no."""
    settings = replace(settings, gallery=copy_gallery(tmp_path_factory.mktemp("disputes"), DISPUTES), cache=None)
    for name, mark in (("Ada", "y"), ("Bob", "n")):
        with at_this_machine(settings) as client:
            client.post("/name", data={"name": name})
            client.post("/annotate/queries", data={"text": "stripes"})
            photos = client.get("/annotate/photos", params={"query": "stripes"}).json()["photos"]
            marks = {"marks": {one["image"]: mark for one in photos}}
            assert client.post("/annotate/marks", params={"query": "stripes"}, json=marks).status_code == 200
    with serving(settings) as place:
        yield place


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address, viewport={"width": 1000, "height": 700}) as page:
        page.goto("/annotate")
        page.locator("input[name=name]").fill("Cem")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        page.goto("/annotate/disputes?query=stripes")
        yield page


def test_settling_a_dispute_leaves_one_where_one_is(page: Any) -> None:
    card = page.locator("#photo-20")
    card.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    card.get_by_role("button", name="Photo 20 is not relevant").click()
    expect(card).to_contain_text("Settled as not relevant by Cem")

    assert (page.evaluate("scrollY"), before > 500) == (before, True)
    expect(page.locator("#left")).to_have_text(str(DISPUTES - 1))
    expect(card.get_by_role("button", name="Photo 20 is not relevant")).to_be_focused()
    page.reload()
    expect(card).to_contain_text("Settled as not relevant by Cem")
    card.get_by_role("button", name="take my word back").click()
    expect(card).to_contain_text("Open")
    expect(page.locator("#left")).to_have_text(str(DISPUTES))


def test_without_a_network_the_photo_says_so_and_is_settled_later(page: Any) -> None:
    card = page.locator("#photo-1")
    page.context.set_offline(True)
    card.get_by_role("button", name="Photo 1 is relevant").click()
    card.get_by_role("alert").filter(has_text="This is not saved yet").wait_for()
    page.context.set_offline(False)

    expect(card).to_contain_text("Settled as relevant by Cem")
    expect(card.get_by_role("alert")).to_have_count(0)


def test_a_disputed_photo_is_looked_at_large(page: Any) -> None:
    page.locator("#photo-2 .enlarge").click()
    assert "/1600/" in page.locator("#zoom[open] img").get_attribute("src")
    page.keyboard.press("Escape")

    expect(page.locator("#zoom")).to_be_hidden()
    expect(page.locator("#photo-2 .enlarge")).to_be_focused()


def test_without_scripts_the_page_comes_back_to_the_photo(browser: Any, address: str) -> None:
    with opened(browser, address, java_script_enabled=False, viewport={"width": 1000, "height": 700}) as page:
        page.goto("/annotate")
        page.locator("input[name=name]").fill("Dora")
        with page.expect_navigation():
            page.get_by_role("button", name="Go on").click()
        page.goto("/annotate/disputes?query=stripes")
        page.locator("#photo-22").get_by_role("button", name="Photo 22 is relevant").click()
        page.wait_for_url("**#photo-22")

        expect(page.locator("#photo-22")).to_contain_text("Settled as relevant by Dora")
        expect(page.locator("#photo-22")).to_be_in_viewport()
