"""The shortlist in a real browser: ranges, all down to here, one undo, tabs, and the walk to a colleague."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eyespot.web import ServerSettings
from tests.web.conftest import DESK, PHOTOS, copy_gallery, opened, press, serving
from tests.web.test_going_on_browser import verdicts

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser


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


# -- the walk ---------------------------------------------------------------------------------------------------------


def test_all_photos_of_a_search_judged_and_with_a_colleague_in_25_keys_and_2_clicks(
    browser: Any, page: Any, served: str
) -> None:
    """20 of the first 27 photos are a yes; a colleague without a token of the gallery holds them at the end."""
    runs = ((1, 12), (14, 16), (18, 18), (20, 22), (26, 26))  # ranks
    page.goto("/")
    page.locator("#q").fill("a bird eating a fish")  # the words are typed in any case
    press(page, ["Enter"])
    page.wait_for_url("**q=a+bird**")
    page.locator(".tile").nth(27).wait_for()
    press(page, ["ArrowDown"])  # to the first photo
    keys = 2
    columns = page.evaluate("tiles().findIndex((one) => one.offsetTop !== tiles()[0].offsetTop)")
    for first, last in runs:
        keys += _go(page, first, columns) + _go(page, last, columns, "Shift+") + 1
        press(page, "y")
    press(page, ["Shift+N"])  # all others down to here
    wait_for_save(page)
    page.locator("#share summary").click()
    page.get_by_role("button", name="Link for a colleague").click()
    link = page.get_by_label("The link").input_value()

    with opened(browser, served) as colleague:
        colleague.goto(link)
        assert colleague.locator(".tile").count() == 20
        assert colleague.get_by_text("visitor ✓ yes").count() == 20
    assert counts(page)["yes"] == 20 and counts(page)["no"] >= 6
    assert keys + 1 <= 25


def _go(page: Any, rank: int, columns: int, held: str = "") -> int:
    """To the photo of this rank, by rows as far as they lead there; how many keys that took."""
    keys = 0
    while left := rank - page.evaluate("tiles().indexOf(focused()) + 1"):
        page.keyboard.press(held + ("ArrowDown" if left >= columns else "ArrowRight" if left > 0 else "ArrowLeft"))
        keys += 1
    return keys


def test_a_saved_search_leads_back(browser: Any, tmp_path: Path, settings: ServerSettings) -> None:
    alone = replace(
        settings, gallery=copy_gallery(tmp_path, 24), cache=None, access=()
    )  # beside others it takes a name
    with serving(alone) as place, opened(browser, place, viewport=DESK) as page:
        page.goto("/?q=history+of+herons")
        page.goto("/history")
        page.get_by_role("button", name=re.compile("^Save history of herons")).click()
        page.goto("/")
        page.get_by_role("link", name=re.compile("history of herons.*saved")).click()

        expect(page.get_by_role("heading", name="history of herons")).to_be_visible()


def test_sharing_again_updates_ones_own_list_and_never_a_colleagues(page: Any, served: str) -> None:
    page.goto("/?q=a+shared+stripe")
    page.locator(".tile .picture").first.focus()
    press(page, "yy")
    wait_for_save(page)

    def share() -> Any:
        page.locator("#share:not([open]) summary").click()
        page.get_by_role("button", name="Link for a colleague").click()
        return page.locator("#share output")

    expect(share().get_by_label("The link")).to_be_visible()
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
