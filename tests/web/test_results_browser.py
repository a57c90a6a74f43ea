"""Results for thousands, in a real browser: filters that act on a tick, full rows of photos, a photo from near."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eyespot.web import ServerSettings
from tests.web.conftest import DESK, PHONE, opened, press, serving
from tests.web.test_filters import birds
from tests.worlds import draw_photos, index_gallery

pytestmark = pytest.mark.long  # minutes of a browser

expect = pytest.importorskip("playwright.sync_api").expect

WHOLE = """() => [...document.querySelectorAll(".tile")].map((one) => one.getBoundingClientRect())
  .filter((at) => at.top >= 0 && at.left >= 0 && at.bottom <= innerHeight && at.right <= innerWidth).length"""

# of each row its right end, and the heights of its lowest and its highest photo
ROWS = """() => {
  const rows = new Map();
  for (const at of [...document.querySelectorAll(".tile")].map((one) => one.getBoundingClientRect())) {
    rows.set(at.top, [...(rows.get(at.top) || []), at]);
  }
  const heights = (row) => row.map((at) => at.height);
  return [...rows.values()].map((row) => [row.at(-1).right, Math.min(...heights(row)), Math.max(...heights(row))]);
}"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(ServerSettings(birds(), cache=tmp_path_factory.mktemp("cache"))) as address:
        yield address


@pytest.fixture
def page(browser: Any, place: str) -> Iterator[Any]:
    with opened(browser, place, viewport=DESK) as page:
        yield page


def shown(page: Any, total: int) -> None:
    expect(page.locator("#total")).to_have_text(str(total))
    expect(page.locator(".tile")).to_have_count(min(total, 60))


def test_a_tick_acts_at_once_is_in_the_link_and_back_takes_it_back(page: Any) -> None:
    page.goto("/?q=stripes&grouped=false")
    page.evaluate("window.here = true")
    expect(page.get_by_role("button", name="Apply")).to_be_hidden()
    page.get_by_label("river").check()
    shown(page, 20)
    assert "label=site%3Driver" in page.url
    assert page.evaluate("window.here")  # the page was not loaded anew
    page.locator(".tile .picture").nth(16).click()
    page.locator("#large h2").wait_for()
    press(page, ["ArrowRight"] * 5)  # more than there are
    expect(page.locator("#large h2 .soft")).to_have_text("20")
    press(page, ["Escape"])

    # counts are those of the result: none of the Passeriformes is at the river, and its own column's ticks do not count
    expect(page.get_by_label("Passeriformes")).to_have_count(0)
    expect(page.locator(".tick", has_text="Ardeidae").first).to_contain_text("10")
    expect(page.locator(".tick", has_text="lake").last).to_contain_text("40")

    page.locator("summary", has_text="Under Pelecaniformes").click()
    page.get_by_label("Ardeidae").check()
    shown(page, 10)
    page.go_back()
    shown(page, 20)
    expect(page.get_by_label("Ardeidae")).not_to_be_checked()
    expect(page.get_by_label("river")).to_be_checked()
    page.go_forward()
    shown(page, 10)


def test_filters_are_taken_off_one_by_one_and_all_at_once(page: Any) -> None:
    page.goto("/?q=stripes&grouped=false&label=order%3DPasseriformes&label=site%3Driver")
    expect(page.get_by_role("alert")).to_contain_text("without “order: Passeriformes”: 20")
    page.get_by_role("link", name="without “site: river”").click()
    shown(page, 10)
    page.goto("/?q=stripes&grouped=false&label=site%3Driver&label=family%3DArdeidae")
    shown(page, 10)
    page.get_by_role("link", name="site: river : take this").click()
    shown(page, 40)
    expect(page.get_by_label("river")).not_to_be_checked()
    page.get_by_label("lake").check()
    page.get_by_role("link", name="clear all").click()
    shown(page, 60)

    expect(page.locator(".chips.on")).to_have_count(0)


def test_a_species_narrows_its_family_by_keyboard_and_long_columns_are_searched(page: Any) -> None:
    page.goto("/?q=stripes&grouped=false&label=family%3DArdeidae")
    shown(page, 40)
    page.get_by_label("Egretta").first.focus()
    page.keyboard.press("Space")
    shown(page, 10)
    expect(page.get_by_label("Ardeidae")).not_to_be_checked()
    assert page.evaluate("document.activeElement.value") == "genus=Egretta"  # what was ticked is still in focus

    page.goto("/?q=stripes&grouped=false")
    page.get_by_role("searchbox", name="Find in order").fill("thula")
    page.locator(".sought").get_by_label("Egretta thula").click()
    shown(page, 10)


