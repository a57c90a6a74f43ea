"""A phone in a real browser: photos of a result and of a list are chosen with a finger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from eyespot.web import ServerSettings
from tests.web.conftest import copy_gallery, serving
from tests.web.test_browser import opened

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # a browser
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, settings: ServerSettings) -> Iterator[str]:
    """A gallery of its own, for verdicts and lists are made on it."""
    gallery = copy_gallery(tmp_path_factory.mktemp("touch"))
    with serving(replace(settings, gallery=gallery, cache=None)) as place:
        yield place


def test_photos_of_a_result_are_chosen_with_a_finger_and_judged_at_once(browser: Any, address: str) -> None:
    with opened(browser, address, **PHONE) as page:
        page.goto("/?q=a+range+of+discs")
        tiles = page.locator(".tile")
        tiles.nth(0).locator("[data-act=choose]").tap()
        tiles.nth(2).locator(".picture").tap()  # once some are chosen, the whole photo is the mark
        expect(page.locator("#chosen-photos .many")).to_have_text("2 photos chosen")
        tiles.nth(1).locator("[data-act=choose]").tap()
        tiles.nth(0).locator("[data-act=choose]").tap()
        expect(tiles.nth(0).locator("[data-act=choose]")).to_have_attribute("aria-pressed", "false")
        page.locator("#chosen-photos [data-say=yes]").tap()
        expect(page.locator(".unsaved")).to_have_count(0)
        expect(page.locator("#chosen-photos")).to_be_hidden()
        found = [one.get_attribute("data-verdict") for one in tiles.all()[:4]]
        tiles.nth(3).locator(".picture").tap()  # without a choice a photo opens large
        page.locator("#large[open] h2").wait_for()

    assert found == [None, "yes", "yes", None]


def test_there_are_no_check_marks_where_a_mouse_points(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.goto("/?q=stripes")
        expect(page.locator(".tile [data-act=choose]").first).to_be_hidden()


@pytest.mark.parametrize("scripts", [True, False])
def test_photos_of_a_list_are_chosen_with_a_finger(browser: Any, address: str, scripts: bool) -> None:
    with opened(browser, address, java_script_enabled=scripts, **PHONE) as page:
        ids = [one["id"] for one in page.request.get("/v1/items?limit=5").json()["items"]]
        made = page.request.post("/v1/lists", data={"name": f"Five, scripts {scripts}", "items": ids}).json()
        page.goto(made["page"])
        bar = page.locator("#chosen-of-list")
        expect(bar).to_be_hidden()
        for at in (1, 3):
            page.locator(".tile .pick-one").nth(at).tap()
        bar.locator("input[name=name]").fill(f"Two, scripts {scripts}")
        with page.expect_navigation():
            bar.get_by_role("button", name="Put there").tap()
        expect(page.locator("h1")).to_have_text(f"Two, scripts {scripts}")
        expect(page.locator(".tile")).to_have_count(2)
        page.goto(made["page"])
        page.locator(".tile .pick-one").nth(0).tap()
        with page.expect_navigation():
            bar.get_by_role("button", name="Take off").tap()
        expect(page.locator(".tile")).to_have_count(4)
        rest = page.request.get(f"/v1/lists/{made['list']}").json()["items"]

    assert [one["id"] for one in rest] == ids[1:]
