"""What a person does on the search page, in a real browser: with a mouse, with keys alone, without scripts."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eyespot.web import Judging, Role, ServerSettings
from tests.web.conftest import PHONE, PHOTOS, TOKENS, copy_gallery, opened, press, serving, verdicts
from tests.worlds import copy_of_sample_gallery

pytestmark = pytest.mark.long  # minutes of a browser

expect = pytest.importorskip("playwright.sync_api").expect

DROP = """([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
  const carried = new DataTransfer();
  carried.items.add(new File([bytes], "photo.jpg", { type: "image/jpeg" }));
  const more = name === "paste" ? { clipboardData: carried } : { dataTransfer: carried };
  const Kind = name === "paste" ? ClipboardEvent : DragEvent;
  document.body.dispatchEvent(new Kind(name, { bubbles: true, cancelable: true, ...more }));
}"""


def titles(page: Any) -> list[str]:
    return [text.strip() for text in page.locator(".tile .name").all_text_contents()]


def drop(page: Any, photo: Path, way: str = "drop") -> None:
    page.evaluate(DROP, [way, base64.b64encode(photo.read_bytes()).decode()])


def test_words_are_typed_and_photos_come_without_an_end(page: Any) -> None:
    page.goto("/")
    page.get_by_role("searchbox").fill("red stripes")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=red+stripes**")
    assert page.locator(".tile").count() == 60

    page.locator(".more").scroll_into_view_if_needed()
    page.locator(f".tile:nth-child({PHOTOS})").wait_for()

    assert page.locator(".facts b").all_text_contents() == [str(rank) for rank in range(1, PHOTOS + 1)]
    assert page.locator(".more").count() == 0
    assert page.get_by_text("by pictures and labels").first.is_visible()


@pytest.mark.parametrize("size", [{"width": 1440, "height": 900}, {"width": 1600, "height": 1000}, PHONE])
def test_the_first_page_with_real_photos_weighs_less_than_600_kb(
    browser: Any, tmp_path: Path, size: dict[str, int]
) -> None:
    weigh = "performance.getEntries().map((one) => one.transferSize ?? 0)"
    with (
        serving(ServerSettings(copy_of_sample_gallery(tmp_path / "gallery"))) as address,
        opened(browser, address, viewport=size) as page,
    ):
        for way in ("/", "/?q=a+windmill"):
            page.goto(way, wait_until="networkidle")
            parts = page.evaluate(weigh)
            assert len(parts) > 20 and sum(parts) < 600_000, (way, sum(parts))


def test_a_picture_is_searched_with_however_it_comes(page: Any, settings: ServerSettings, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no picture")
    photos = settings.gallery.parent / "photos"
    page.goto("/")
    for way, number in (("drop", 10), ("paste", 11), ("choose", 12)):
        photo, before = photos / f"0{number}.jpg", page.url
        if way == "choose":
            page.locator("#file").set_input_files(photo)
        else:
            drop(page, photo, way)
        page.wait_for_url(lambda place, before=before: "picture=" in place and place != before)
        assert titles(page)[0] == f"photo {number}", way
        assert page.get_by_text("your picture").is_visible()
    page.locator("#file").set_input_files(tmp_path / "a.png")
    page.get_by_role("alert").filter(has_text="not a picture").wait_for()

    assert titles(page)[0] == "photo 12"  # nothing is lost


def test_more_like_this_not_this_and_taking_both_back(page: Any) -> None:
    page.goto("/?q=stripes")
    first, second = titles(page)[:2]
    page.locator(".tile").nth(1).hover()
    page.get_by_role("link", name=f"More like this: {second}").click()
    page.wait_for_url("**like=**")
    assert titles(page)[0] == second

    page.locator(".tile").nth(0).hover()
    page.get_by_role("link", name=f"Not this: {second}").click()
    page.wait_for_url("**unlike=**")
    assert second not in titles(page)
    page.locator(".chip").click()
    page.wait_for_url(lambda place: "like" not in place)

    assert titles(page)[:2] == [first, second]


def test_keys_alone_do_everything(page: Any) -> None:
    """From the box to the second photo, large, to the next one, judged, closed, and more like it."""
    page.goto("/?q=stripes+by+keys")
    names = titles(page)
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.press("Tab")
    page.evaluate("document.activeElement.blur()")
    press(page, ("ArrowRight", "ArrowRight", "Enter"))
    page.locator("#large h2", has_text=names[1]).wait_for()
    page.keyboard.press("ArrowRight")
    page.locator("#large h2", has_text=names[2]).wait_for()
    page.keyboard.press("y")
    page.locator("#large h2", has_text=names[3]).wait_for()  # a verdict goes on by itself
    press(page, ("Escape", "ArrowLeft"))
    expect(page.locator(".tile[data-verdict=yes]:focus-within")).to_have_count(1)
    page.keyboard.press("m")
    page.wait_for_url("**like=**")

    assert titles(page)[0] == names[2]


def test_a_photo_is_a_page_of_its_own_and_a_link_is_copied(page: Any) -> None:
    page.goto("/?q=stripes&label=kind%3Degret")
    page.get_by_text("Share", exact=True).click()
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Copied").wait_for()
    before, link = titles(page), page.evaluate("navigator.clipboard.readText()")
    page.goto(page.locator(".tile .picture").first.get_attribute("href"))
    assert page.get_by_role("img").last.evaluate("one => one.decode().then(() => one.naturalWidth)") == 120
    assert "egret" in page.locator(".known").inner_text()
    page.goto(link)

    assert titles(page) == before


def test_without_scripts_it_still_searches_and_labelling_says_what_to_do(browser: Any, served: str) -> None:
    with opened(browser, served, java_script_enabled=False) as page:
        page.goto("/")
        page.get_by_role("searchbox").fill("stripes")
        page.get_by_role("button", name="Search").click()
        expect(page.locator(".tile")).to_have_count(60)  # waits for the rest of the page, which comes in pieces
        page.get_by_role("link", name="More photos").click()
        expect(page.locator(".tile")).to_have_count(PHOTOS - 60)
        page.locator("#summary summary").click()
        page.get_by_role("link", name="Count the first photos").click()
        expect(page.get_by_role("heading", name="Kind")).to_be_visible()
        expect(page.get_by_role("link", name="Back to the search")).to_be_visible()

        page.goto("/annotate")
        page.locator("input[name=name]").fill("ada")
        page.get_by_role("button", name="Go on").click()
        page.locator("#add-query").wait_for()
        for closed in page.locator(".new-query:not([open]) > summary").all():
            closed.click()
        page.locator("input[name=text]").fill("stripes")
        page.get_by_role("button", name="Add it and list its photos").click()
        expect(page.get_by_text("Labelling needs scripts")).to_be_visible()


def test_a_token_behind_the_address_signs_in_and_leaves_no_trace(browser: Any, settings: ServerSettings) -> None:
    with serving(replace(settings, trust_loopback=False)) as address, opened(browser, address) as page:
        page.goto(f"/login#token={TOKENS[Role.READER]}")
        page.wait_for_url("**/")
        page.get_by_role("button", name="Sign out").wait_for()
        page.goto("/?q=stripes")  # a mark that a reader may not make is refused, and not announced as stored
        page.locator(".tile .picture").first.focus()
        page.keyboard.press("y")
        expect(page.locator(".problem.toast")).to_be_visible()
        assert page.locator("#told").text_content() == ""

        assert TOKENS[Role.READER] not in page.url + page.content()
        with page.expect_navigation():
            page.get_by_role("button", name="Sign out").click()
        page.goto("/?q=stripes")
        assert "/login?next=" in page.url


@pytest.fixture(scope="module")
def judging_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    gallery = copy_gallery(tmp_path_factory.mktemp("judging"), 24)
    with serving(ServerSettings(gallery, judging=Judging((("quick", "encoder:starter"),), depth=10))) as address:
        yield address


def shares(page: Any) -> list[float]:
    """The numbers that stand at the hits: probabilities in percent, or what a judge says."""
    return [float(re.findall(r"[\d.]+", text)[0]) for text in page.locator(".probable").all_text_contents()]


def test_a_judge_looks_once_its_cost_was_seen(browser: Any, judging_place: str) -> None:
    with opened(browser, judging_place) as page:
        page.goto("/?q=red+stripes")
        page.get_by_text("Sort with a model", exact=True).click()
        page.get_by_text("0 of the first 10").wait_for()
        page.get_by_role("button", name="Sort with it").click()
        page.get_by_text("10 of the first 10").wait_for()

        assert "rerank=quick" in page.url
        found = shares(page)
        assert (len(found), found) == (10, sorted(found, reverse=True))


def test_a_spread_is_judged_with_keys_alone_and_gives_probabilities(browser: Any, judging_place: str) -> None:
    """Yes to the first six ranks: 24 photos are judged to the last, so the count is certain."""
    with opened(browser, judging_place) as page:
        page.goto("/?q=a+blue+disc")
        page.get_by_text("What next?").click()
        with page.expect_navigation():
            page.get_by_role("link", name="Judge 30 photos").click()
        while page.locator("#grid").count():  # the keys go to the first photo at once
            for tile in page.locator(".tile").all():
                page.keyboard.press("y" if int(tile.get_attribute("data-rank")) <= 6 else "n")
            page.locator("#onward:focus").wait_for()
            with page.expect_navigation():  # which waits for the verdicts
                page.keyboard.press("Enter")
            page.get_by_text("photos are what you look for").wait_for()
        page.get_by_role("link", name="To the hits").click()
        page.get_by_text("6 right of the first 24").click()
        page.get_by_text("6 of the first 24 photos are what you look for (counted)").wait_for()
        assert shares(page) == [100] * 6 + [0] * 18

        page.get_by_role("link", name="the first 6: 100 % right").click()
        page.wait_for_url("**likely=**")
        assert page.locator(".tile").count() == 6


# -- the shortlist in a real browser ------------------------------------------------------------------------------


TOUCH = {"viewport": PHONE, "has_touch": True, "is_mobile": True}


def wait_for_save(page: Any) -> None:
    expect(page.locator(".unsaved")).to_have_count(0)


def counts(page: Any) -> dict[str, int]:
    return {
        one.get_attribute("data-tab"): int(one.locator(".count").inner_text())
        for one in page.locator("[data-tab]").all()
    }


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
    page.locator("#chosen-photos").get_by_role("button", name="Unsure").click()

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


@pytest.mark.parametrize("way", ["/?q=same+keys", "/spread?q=same+keys", "/count?q=same+keys&looks=60", "/annotate"])
def test_the_same_keys_judge_on_search_spread_and_annotate(page: Any, way: str) -> None:
    photos, mark = ".tile", "data-verdict"
    page.goto(way)
    if way == "/annotate":
        page.get_by_label("Name").fill("ada")
        page.keyboard.press("Enter")
        page.locator("#add-query").wait_for()
        for closed in page.locator(".new-query:not([open]) > summary").all():
            closed.click()
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


def test_a_link_behind_a_password_opens_with_a_map(browser: Any, page: Any, served: str) -> None:
    """The form is sent by a browser, which says where it comes from; the map comes with its countries."""
    ids = [one["id"] for one in page.request.get("/v1/items?limit=6").json()["items"]]
    made = page.request.post("/v1/lists", data={"name": "locked", "items": ids}, headers={"Origin": served}).json()
    page.goto(made["page"])
    page.locator("summary", has_text="Link").click()
    page.get_by_label("where they were taken").check()
    page.get_by_label("a download").check()
    page.get_by_label("Password").fill("secret")
    page.get_by_role("button", name="Make a link").click()
    link = page.get_by_label("The link").input_value()
    with opened(browser, served) as colleague:
        colleague.goto(link)
        colleague.get_by_label("Password").fill("secret")
        colleague.get_by_role("button", name="Open").click()
        expect(colleague.locator(".tile")).to_have_count(6)
        beside = [colleague.get_by_text(name).bounding_box()["y"] for name in ("Download (zip)", "When and where")]
        assert abs(beside[0] - beside[1]) < 3
        colleague.get_by_text("When and where").click()
        expect(colleague.locator(".names-of-land").first).to_contain_text("Switzerland")


def test_a_shared_list_is_seen_by_a_colleague(browser: Any, page: Any, served: str) -> None:
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
        large, alts = (
            colleague.get_by_role("dialog"),
            [one.get_attribute("alt") for one in colleague.locator(".tile img").all()],
        )
        colleague.locator(".tile .picture").first.click()
        expect(large.get_by_role("img")).to_have_attribute("alt", alts[0])
        expect(large).to_contain_text("1 of 2")
        colleague.context.set_offline(True)
        colleague.keyboard.press("ArrowRight")
        expect(large.get_by_role("img")).to_have_attribute("alt", alts[1])
        expect(large.get_by_role("button", name="Next")).to_be_disabled()
        colleague.context.set_offline(False)
        expect(large.get_by_role("img")).not_to_have_js_property("naturalWidth", 0)
        large.get_by_role("button", name="Previous").click()
        expect(large).to_contain_text("visitor ✓ yes")
        assert large.get_by_role("img").evaluate("(one) => one.decode().then(() => one.naturalWidth)") > 0
        colleague.keyboard.press("Escape")
        expect(colleague.locator(".tile .picture").first).to_be_focused()
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
