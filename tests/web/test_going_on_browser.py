"""Going on through photos in a real browser: large, with verdicts and flags, without a network, and back again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eyespot.web import ServerSettings
from tests.web.conftest import PHONE, PHOTOS, opened, press, rewrite_script, verdicts
from tests.web.test_browser import drop, titles

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser
TOP = "() => document.querySelectorAll('.tile')[64]?.getBoundingClientRect().top"


def large(page: Any, rank: int) -> None:
    expect(page.locator("#large h2 .soft")).to_have_text(str(rank))


def wait_for_save(page: Any) -> None:
    expect(page.locator("[data-verdict]").first).to_be_visible()
    expect(page.locator(".unsaved")).to_have_count(0)


def test_the_large_view_goes_on_to_the_last_photo(page: Any) -> None:
    page.goto("/?q=stripes")
    page.locator(".tile .picture").nth(58).click()
    names = ("Previous photo", "Next photo", "Close")
    places = [page.locator(f"#large button[aria-label='{name}']").bounding_box()["x"] for name in names]
    assert places == sorted(places)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Close"
    for rank in range(59, PHOTOS):
        large(page, rank)
        page.keyboard.press("ArrowRight")
    large(page, PHOTOS)
    page.keyboard.press("ArrowRight")

    expect(page.locator("#told")).to_contain_text("last photo")
    assert page.locator(".tile").count() == PHOTOS


def test_keys_pressed_before_the_large_photo_has_come_count(page: Any) -> None:
    held, let_go = list[Any](), list[bool]()
    page.goto("/?q=stripes&grouped=false")
    expect(page.locator(".tile")).to_have_count(60)
    page.route("**/photo/**", lambda route: route.continue_() if let_go else held.append(route))
    page.locator(".tile .picture").first.click()
    press(page, ["ArrowRight"] * 3)
    let_go.append(True)
    for route in held:
        route.continue_()

    large(page, 4)


def test_a_photo_is_flagged_in_the_large_view_and_the_letter_is_no_verdict(browser: Any, served: str) -> None:
    with opened(browser, served, "Flo") as page:
        page.goto("/?q=stripes+with+flags")
        tile = page.locator(".tile").first
        tile.locator(".picture").click()
        page.locator("#large[open] h2").wait_for()
        page.keyboard.press("f")
        page.locator("#flagging[open]").wait_for()
        page.keyboard.press("1")
        expect(page.locator("#large .flagged")).to_have_text("⚑ a face")
        page.locator("#large [data-act=flag]").click()
        page.locator("#flag-reason").fill("no")
        page.keyboard.press("Enter")
        expect(page.locator("#large .flagged")).to_contain_text("another reason: no")
        page.keyboard.press("Escape")
        expect(page.locator("#large")).to_be_hidden()
        tile.locator(".picture").click()
        expect(page.locator("#large .flagged")).to_contain_text("⚑ a face")
        raised = page.request.get("/annotate/flagged.csv").text()

        assert raised.count(",Flo,") == 2 and ",face," in raised and ",other," in raised
        assert tile.get_attribute("data-verdict") is None


@pytest.mark.parametrize("size", [{"width": 1280, "height": 720}, PHONE])
def test_back_brings_the_place_and_the_photos(browser: Any, served: str, size: dict[str, int]) -> None:
    with opened(browser, served, viewport=size) as page:
        page.goto("/?q=discs")
        page.locator(".more").scroll_into_view_if_needed()
        page.locator(f".tile:nth-child({PHOTOS})").wait_for()
        page.locator(".tile").nth(64).scroll_into_view_if_needed()
        before = page.evaluate(TOP)
        page.goto("/login")
        page.go_back()
        page.wait_for_function(f"(before) => Math.abs(({TOP})() - before) < 40", arg=before)
        assert page.locator(".tile").count() == PHOTOS
        page.goto("/?q=discs")
        assert (page.locator(".tile").count(), page.evaluate("scrollY")) == (60, 0)


def test_photos_go_on_when_the_network_is_back(page: Any) -> None:
    page.goto("/?q=stripes", wait_until="networkidle")
    page.context.set_offline(True)
    page.locator(".tile .picture").first.click()
    page.get_by_role("alert").filter(has_text="cannot be shown").wait_for()
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    large(page, 1)
    expect(page.get_by_role("alert")).to_have_count(0)

    page.keyboard.press("Escape")
    page.context.set_offline(True)
    page.locator(".more").scroll_into_view_if_needed()
    page.get_by_role("alert").filter(has_text="did not come").wait_for()
    assert page.locator(".tile").count() == 60
    page.context.set_offline(False)
    expect(page.locator(".tile")).to_have_count(PHOTOS)
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".picture.failed")).to_have_count(0)


def test_a_dropped_picture_is_not_being_sent_for_ever(page: Any, settings: ServerSettings) -> None:
    page.goto("/", wait_until="networkidle")
    page.context.set_offline(True)
    drop(page, settings.gallery.parent / "photos" / "010.jpg")
    alert = page.get_by_role("alert").filter(has_text="The picture was not sent")
    alert.wait_for()
    assert "being sent" not in page.locator("#told").inner_text()
    page.context.set_offline(False)
    alert.get_by_role("button", name="Try again").click()  # the list of photos may have one, too
    page.wait_for_url("**picture=**")

    assert titles(page)[0] == "photo 10"


@pytest.mark.parametrize("keys", ["yyn", ("Shift+ArrowRight", "y", "n")])
def test_verdicts_behind_a_lost_network_wait_through_a_reload(page: Any, keys: tuple[str, ...], tmp_path: Path) -> None:
    """Also several at once: all that was said is there when the network is back, and the tabs count it meanwhile."""
    page.route("**/v1/judgements/**", lambda route: route.abort())  # before the page, or the first may slip by
    # A query of this run alone: what an earlier one judged stays on the server
    page.goto(f"/?q=lost+{tmp_path.name}", wait_until="networkidle")
    page.locator(".tile .picture").first.focus()
    press(page, keys)
    page.get_by_role("alert").filter(has_text="3 verdicts wait in this browser").wait_for()
    assert verdicts(page)[:4] == (said := ["yes", "yes", "no", None])
    page.reload()
    page.get_by_role("alert").filter(has_text="3 verdicts wait in this browser").wait_for()
    assert verdicts(page)[:4] == said and page.locator("[data-tab=yes] .count").inner_text() == "2"
    page.unroute("**/v1/judgements/**")
    # By the button, unless the page has sent them by itself already: then it is gone
    page.evaluate("() => document.querySelector('[role=alert] button')?.click()")
    page.wait_for_function("() => localStorage.length === 0")  # the server has them
    page.reload()

    assert verdicts(page)[:4] == said


def test_one_key_judges_and_goes_on_once_however_long_it_is_held(page: Any) -> None:
    page.goto("/?q=a+red+disc")
    page.locator(".tile .picture").first.focus()
    page.keyboard.down("y")
    expect(page.locator(".tile").nth(1).locator(".picture")).to_be_focused()
    for _ in range(5):  # the browser reports repeats of a key that was not let go
        page.keyboard.down("y")
    page.keyboard.up("y")
    press(page, "nd")
    wait_for_save(page)
    assert verdicts(page)[:4] == ["yes", "no", "doubt", None]
    expect(page.locator(".tile").nth(3).locator(".picture")).to_be_focused()
    page.locator(".tile .picture").nth(59).focus()
    press(page, "n")
    expect(page.locator(".tile").nth(60).locator(".picture")).to_be_focused()  # which came meanwhile
    wait_for_save(page)
    page.reload()

    assert verdicts(page)[:4] == ["yes", "no", "doubt", None]


def test_a_verdict_is_taken_back_in_three_ways(page: Any) -> None:
    page.goto("/?q=a+blue+disc+taken+back")
    first = page.locator(".tile").first
    first.locator(".picture").focus()
    press(page, ("y", "ArrowLeft", "n", "u"))
    expect(first).to_have_attribute("data-verdict", "yes")  # undo brings the one before
    press(page, "u")
    expect(page.locator("#told")).to_have_text("Taken back.")
    expect(first.locator(".picture")).to_be_focused()
    press(page, ("y", "ArrowLeft", "Delete"))
    expect(first).not_to_have_attribute("data-verdict", "yes")
    first.locator(".picture").focus()
    press(page, "y")
    wait_for_save(page)
    first.locator(".picture").click()
    page.get_by_role("button", name=re.compile("Take it back")).click()
    expect(first).not_to_have_attribute("data-verdict", "yes")
    expect(page.locator(".unsaved")).to_have_count(0)
    page.reload()

    assert set(verdicts(page)) == {None}


def test_a_menu_closes_by_escape_and_by_a_click_elsewhere_that_opens_nothing(page: Any) -> None:
    page.goto("/?q=stripes")
    menu = page.locator(".menu", has=page.locator("summary", has_text="Download"))
    menu.locator("summary").click()
    page.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    expect(menu.locator("summary")).to_be_focused()
    menu.locator("summary").click()
    page.locator(".tile .picture").first.click(position={"x": 5, "y": 60})

    expect(menu).not_to_have_attribute("open", "")
    assert not page.locator("#large[open]").count()


# -- thousands of photos on one page ------------------------------------------------------------------------------


SMALL = {"width": 640, "height": 300}
LAST = f".tile >> nth={PHOTOS - 1}"
PLACES = """() => [...document.querySelectorAll(".tile")].map((one) => one.getBoundingClientRect())
  .map((at) => [at.left, at.top + scrollY, at.width, at.height].map(Math.round))"""
TOP_OF_50 = "() => document.querySelectorAll('.tile')[50]?.getBoundingClientRect().top"


@pytest.fixture
def many_page(browser: Any, served: str) -> Iterator[Any]:
    """A small window, with eight photos to a block."""
    with opened(browser, served, viewport=SMALL) as page:
        rewrite_script(page, "results.js", "const MANY = 240, BLOCK = 60;", "const MANY = 16, BLOCK = 8;")
        yield page


def load_all(page: Any, query: str) -> None:
    page.goto(f"/?q={query}&grouped=false")
    page.locator(".more").scroll_into_view_if_needed()
    page.locator(LAST).wait_for(state="attached")


def load_folded(page: Any, query: str) -> None:
    load_all(page, query)
    expect(page.locator(".block.far")).not_to_have_count(0)


def test_what_is_far_leaves_and_comes_back_as_it_was(browser: Any, served: str, many_page: Any) -> None:
    load_folded(many_page, "many")
    with opened(browser, served, viewport=SMALL) as plain:
        load_all(plain, "many")
        rows = plain.evaluate(PLACES)
        assert plain.locator(".block").count() == 0

    assert many_page.locator(".tile img").count() < PHOTOS
    many_page.evaluate("scrollTo(0, 0)")
    expect(many_page.locator(".tile img").first).to_be_visible()
    expect(many_page.locator(".tile").nth(40).locator("img")).to_have_count(0)
    folded = many_page.evaluate(PLACES)
    assert len(folded) == len(rows) == PHOTOS
    assert max(abs(a - b) for one, other in zip(folded, rows, strict=True) for a, b in zip(one, other, strict=True)) < 2

    many_page.set_viewport_size({"width": 900, "height": 300})
    many_page.wait_for_function(f"""() => {{  // all rows but the last end where the grid ends
        const ends = {{}}, grid = document.querySelector("#grid").getBoundingClientRect().right;
        for (const [left, top, width] of ({PLACES})()) ends[top] = Math.max(ends[top] || 0, left + width);
        const rows = Object.values(ends).slice(0, -1);
        return rows.length > 3 && rows.every((end) => Math.abs(end - grid) < 3);
    }}""")


def test_keys_go_through_all_photos_and_back_and_a_verdict_is_on_those_that_are_far(many_page: Any) -> None:
    load_folded(many_page, "keys+through+many")
    many_page.evaluate("scrollTo(0, 0)")
    expect(many_page.locator(".tile img").first).to_be_visible()
    many_page.locator(".tile .picture").first.focus()
    press(many_page, ["ArrowRight"] * PHOTOS)
    assert many_page.evaluate("tiles().indexOf(focused())") == PHOTOS - 1
    expect(many_page.locator(".tile").first.locator("img")).to_have_count(0)
    press(many_page, ["Shift+N"])
    expect(many_page.locator(".unsaved")).to_have_count(0)
    many_page.locator(LAST).locator(".picture").focus()
    press(many_page, ["ArrowUp"] * 40)

    assert many_page.evaluate("tiles().indexOf(focused())") < 10
    expect(many_page.locator(".tile:focus-within img")).to_be_visible()
    many_page.evaluate("scrollTo(0, 0)")
    expect(many_page.locator(".tile").first.locator(".said")).to_have_text("✕ no")
    assert many_page.locator(".tile[data-verdict=no]").count() == PHOTOS


def test_back_finds_the_row_though_blocks_lie_above(many_page: Any) -> None:
    load_folded(many_page, "back+to+many")
    many_page.locator(".tile").nth(50).scroll_into_view_if_needed()
    expect(many_page.locator(".tile").nth(50).locator("img")).to_be_visible()
    before = many_page.evaluate(TOP_OF_50)
    many_page.goto("/login")
    many_page.go_back()

    many_page.wait_for_function(f"(before) => Math.abs(({TOP_OF_50})() - before) < 40", arg=before)
