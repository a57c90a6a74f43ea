"""Going on through photos in a real browser: large, with verdicts, without a network, and back again."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eyespot.web import ServerSettings
from tests.web.conftest import PHOTOS, copy_gallery, serving
from tests.web.test_browser import DROP, opened, titles

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, settings: ServerSettings) -> Iterator[str]:
    """A gallery of its own, for verdicts are given on it."""
    gallery = copy_gallery(tmp_path_factory.mktemp("going-on"))
    with serving(replace(settings, gallery=gallery, cache=None)) as place:
        yield place


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address) as page:
        yield page


def large(page: Any, rank: int) -> None:
    expect(page.locator("#large h2 .soft")).to_have_text(str(rank))


def verdicts(page: Any) -> list[str | None]:
    return [one.get_attribute("data-verdict") for one in page.locator(".tile").all()]


# -- large ----------------------------------------------------------------------------------------------------------


def test_the_arrow_to_the_next_photo_stands_right_of_the_one_back(page: Any) -> None:
    page.goto("/?q=stripes")
    page.locator(".tile .picture").first.click()
    places = [
        page.locator(f"#large button[aria-label='{name}']").bounding_box()["x"]
        for name in ("Previous photo", "Next photo", "Close")
    ]

    assert places == sorted(places)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Close"


def test_the_large_view_goes_on_to_the_last_photo(page: Any) -> None:
    page.goto("/?q=stripes")
    page.locator(".tile .picture").nth(58).click()
    for rank in range(59, PHOTOS):
        large(page, rank)
        page.keyboard.press("ArrowRight")
    large(page, PHOTOS)
    page.keyboard.press("ArrowRight")

    expect(page.locator("#told")).to_have_text("This is the last photo.")
    assert page.locator(".tile").count() == PHOTOS


# -- back -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, {"width": 390, "height": 844}])
def test_back_brings_the_place_and_the_photos(browser: Any, address: str, size: dict[str, int]) -> None:
    with opened(browser, address, viewport=size) as page:
        page.goto("/?q=discs")
        page.locator(".more").scroll_into_view_if_needed()
        page.locator(f".tile:nth-child({PHOTOS})").wait_for()
        page.locator(".tile").nth(64).scroll_into_view_if_needed()
        before = page.locator(".tile").nth(64).bounding_box()["y"]
        page.goto("/docs")
        page.go_back()
        page.locator(f".tile:nth-child({PHOTOS})").wait_for()
        page.wait_for_timeout(300)

        assert abs(page.locator(".tile").nth(64).bounding_box()["y"] - before) < 40


def test_a_new_visit_begins_at_the_top(page: Any) -> None:
    page.goto("/?q=discs")
    page.locator(".more").scroll_into_view_if_needed()
    page.locator(f".tile:nth-child({PHOTOS})").wait_for()
    page.goto("/?q=discs")

    assert (page.locator(".tile").count(), page.evaluate("scrollY")) == (60, 0)


# -- without a network ----------------------------------------------------------------------------------------------


def test_the_grid_goes_on_when_the_network_is_back(page: Any) -> None:
    page.goto("/?q=stripes")
    page.context.set_offline(True)
    page.locator(".more").scroll_into_view_if_needed()
    page.get_by_role("alert").filter(has_text="The next photos did not come").wait_for()
    assert page.locator(".tile").count() == 60
    page.context.set_offline(False)

    expect(page.locator(".tile")).to_have_count(PHOTOS)
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".picture.failed")).to_have_count(0)


def test_a_photo_that_does_not_come_is_tried_again(page: Any) -> None:
    page.goto("/?q=stripes")
    page.context.set_offline(True)
    page.locator(".tile .picture").first.click()
    page.get_by_role("alert").filter(has_text="The photo cannot be shown").wait_for()
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()

    large(page, 1)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_dropped_picture_is_not_being_sent_for_ever(page: Any, gallery: Path) -> None:
    page.goto("/")
    page.context.set_offline(True)
    photo = gallery.parent / "photos" / "010.jpg"
    page.evaluate(DROP, ["drop", base64.b64encode(photo.read_bytes()).decode()])
    alert = page.get_by_role("alert").filter(has_text="The picture was not sent")
    alert.wait_for()
    assert "being sent" not in page.locator("#told").inner_text()
    page.context.set_offline(False)
    alert.get_by_role("button", name="Try again").click()  # the list of photos may have one, too
    page.wait_for_url("**picture=**")

    assert titles(page)[0] == "photo 10"


def test_a_verdict_that_is_not_kept_is_taken_off_and_sent_again(page: Any) -> None:
    page.goto("/?q=a+lost+line")
    page.locator(".tile .picture").first.focus()
    page.context.set_offline(True)
    page.keyboard.press("y")
    alert = page.get_by_role("alert").filter(has_text="The verdict was not kept")
    alert.wait_for()
    assert verdicts(page)[0] is None
    page.context.set_offline(False)
    alert.get_by_role("button", name="Try again").click()  # the list of photos may have one, too
    wait_for_save(page)
    page.reload()

    assert verdicts(page)[:2] == ["yes", None]


# -- verdicts -------------------------------------------------------------------------------------------------------


def wait_for_save(page: Any) -> None:
    """Whatever was said is on the disk."""
    expect(page.locator("[data-verdict]").first).to_be_visible()
    expect(page.locator(".unsaved")).to_have_count(0)


def test_one_key_judges_and_goes_on(page: Any) -> None:
    page.goto("/?q=a+red+disc")
    page.locator(".tile .picture").first.focus()
    for key in "ynd":
        page.keyboard.press(key)
    wait_for_save(page)

    assert verdicts(page)[:4] == ["yes", "no", "doubt", None]
    expect(page.locator(".tile").nth(3).locator(".picture")).to_be_focused()
    page.reload()
    assert verdicts(page)[:4] == ["yes", "no", "doubt", None]


def test_the_last_loaded_photo_leads_to_those_that_come(page: Any) -> None:
    page.goto("/?q=a+red+stripe")
    page.locator(".tile .picture").nth(59).focus()
    page.keyboard.press("n")

    expect(page.locator(".tile").nth(60).locator(".picture")).to_be_focused()


@pytest.mark.parametrize("way", ["undo", "delete", "large"])
def test_a_verdict_is_taken_back(page: Any, way: str) -> None:
    page.goto(f"/?q=a+blue+disc+{way}")
    page.locator(".tile .picture").first.focus()
    page.keyboard.press("y")
    wait_for_save(page)
    if way == "undo":
        page.keyboard.press("u")
        expect(page.locator(".tile").first.locator(".picture")).to_be_focused()
    elif way == "delete":
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Delete")
    else:
        page.locator(".tile .picture").first.click()
        page.get_by_role("button", name=re.compile("Take it back")).click()
    expect(page.locator("#told")).to_have_text("Taken back.")
    page.reload()

    assert set(verdicts(page)) == {None}


def test_undo_brings_the_verdict_before(page: Any) -> None:
    page.goto("/?q=a+green+stripe")
    page.locator(".tile .picture").first.focus()
    for key in ("y", "ArrowLeft", "n", "u"):
        page.keyboard.press(key)
    wait_for_save(page)
    page.reload()

    assert verdicts(page)[0] == "yes"


def test_of_a_spread_a_key_judges_the_first_photo_at_once(page: Any) -> None:
    page.goto("/spread?q=orange")
    page.keyboard.press("y")
    page.keyboard.press("n")
    wait_for_save(page)

    assert verdicts(page)[:3] == ["yes", "no", None]


def test_the_next_spread_waits_for_the_verdicts_of_this_one(page: Any) -> None:
    page.goto("/spread?q=purple")
    for _ in page.locator(".tile").all():
        page.keyboard.press("n")
    with page.expect_navigation():
        page.keyboard.press("Enter")  # the way on has the focus

    expect(page.get_by_text(re.compile("^16 of about 30 photos judged"))).to_be_visible()


# -- menus ----------------------------------------------------------------------------------------------------------


def test_a_menu_closes_by_escape_and_by_a_click_elsewhere_that_opens_nothing(page: Any) -> None:
    page.goto("/?q=stripes")
    menu = page.locator(".menu", has_text="Download")
    menu.locator("summary").click()
    page.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    expect(menu.locator("summary")).to_be_focused()
    menu.locator("summary").click()
    page.locator(".tile .picture").first.click(position={"x": 5, "y": 60})

    expect(menu).not_to_have_attribute("open", "")
    assert not page.locator("#large[open]").count()