def test_thirty_whole_photos_at_once_and_the_first_above_the_fold_of_a_phone(page: Any) -> None:
    for where in ("/", "/?q=stripes&grouped=false"):
        page.set_viewport_size(DESK)
        page.goto(where)
        assert page.evaluate(WHOLE) >= 30
        page.set_viewport_size(PHONE)
        page.goto(where)
        assert page.evaluate(WHOLE) >= 1
        assert page.locator(".tile").first.bounding_box()["y"] < 0.55 * 844


def test_two_rows_of_controls_stand_above_the_photos_also_after_marks(page: Any) -> None:
    page.goto("/?q=zebra+stripes&grouped=false")
    page.locator(".tile .picture").first.focus()
    press(page, "yyny")
    expect(page.locator("#moves summary")).to_contain_text("3 yes of 4")
    expect(page.locator(".unsaved")).to_have_count(0)
    for where in (page.url, f"{page.url}&feedback=mine"):
        page.goto(where)
        assert page.locator("#grid").bounding_box()["y"] < 260  # a row of tools and one of tabs
    page.locator("#moves summary").click()
    expect(page.locator("#so-far")).to_have_text("3 yes of 4 looked at. 56 without a verdict.")


def test_pages_of_photos_use_the_width_of_a_large_screen_and_the_bar_that_of_a_phone(page: Any) -> None:
    page.set_viewport_size({"width": 3840, "height": 2160})
    for where in ("/?q=stripes", "/spread?q=stripes", "/count?q=stripes&looks=60"):
        page.goto(where)
        assert page.locator("#grid").bounding_box()["width"] > 3400
    page.set_viewport_size(PHONE)
    links = [one.bounding_box() for one in page.locator(".bar nav a").all()]
    assert len({round(one["y"]) for one in links}) == 1 and links[-1]["x"] + links[-1]["width"] <= PHONE["width"]


@pytest.mark.parametrize(("dense", "fit"), [(1, {"128"}), (2, {"200", "320"})])
def test_a_photo_weighs_as_much_as_its_place_needs(browser: Any, place: str, dense: int, fit: set[str]) -> None:
    with opened(browser, place, viewport=DESK, device_scale_factor=dense) as page:
        page.goto("/?q=stripes&grouped=false", wait_until="networkidle")
        sources = page.evaluate("[...document.querySelectorAll('.tile img')].slice(0, 20).map((one) => one.currentSrc)")

    assert len(sources) == 20 and {one.split("/")[-2] for one in sources} <= fit


def test_rows_are_full_groups_open_in_place_and_the_size_is_remembered(page: Any) -> None:
    page.goto("/?q=stripes&grouped=false")
    rows = page.evaluate(ROWS)
    right = page.evaluate("document.querySelector('#grid').getBoundingClientRect().right")
    assert len(rows) > 2
    for end, lowest, highest in rows[:-1]:
        assert abs(end - right) < 2 and highest - lowest < 1

    page.goto("/?q=stripes")
    count, fold = page.locator(".tile").count(), page.locator(".fold").first
    number = int(fold.inner_text().partition("\n")[0].strip().split()[0])
    fold.click()
    expect(page.locator(".tile")).to_have_count(count + number)
    fold.click()
    expect(page.locator(".tile")).to_have_count(count)

    before = page.locator(".tile").first.bounding_box()["height"]
    page.get_by_label("Size of the photos").fill("240")
    page.goto("/?q=dots")
    assert page.locator(".picture").first.bounding_box()["height"] > 1.5 * before
    assert page.locator(".tile .name").first.evaluate("one => getComputedStyle(one.parentElement).opacity") == "1"
    assert "240" not in page.url


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("near")
    (folder / "photos").mkdir()
    Image.linear_gradient("L").resize((4000, 3000)).convert("RGB").save(folder / "photos" / "large.jpg")
    index_gallery(folder / "gallery", folder / "photos")
    with serving(ServerSettings(folder / "gallery")) as address:
        yield address


SCALE = "new DOMMatrix(getComputedStyle(document.querySelector('.mat img')).transform)"


