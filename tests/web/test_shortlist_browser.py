"""The shortlist in a real browser: ranges, all down to here, one undo, tabs, and the walk to a colleague."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from eyespot.web import ServerSettings
from tests.web.conftest import PHOTOS, copy_gallery, serving
from tests.web.test_browser import opened

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, settings: ServerSettings) -> Iterator[str]:
    """A gallery of its own, for verdicts are given on it."""
    gallery = copy_gallery(tmp_path_factory.mktemp("shortlist"))
    with serving(replace(settings, gallery=gallery, cache=None)) as place:
        yield place


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address, viewport={"width": 1440, "height": 900}) as page:
        yield page


def verdicts(page: Any) -> list[str | None]:
    return [one.get_attribute("data-verdict") for one in page.locator(".tile").all()]


def wait_for_save(page: Any) -> None:
    expect(page.locator(".unsaved")).to_have_count(0)


def counts(page: Any) -> dict[str, int]:
    return {
        one.get_attribute("data-tab"): int(one.locator(".count").inner_text())
        for one in page.locator("[data-tab]").all()
    }


# -- several at once --------------------------------------------------------------------------------------------------


def test_shift_and_arrows_choose_what_the_next_key_judges(page: Any) -> None:
    page.goto("/?q=a+range+of+stripes")
    page.locator(".tile .picture").nth(1).focus()
    for key in ("Shift+ArrowRight", "Shift+ArrowRight", "y"):
        page.keyboard.press(key)
    wait_for_save(page)
    expect(page.locator(".tile").nth(4).locator(".picture")).to_be_focused()
    assert counts(page) == {"all": PHOTOS, "yes": 3, "no": 0, "doubt": 0, "unjudged": PHOTOS - 3}
    page.reload()

    assert verdicts(page)[:5] == [None, "yes", "yes", "yes", None]
    assert counts(page)["yes"] == 3


def test_shift_and_a_click_choose_from_where_the_focus_was(page: Any) -> None:
    page.goto("/?q=a+clicked+range")
    page.locator(".tile .picture").nth(2).focus()
    page.locator(".tile .picture").nth(5).click(modifiers=["Shift"])
    expect(page.locator(".tile.chosen")).to_have_count(4)
    expect(page.locator("#chosen-photos .many")).to_have_text("4 photos chosen")
    assert len(page.context.pages) == 1 and not page.locator("#large[open]").count()
    page.locator("#chosen-photos").get_by_role("button", name="Doubt").click()
    wait_for_save(page)
    page.reload()

    assert verdicts(page)[1:7] == [None, *["doubt"] * 4, None]


def test_all_down_to_here_leaves_what_has_a_verdict_and_one_undo_takes_it_back(page: Any) -> None:
    page.goto("/?q=down+to+here")
    page.locator(".tile .picture").nth(1).focus()
    page.keyboard.press("y")
    page.locator(".tile .picture").nth(6).focus()
    page.keyboard.press("Shift+N")
    wait_for_save(page)
    page.reload()
    assert verdicts(page)[:8] == ["no", "yes", *["no"] * 5, None]
    page.locator(".tile .picture").nth(9).focus()
    page.keyboard.press("Shift+D")
    page.keyboard.press("u")
    wait_for_save(page)
    page.reload()

    assert verdicts(page)[:10] == ["no", "yes", *["no"] * 5, None, None, None]


def test_a_range_that_is_not_kept_is_taken_off_and_sent_again(page: Any) -> None:
    page.goto("/?q=a+lost+range")
    page.locator(".tile .picture").first.focus()
    page.keyboard.press("Shift+ArrowRight")
    page.context.set_offline(True)
    page.keyboard.press("y")
    page.get_by_role("alert").filter(has_text="The verdict was not kept").wait_for()
    assert set(verdicts(page)) == {None} and counts(page)["yes"] == 0
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    wait_for_save(page)
    page.reload()

    assert verdicts(page)[:3] == ["yes", "yes", None]


def test_escape_chooses_none(page: Any) -> None:
    page.goto("/?q=escaped")
    page.locator(".tile .picture").first.focus()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Escape")

    expect(page.locator(".tile.chosen")).to_have_count(0)
    expect(page.locator("#chosen-photos")).to_be_hidden()


@pytest.mark.parametrize("way", ["/?q=same+keys", "/spread?q=same+keys", "/annotate"])
def test_the_same_keys_judge_on_search_spread_and_annotate(page: Any, way: str) -> None:
    photos, mark = ".tile", "data-verdict"
    if way == "/annotate":
        page.goto(way)
        page.get_by_label("Name").fill("ada")
        page.keyboard.press("Enter")
        page.get_by_label("A new query").fill("same keys to annotate")
        page.keyboard.press("Enter")
        photos, mark = "#photos [role=option]", "data-mark"
    else:
        page.goto(way)
    expect(page.locator(photos).nth(8)).to_be_attached()
    page.wait_for_timeout(300)
    page.keyboard.press("ArrowRight" if way.startswith("/?") else "d")
    keys = ("y", "Shift+ArrowRight", "n", "ArrowRight", "Shift+Y", "u", "Delete")
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_timeout(600)
    found = [one.get_attribute(mark) for one in page.locator(photos).all()][:7]
    short = [None if one in (None, "") else one[0] for one in found]
    first = [] if way.startswith("/?") else ["d"]

    assert short[: len(first) + 3] == [*first, "y", "n", "n"]
    assert set(short[len(first) + 3 :]) == {None}


# -- lists ------------------------------------------------------------------------------------------------------------


def test_chosen_photos_are_put_on_a_list(page: Any) -> None:
    page.goto("/?q=to+put+on+a+list")
    for _ in range(2):  # made, then added to
        page.locator(".tile .picture").nth(_).focus()
        page.keyboard.press("Shift+ArrowRight")
        page.get_by_role("button", name="Put on a list").click()
        page.get_by_label("A new list").fill("Chosen ones")
        page.keyboard.press("Enter")
        expect(page.locator("#told")).to_have_text(re.compile("^2 photos are (on|added to) the list Chosen ones"))
    page.goto("/lists")
    page.get_by_role("link", name="Chosen ones").click()

    expect(page.locator(".tile")).to_have_count(3)


# -- the walk ---------------------------------------------------------------------------------------------------------


@dataclass
class Hands:
    """Keys and clicks, counted."""

    page: Any
    keys: int = 0
    clicks: int = 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.keys += 1

    def click(self, place: Any) -> None:
        place.click()
        self.clicks += 1


def test_all_photos_of_a_search_judged_and_with_a_colleague_in_25_keys_and_2_clicks(
    browser: Any, page: Any, address: str
) -> None:
    """20 of the first 27 photos are a yes; a colleague without a token of the gallery holds them at the end."""
    wanted = {*range(1, 13), 14, 15, 16, 18, 20, 21, 22, 26}  # ranks
    rest = 27
    page.goto("/")
    page.locator("#q").fill("a bird eating a fish")  # the words are typed in any case
    hands = Hands(page)
    hands.press("Enter")
    page.wait_for_url("**q=a+bird**")
    page.locator(".tile").nth(rest).wait_for()
    hands.press("ArrowDown")  # to the first photo
    columns = page.evaluate("tiles().findIndex((one) => one.offsetTop !== tiles()[0].offsetTop)")
    for run in _runs(wanted):
        _go(hands, run[0], columns)
        _go(hands, run[-1], columns, "Shift+")
        hands.press("y")
    hands.press("Shift+N")  # all others down to here
    wait_for_save(page)
    hands.click(page.locator("#share summary"))
    hands.click(page.get_by_role("button", name="Link for a colleague"))
    link = page.get_by_label("The link").input_value()

    with opened(browser, address) as colleague:
        colleague.goto(link)
        assert colleague.locator(".tile").count() == len(wanted) == 20
        assert colleague.get_by_text("visitor ✓ yes").count() == 20
    assert counts(page)["yes"] == 20 and counts(page)["no"] >= 6
    print(f"{hands.keys} keys, {hands.clicks} clicks")
    assert hands.keys <= 25 and hands.clicks <= 2


def _go(hands: Hands, rank: int, columns: int, held: str = "") -> None:
    """To the photo of this rank, by rows as far as they lead there."""
    while left := rank - hands.page.evaluate("tiles().indexOf(focused()) + 1"):
        hands.press(held + ("ArrowDown" if left >= columns else "ArrowRight" if left > 0 else "ArrowLeft"))


def _runs(ranks: set[int]) -> list[list[int]]:
    """Ranks that follow each other, together."""
    found: list[list[int]] = []
    for rank in sorted(ranks):
        if found and rank == found[-1][-1] + 1:
            found[-1].append(rank)
        else:
            found.append([rank])
    return found


def test_a_saved_search_leads_back(browser: Any, tmp_path: Path, settings: ServerSettings) -> None:
    alone = replace(settings, gallery=copy_gallery(tmp_path), cache=None, access=())  # beside others it takes a name
    with serving(alone) as place, opened(browser, place, viewport={"width": 1440, "height": 900}) as page:
        page.goto("/?q=history+of+herons")
        page.goto("/history")
        page.get_by_role("button", name=re.compile("^Save history of herons")).click()
        page.goto("/")
        page.get_by_role("link", name=re.compile("history of herons.*saved")).click()

        expect(page.get_by_role("heading", name="history of herons")).to_be_visible()


def test_sharing_again_updates_ones_own_list_and_never_a_colleagues(browser: Any, page: Any, address: str) -> None:
    page.goto("/?q=a+shared+stripe")
    for at in (0, 1):
        page.locator(".tile .picture").nth(at).focus()
        page.keyboard.press("y")
    wait_for_save(page)

    def share() -> Any:
        page.locator("#share:not([open]) summary").click()
        page.get_by_role("button", name="Link for a colleague").click()
        return page.locator("#share output")

    expect(share().get_by_label("The link")).to_be_visible()
    page.reload()
    page.locator(".tile .picture").first.focus()
    page.keyboard.press("n")
    wait_for_save(page)
    expect(share()).to_contain_text("added to your list, and 1 without one is taken off")

    page.context.request.post(f"{address}/name", form={"name": "Bo", "next": "/"}, headers={"Origin": address})
    page.goto("/?q=a+shared+stripe")
    page.locator(".tile .picture").first.focus()
    page.keyboard.press("y")
    wait_for_save(page)
    expect(share()).to_contain_text("is visitor's; choose another name")
    expect(page.locator("#list-name")).to_have_value("a shared stripe 2")
