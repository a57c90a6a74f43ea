"""The task of a day in the browser: all windmills are found, judged and handed to somebody on another machine."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest

from eyespot.web import ServerSettings
from tests.web.conftest import DESK, PHONE, opened, press, serving
from tests.worlds import copy_of_sample_gallery
from tests.worlds.galleries import facts_of

pytestmark = pytest.mark.long  # minutes of a browser
expect = pytest.importorskip("playwright.sync_api").expect
FIRST = 40  # photos that are judged one by one


def judge(page: Any, shown: list[str], keys: list[str]) -> None:
    page.locator(".tile .picture").first.focus()
    press(page, keys)


def judge_by_touch(page: Any, shown: list[str], keys: list[str]) -> None:
    """The same with a finger on the large photo: each verdict goes on to the next, and a swipe goes either way."""
    touch, large = page.context.new_cdp_session(page), page.locator("#large")

    def swipe(far: int) -> None:
        box = large.locator(".mat").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for kind, at in (("touchStart", x), ("touchMove", x + far / 2), ("touchMove", x + far)):
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": at, "y": y}]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    def shows(at: int) -> None:
        expect(large.locator("article")).to_have_attribute("data-id", shown[at])
        large.locator(".zoom-bar output").wait_for()

    page.locator(".tile .picture").first.tap()
    for at, key in enumerate(keys):
        shows(at)
        large.locator(".photo button", has_text={"y": "Yes", "n": "No"}[key]).tap()
    end = len(keys)
    shows(end)
    for far, leads_to in ((150, end - 1), (-20, end - 1), (-150, end), (-150, end + 1)):  # 20 are too short
        swipe(far)
        shows(leads_to)
    page.keyboard.press("Escape")


@pytest.mark.parametrize(("screen", "first"), [(DESK, judge), (PHONE, judge_by_touch)])
def test_all_are_found_and_somebody_elsewhere_gets_them(
    browser: Any, tmp_path: Path, settings: ServerSettings, screen: dict[str, int], first: Callable[..., None]
) -> None:
    """The network is lost in the middle; each number of the pages is that of the planted names."""
    sample = copy_of_sample_gallery(tmp_path / "gallery")
    paths = {str(one["id"]): Path(str(one["path"])).name for one in facts_of(sample)}
    planted = {name for name in paths.values() if "windmill" in name}
    with (
        serving(replace(settings, gallery=sample, cache=None)) as address,
        opened(browser, address, "Ada", viewport=screen, has_touch=screen is PHONE) as page,
    ):
        page.goto("/?q=a+windmill&grouped=false")
        shown = [one.get_attribute("data-id") for one in page.locator(".tile").all()[:FIRST]]
        keys = ["y" if paths[id] in planted else "n" for id in shown]
        first(page, shown, keys[:10])
        expect(page.locator(".unsaved")).to_have_count(0)
        page.context.set_offline(True)
        page.locator(".tile .picture").nth(10).focus()
        press(page, keys[10:25])
        page.get_by_role("alert").filter(has_text="15 verdicts wait in this browser").wait_for()
        page.context.set_offline(False)
        press(page, keys[25:])
        expect(page.locator(".unsaved")).to_have_count(0)

        page.reload()
        yes = keys.count("y")
        counts = {"all": len(paths), "yes": yes, "no": FIRST - yes, "doubt": 0, "unjudged": len(paths) - FIRST}
        for tab, count in counts.items():
            expect(page.locator(f"[data-tab={tab}] .count")).to_have_text(f"{count:,}")
        assert yes == len(planted)  # all stand among the first
        page.locator("[data-tab=yes]").click()
        expect(page.locator("#total")).to_have_text(str(yes))

        page.locator("#share summary").click()
        page.locator("#list-name").fill("Windmills")
        page.get_by_role("button", name="Make a list").click()
        expect(page.locator(".head, main").first).to_contain_text(f"{yes} photos")
        page.locator("summary", has_text="Link").click()
        page.get_by_label("a download").check()
        page.get_by_role("button", name="Make a link").click()
        expect(page.locator("[data-local]")).to_contain_text("this computer alone")
        link = page.get_by_label("The link").input_value()

        elsewhere = address.replace(
            "127.0.0.1", "photos.localhost"
        )  # the host of another machine: no owner comes by it
        with opened(browser, elsewhere, viewport=screen) as colleague:
            assert colleague.goto("/lists").url.startswith(f"{elsewhere}/login")
            colleague.goto(link.replace("127.0.0.1", "photos.localhost"))
            expect(colleague.locator("main > p").first).to_contain_text(f"{yes} photos, put together by Ada")
            assert colleague.get_by_text("Ada ✓ yes").count() == colleague.locator(".tile").count() == yes
            with colleague.expect_download() as download:
                colleague.get_by_role("link", name="Download").click()
            assert download.value.suggested_filename == "Windmills.zip"
            archive = zipfile.ZipFile(BytesIO(Path(download.value.path()).read_bytes()))
        rows = list(csv.DictReader(StringIO(archive.read("photos.csv").decode("utf-8-sig"))))
        assert {Path(one["path"]).name for one in rows} == planted and len(rows) == yes