def test_keys_wheel_and_drag_bring_a_photo_near(browser: Any, near: str) -> None:
    with opened(browser, near, viewport=DESK) as page:
        page.goto("/?q=noise")
        page.locator(".tile .picture").click()
        page.locator("#large .zoom-bar output").wait_for()
        page.keyboard.press("1")
        expect(page.locator("#large output")).to_have_text("100 %")
        shown_width = page.locator(".mat img").evaluate("one => one.getBoundingClientRect().width / one.clientWidth")
        assert page.evaluate(f"{SCALE}.a") == pytest.approx(shown_width, rel=0.01)
        page.wait_for_function("() => document.querySelector('.mat img').naturalWidth === 4000")  # the file itself

        box = page.locator(".mat").bounding_box()
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        before = page.evaluate(f"{SCALE}.e")
        page.mouse.move(*middle)
        page.mouse.down()
        page.mouse.move(middle[0] + 80, middle[1])
        page.mouse.up()
        assert page.evaluate(f"{SCALE}.e") == pytest.approx(before + 80, abs=1)
        assert page.locator("#large").is_visible()

        page.keyboard.press("0")
        assert page.evaluate(f"{SCALE}.a") == 1
        page.mouse.wheel(0, -400)
        page.wait_for_function(f"() => {SCALE}.a > 1.5")
        page.keyboard.press("-")
        page.get_by_role("button", name="All of the photo").click()
        assert page.evaluate(f"{SCALE}.a") == 1


def test_two_fingers_bring_a_photo_near(browser: Any, near: str) -> None:
    with opened(browser, near, viewport=PHONE, has_touch=True) as page:
        page.goto("/?q=noise")
        page.locator(".tile .picture").tap()
        page.locator("#large .zoom-bar output").wait_for()
        box = page.locator(".mat").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        touch = page.context.new_cdp_session(page)
        for kind, apart in (("touchStart", 20), ("touchMove", 40), ("touchMove", 80)):
            points = [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

        assert page.evaluate(f"{SCALE}.a") == pytest.approx(4, rel=0.2)


def test_without_scripts_apply_is_within_reach(browser: Any, place: str) -> None:
    with opened(browser, place, java_script_enabled=False, viewport=DESK) as page:
        page.goto("/?q=stripes&grouped=false")
        box = page.get_by_role("button", name="Apply").bounding_box()
        assert box["y"] + box["height"] <= 900
        page.get_by_label("river").check()
        page.get_by_role("button", name="Apply").click()

        shown(page, 20)


def test_a_lost_network_is_told_and_tried_again(page: Any) -> None:
    page.goto("/?q=stripes&grouped=false", wait_until="networkidle")
    page.context.set_offline(True)
    page.get_by_label("river").check()
    page.get_by_role("alert").get_by_text("was not applied").wait_for()
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()

    shown(page, 20)


def test_an_empty_gallery_is_filled_and_searched(browser: Any, tmp_path: Path) -> None:
    photos, more = draw_photos(tmp_path / "photos", 3), draw_photos(tmp_path / "more", 5)
    for folder in (photos, more):
        (folder / "broken.jpg").write_bytes(b"none")
    index_gallery(tmp_path / "gallery")
    with serving(ServerSettings(tmp_path / "gallery")) as address, opened(browser, address) as page:
        page.goto("/")
        page.locator(".empty").get_by_role("link", name="Add photos").click()
        page.get_by_label("Path of the folder").fill(str(photos))
        page.get_by_role("button", name="Index this folder").click()
        page.get_by_text("1 file could not be read").click()
        expect(page.locator("#indexing .failures")).to_contain_text("broken.jpg")
        page.get_by_role("link", name="Search them").click()
        expect(page.locator(".tile")).to_have_count(3)

        page.goto("/add")
        page.context.set_offline(True)
        page.locator("#photos").set_input_files([more / "3.jpg", more / "4.jpg"])
        expect(page.locator("#brought .failures li")).to_have_text(
            ["3.jpg: the server cannot be reached", "4.jpg: the server cannot be reached"]
        )
        expect(page.locator("#brought [role=status]")).to_have_text("None could be added.")
        page.context.set_offline(False)
        page.locator("#photos").set_input_files([more / "3.jpg", more / "4.jpg", more / "broken.jpg"])
        expect(page.locator("#brought .failures")).to_contain_text("broken.jpg: ")
        page.get_by_text("2 photos added").wait_for()
        page.goto("/?q=stripes")
        expect(page.locator(".tile")).to_have_count(5)
