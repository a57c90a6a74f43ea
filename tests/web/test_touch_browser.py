"""A phone in a real browser: photos of a result and of a list are chosen with a finger."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web import conftest
from tests.web.conftest import opened

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # a browser
PHONE = {"viewport": conftest.PHONE, "has_touch": True, "is_mobile": True}


def test_photos_of_a_result_are_chosen_with_a_finger_and_judged_at_once(browser: Any, served: str, page: Any) -> None:
    with opened(browser, served, **PHONE) as phone:
        phone.goto("/?q=a+range+of+discs")
        tiles = phone.locator(".tile")
        tiles.nth(0).locator("[data-act=choose]").tap()
        tiles.nth(2).locator(".picture").tap()  # once some are chosen, the whole photo is the mark
        expect(phone.locator("#chosen-photos .many")).to_have_text("2 photos chosen")
        tiles.nth(1).locator("[data-act=choose]").tap()
        tiles.nth(0).locator("[data-act=choose]").tap()
        expect(tiles.nth(0).locator("[data-act=choose]")).to_have_attribute("aria-pressed", "false")
        phone.locator("#chosen-photos [data-say=yes]").tap()
        expect(phone.locator(".unsaved")).to_have_count(0)
        expect(phone.locator("#chosen-photos")).to_be_hidden()
        found = [one.get_attribute("data-verdict") for one in tiles.all()[:4]]
        tiles.nth(3).locator(".picture").tap()  # without a choice a photo opens large
        phone.locator("#large[open] h2").wait_for()
    page.goto("/?q=stripes")

    assert found == [None, "yes", "yes", None]
    expect(page.locator(".tile [data-act=choose]").first).to_be_hidden()  # where a mouse points


def test_photos_of_a_list_are_chosen_with_a_finger(browser: Any, served: str) -> None:
    with opened(browser, served, **PHONE) as page:
        ids = [one["id"] for one in page.request.get("/v1/items?limit=5").json()["items"]]
        made = page.request.post("/v1/lists", data={"name": "Five", "items": ids}).json()
        page.goto(made["page"])
        bar = page.locator("#chosen-of-list")
        expect(bar).to_be_hidden()
        for at in (1, 3):
            page.locator(".tile .pick-one").nth(at).tap()
        bar.locator("input[name=name]").fill("Two")
        with page.expect_navigation():
            bar.get_by_role("button", name="Put there").tap()
        expect(page.locator("h1")).to_have_text("Two")
        expect(page.locator(".tile")).to_have_count(2)
        page.goto(made["page"])
        page.locator(".tile .pick-one").nth(0).tap()
        with page.expect_navigation():
            bar.get_by_role("button", name="Take off").tap()
        expect(page.locator(".tile")).to_have_count(4)
        rest = page.request.get(f"/v1/lists/{made['list']}").json()["items"]

    assert [one["id"] for one in rest] == ids[1:]
