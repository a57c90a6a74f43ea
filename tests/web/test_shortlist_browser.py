"""The shortlist in a real browser: ranges, all down to here, one undo, tabs, fingers, and the link for a colleague."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.web.conftest import PHONE, PHOTOS, opened, press
from tests.web.test_going_on_browser import verdicts

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser
TOUCH = {"viewport": PHONE, "has_touch": True, "is_mobile": True}


def wait_for_save(page: Any) -> None:
    expect(page.locator(".unsaved")).to_have_count(0)


def counts(page: Any) -> dict[str, int]:
    return {
        one.get_attribute("data-tab"): int(one.locator(".count").inner_text())
        for one in page.locator("[data-tab]").all()
    }


# -- several at once --------------------------------------------------------------------------------------------------


def test_ranges_are_chosen_and_judged_at_once_and_all_down_to_here_leaves_what_has_a_verdict(page: Any) -> None:
    page.goto("/?q=a+range+of+stripes")
    photos = page.locator(".tile .picture")
    photos.nth(1).focus()
    press(page, ("Shift+ArrowRight", "Shift+ArrowRight", "y"))
    wait_for_save(page)
    expect(photos.nth(4)).to_be_focused()
    assert counts(page) == {"all": PHOTOS, "yes": 3, "no": 0, "doubt": 0, "unjudged": PHOTOS - 3}

    press(page, ("Shift+ArrowRight", "Escape"))
    expect(page.locator(".tile.chosen")).to_have_count(0)
    expect(page.locator("#chosen-photos")).to_be_hidden()

    photos.nth(4).focus()
    photos.nth(6).click(modifiers=["Shift"])
    expect(page.locator(".tile.chosen")).to_have_count(3)
    expect(page.locator("#chosen-photos .many")).to_have_text("3 photos chosen")
    assert len(page.context.pages) == 1 and not page.locator("#large[open]").count()
    page.locator("#chosen-photos").get_by_role("button", name="Doubt").click()

    photos.nth(8).focus()
    press(page, ["Shift+N"])
    wait_for_save(page)
    page.reload()
    photos.nth(10).focus()
    press(page, ("Shift+D", "u"))  # one undo for all of them
    wait_for_save(page)
    page.reload()
    assert verdicts(page)[:11] == ["no", *["yes"] * 3, *["doubt"] * 3, "no", "no", None, None]
    assert counts(page) == {"all": PHOTOS, "yes": 3, "no": 3, "doubt": 3, "unjudged": PHOTOS - 9}


@pytest.mark.parametrize("way", ["/?q=same+keys", "/spread?q=same+keys", "/annotate"])
def test_the_same_keys_judge_on_search_spread_and_annotate(page: Any, way: str) -> None:
    photos, mark = ".tile", "data-verdict"
    page.goto(way)
    if way == "/annotate":
        page.get_by_label("Name").fill("ada")
        page.keyboard.press("Enter")
        page.get_by_label("A new query").fill("same keys to annotate")
        page.keyboard.press("Enter")
        photos, mark = "#photos [role=option]", "data-mark"
        page.wait_for_selector(".shot.here")
    expect(page.locator(photos).nth(8)).to_be_attached()

    def judged(*letters: str) -> None:
        """The first photos bear verdicts with these first letters, and the next two none."""
        for at, letter in enumerate((*first, *letters)):
            expect(page.locator(photos).nth(at)).to_have_attribute(mark, re.compile(f"^{letter}"))
        for at in range(len(first) + len(letters), len(first) + len(letters) + 2):
            expect(page.locator(photos).nth(at)).not_to_have_attribute(mark, re.compile("."))

    first = [] if way.startswith("/?") else ["d"]
    press(page, "d" if first else ["ArrowRight"])
    judged()
    press(page, ("y", "Shift+ArrowRight", "n"))
    judged("y", "n", "n")
    press(page, ("ArrowRight", "Shift+Y", "u", "Delete"))
    judged("y", "n", "n")


# -- lists ------------------------------------------------------------------------------------------------------------


def test_chosen_photos_are_put_on_a_list(page: Any) -> None:
    page.goto("/?q=to+put+on+a+list")
    for at in range(2):  # made, then added to
        page.locator(".tile .picture").nth(at).focus()
        page.keyboard.press("Shift+ArrowRight")
        page.get_by_role("button", name="Put on a list").click()
        page.get_by_label("A new list").fill("Chosen ones")
        page.keyboard.press("Enter")
        expect(page.locator("#told")).to_have_text(re.compile("^2 photos are (on|added to)"))
    page.goto("/lists")
    page.get_by_role("link", name="Chosen ones").click()

    expect(page.locator(".tile")).to_have_count(3)


def test_a_shared_list_is_seen_by_a_colleague_and_sharing_again_updates_ones_own_alone(
    browser: Any, page: Any, served: str
) -> None:
    page.goto("/?q=a+shared+stripe")
    page.locator(".tile .picture").first.focus()
    press(page, "yy")
    wait_for_save(page)

    def share() -> Any:
        page.locator("#share:not([open]) summary").click()
        page.get_by_role("button", name="Link for a colleague").click()
        return page.locator("#share output")

    link = share().get_by_label("The link").input_value()
    with opened(browser, served) as colleague:  # without a token of the gallery
        colleague.goto(link)
        assert colleague.locator(".tile").count() == colleague.get_by_text("visitor ✓ yes").count() == 2
    page.reload()
    page.locator(".tile .picture").first.focus()
    press(page, "n")
    wait_for_save(page)
    expect(share()).to_contain_text("1 without one is taken off")

    page.context.request.post(f"{served}/name", form={"name": "Bo", "next": "/"}, headers={"Origin": served})
    page.goto("/?q=a+shared+stripe")
    page.locator(".tile .picture").first.focus()
    press(page, "y")
    wait_for_save(page)
    expect(share()).to_contain_text("is visitor's")
    expect(page.locator("#list-name")).to_have_value("a shared stripe 2")


# -- with a finger -----------------------------------------------------------------------------------------------------


def test_photos_of_a_result_are_chosen_with_a_finger_and_judged_at_once(browser: Any, served: str, page: Any) -> None:
    with opened(browser, served, **TOUCH) as phone:
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
    with opened(browser, served, **TOUCH) as page:
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
