"""The desk of a team in a real browser: an annotator's walk, a lead's walk, groups, flags, lost and slow networks.

The walks count keys and clicks, as the reviews of the page did.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eyespot.curate.annotate.annotation_store import AnnotationStore, mark_of
from eyespot.curate.annotate.candidates import list_nearest
from eyespot.curate.annotate.leases import is_twice
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.search.collection import Collection
from eyespot.web import ServerSettings
from tests.web.conftest import at_this_machine, serving
from tests.web.test_browser import opened
from tests.worlds import annotation as world

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser
PHOTOS, DISPUTES = 160, 26
FACTS = dict.fromkeys(("visible", "feasible", "of_interest"), "yes")


class Steps:
    """Keys and clicks of one walk."""

    def __init__(self, page: Any) -> None:
        self.page, self.keys, self.clicks = page, 0, 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
        self.keys += len(keys)

    def click(self, place: Any) -> None:
        place.click()
        self.clicks += 1


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """160 pictures, the first ten near to the words `a heron`."""
    return world.gallery(tmp_path, PHOTOS, 10)


def take_in(gallery: Path, *queries: tuple[str, str], photos: int = 0) -> None:
    with AnnotationStore(gallery / "ledger.sqlite") as store:
        store.take_in([AnnotationQuery(id, text, dict(FACTS)) for id, text in queries])
        collection = Collection(gallery) if photos else None
        for id, _ in queries:
            if collection is not None:
                list_nearest(store, id, collection, photos)


@contextmanager
def visit(browser: Any, settings: ServerSettings, who: str, **how: Any) -> Iterator[Any]:
    """A page of somebody who has said their name, at a server of their own."""
    with serving(settings) as address, opened(browser, address, **how) as page:
        named(page, who)
        yield page


def named(page: Any, who: str) -> None:
    page.goto("/annotate")
    page.locator("input[name=name]").fill(who)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def saved(page: Any) -> None:
    page.get_by_text("All saved", exact=True).wait_for()


def marks_of(gallery: Path, query: str, who: str) -> list[str]:
    with AnnotationStore(gallery / "ledger.sqlite") as store:
        return [mark_of(one) for one in store.last_judgements(query, who).values()]


def test_an_annotator_labels_one_query_to_its_end_and_is_led_to_the_next(browser: Any, place: Path) -> None:
    """The walk of the review: 129 + 300 marks and 11 clicks there; here one key a photo, and two more in all."""
    take_in(place, ("1", "a heron"), ("2", "a stork"), photos=60)
    with AnnotationStore(place / "ledger.sqlite") as store:
        store.team.assign(["1", "2"], "Ada", "Lea")
    with visit(browser, ServerSettings(place, cache=None), "Ada") as page:
        steps = Steps(page)
        with page.expect_navigation(url="**/annotate/label?query=1"):
            steps.press("n")
        page.wait_for_selector(".shot.here")
        steps.press(*"y" * 10, *"n" * 100)
        expect(page.locator("#stop")).to_have_text("stopped at 110")
        saved(page)
        offered = page.input_value("#size"), page.get_attribute("#size", "max"), page.text_content("#rest")
        with page.expect_navigation():
            steps.click(page.locator("#audit"))
        page.wait_for_selector(".shot.here")
        steps.press(*"n" * 50)
        expect(page.locator("#over")).to_have_text("The audit is done.")
        saved(page)
        with page.expect_navigation(url="**/annotate/label?query=2"):
            steps.press("q")

    assert offered == ("50", "50", "of 50 that you have not labelled")
    assert (steps.keys, steps.clicks) == (10 + 100 + 50 + 2, 1)
    assert len(marks_of(place, "1", "Ada")) == PHOTOS


@pytest.fixture
def disputed(place: Path) -> Path:
    """26 photos of `a heron` on which Ada and Bo differ, and 249 other queries, of which one is begun."""
    take_in(place, ("1", "a heron"), photos=60)
    take_in(place, *((str(number), f"bird number {number}") for number in range(2, 251)))
    with AnnotationStore(place / "ledger.sqlite") as store:
        first = [photo.image for photo in store.candidates("1")][:DISPUTES]
        for who, mark in (("Ada", "y"), ("Bo", "n")):
            store.mark("1", who, dict.fromkeys(first, mark))
    return place


def test_a_lead_sees_who_disputes_what_and_settles_26_disputes_with_26_keys(browser: Any, disputed: Path) -> None:
    """The walk of the review: 26 page loads there, each back to the top; here 26 keys and no load at all."""
    with visit(browser, ServerSettings(disputed, cache=None), "Lea") as page:
        steps = Steps(page)
        row = page.locator("tr", has_text="a heron")
        expect(row.locator(".people-cell")).to_have_text("Ada 26, Bo 26")
        with page.expect_navigation():
            steps.click(row.locator("[data-name=disputed] a"))
        loads: list[str] = []
        page.on("framenavigated", lambda frame: loads.append(frame.url))
        before = steps.keys
        steps.press(*"ynd" * 8, *"yn")
        expect(page.locator("#left")).to_have_text("0")
        expect(page.locator("#saving")).to_have_text("All saved")
        scrolled = page.evaluate("scrollY")

    assert (steps.keys - before, steps.clicks, loads) == (26, 1, []) and scrolled > 500
    with at_this_machine(ServerSettings(disputed, cache=None)) as client:
        client.post("/name", data={"name": "Lea"})
        text = client.get("/annotate/disputes?query=1").text
    counts = [text.count(f"Settled as {word} by") for word in ("relevant", "not relevant", "in doubt")]
    assert counts == [9, 9, 8]


def test_the_least_done_of_250_queries_is_found_with_one_click_in_seconds(browser: Any, disputed: Path) -> None:
    with visit(browser, ServerSettings(disputed, cache=None), "Lea") as page:
        begun = time.monotonic()
        with page.expect_navigation():
            page.get_by_role("link", name="Progress").click()
        first, last = (page.locator("tbody tr").nth(at).locator("th").text_content() for at in (0, 249))
        took = time.monotonic() - begun
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": 390, "height": 844})
        width = page.evaluate("document.documentElement.scrollWidth")

    assert (first, last) == ("bird number 2", "a heron") and took < 5
    assert height < 1400 and width == 390  # 57,823 pixels before


def test_disputes_are_settled_with_zoom_undo_and_a_note(browser: Any, disputed: Path) -> None:
    with visit(browser, ServerSettings(disputed, cache=None), "Lea") as page:
        page.goto("/annotate/disputes?query=1")
        page.keyboard.press("z")
        large = page.locator("#zoom[open] img").get_attribute("src")
        page.keyboard.press("y")
        assert page.locator("#zoom[open] img").get_attribute("src") != large
        for key in ("z", "u"):
            page.keyboard.press(key)
        expect(page.locator("#left")).to_have_text("26")
        page.keyboard.press("c")
        page.keyboard.type("y it is a yellow beak")  # whose first letter is no mark
        page.keyboard.press("Enter")
        expect(page.locator("#photo-1 .notes")).to_contain_text("Lea: y it is a yellow beak")
        for key in ("f", "1"):
            page.keyboard.press(key)
        expect(page.locator("#photo-1 .flagged")).to_contain_text("a face")
        page.keyboard.press("d")
        expect(page.locator("#photo-1")).to_contain_text("Settled as in doubt by Lea")
        expect(page.locator("#photo-2")).to_have_class("card here")


def test_whoever_disagrees_is_told_that_another_settles_it(browser: Any, disputed: Path) -> None:
    with visit(browser, ServerSettings(disputed, cache=None), "Ada") as page:
        page.goto("/annotate/disputes?query=1")
        page.keyboard.press("y")
        expect(page.locator("#photo-1 .problem")).to_contain_text("somebody else settles it")
        expect(page.locator("#left")).to_have_text("26")


def test_words_on_disputes_survive_a_lost_network(browser: Any, disputed: Path) -> None:
    with visit(browser, ServerSettings(disputed, cache=None), "Lea") as page:
        page.goto("/annotate/disputes?query=1")
        page.context.set_offline(True)
        for key in "yny":
            page.keyboard.press(key)
        expect(page.locator("#saving")).to_have_text("3 not saved yet")
        page.locator(".problem", has_text="it is sent again").wait_for()
        page.context.set_offline(False)
        saved(page)
        page.reload()
        expect(page.locator("#left")).to_have_text("23")


def test_two_people_go_down_one_list_and_a_slow_line_loses_nothing(browser: Any, place: Path) -> None:
    take_in(place, ("1", "a heron"), photos=60)
    settings = ServerSettings(place, cache=None)
    with visit(browser, settings, "Ada") as ada, visit(browser, settings, "Bo") as bo:
        slow = {"offline": False, "latency": 300, "downloadThroughput": -1, "uploadThroughput": -1}
        bo.context.new_cdp_session(bo).send("Network.emulateNetworkConditions", slow)
        for page in (ada, bo):
            page.goto("/annotate/label?query=1&what=team")
            page.wait_for_selector(".shot.here")
        for _ in range(30):
            for page in (ada, bo):
                page.keyboard.press("n")
        for page in (ada, bo):
            expect(page.locator(".shot[data-mark=n]")).to_have_count(30, timeout=60_000)
            saved(page)
        ada.reload()
        expect(ada.locator("#labelled")).not_to_have_text("…")
        together = int(ada.text_content("#labelled") or 0)
    with AnnotationStore(place / "ledger.sqlite") as store:
        hers, his = (store.last_judgements("1", who).keys() for who in ("Ada", "Bo"))
        seed = store.team.leases.seed("1") or ""

    assert len(hers) == len(his) == 30 and together == len(hers | his)
    assert all(is_twice(seed, image) for image in hers & his)


def test_a_mark_while_the_network_is_gone_is_sent_later_also_from_a_shared_list(browser: Any, place: Path) -> None:
    take_in(place, ("1", "a heron"), photos=60)
    with visit(browser, ServerSettings(place, cache=None), "Ada") as page:
        page.goto("/annotate/label?query=1&what=team")
        page.wait_for_selector(".shot.here")
        page.context.set_offline(True)
        for key in "yny":
            page.keyboard.press(key)
        page.wait_for_selector("#wrong:not([hidden])")
        page.context.set_offline(False)
        saved(page)

    assert sorted(marks_of(place, "1", "Ada")) == ["n", "y", "y"]


def test_a_photo_is_flagged_with_two_keys_and_the_letter_is_no_mark(browser: Any, place: Path) -> None:
    take_in(place, ("1", "a heron"), photos=60)
    with visit(browser, ServerSettings(place, cache=None), "Ada") as page:
        page.goto("/annotate/label?query=1")
        page.wait_for_selector(".shot.here")
        for key in ("f", "2"):
            page.keyboard.press(key)
        expect(page.locator("#shot-0 .flag")).to_have_text("⚑ personal data")
        for key in ("z", "f", "4"):
            page.keyboard.press(key)
        page.keyboard.type("a yak in a pen")
        page.keyboard.press("Enter")
        expect(page.locator("#shot-0 .flag")).to_have_text("⚑ personal data, another reason: a yak in a pen")
        page.keyboard.press("y")
        saved(page)

    assert marks_of(place, "1", "Ada") == ["y"]


def test_a_burst_is_one_tile_that_is_marked_undone_and_opened(browser: Any, tmp_path: Path) -> None:
    from tests.web.test_team import BURST, make_gallery

    gallery = make_gallery(tmp_path)
    take_in(gallery, ("1", "stripes"), photos=30)
    with visit(browser, replace(ServerSettings(gallery), cache=None), "Ada") as page:
        page.goto("/annotate/label?query=1")
        page.wait_for_selector(".shot.here")
        tile = page.locator(".shot.stack")
        expect(tile.locator(".count")).to_have_text(f"× {BURST}")
        assert page.locator(".shot").count() == 30 - BURST + 1
        tile.click()
        page.keyboard.press("y")
        expect(page.locator("#labelled")).to_have_text(str(BURST))
        page.keyboard.press("u")
        expect(page.locator("#labelled")).to_have_text("0")
        page.keyboard.press("n")
        saved(page)
        tile.click()
        page.keyboard.press("g")
        expect(page.locator(".shot")).to_have_count(30)
        for key in ("ArrowRight", "y"):
            page.keyboard.press(key)
        saved(page)
        page.reload()
        page.wait_for_selector(".shot.here")
        expect(page.locator("#relevant")).to_have_text("1")
        expect(page.locator(".shot.stack .count")).to_have_text(f"× {BURST - 1}")

    assert sorted(marks_of(gallery, "1", "Ada")) == ["n"] * (BURST - 1) + ["y"]


def test_the_table_works_without_scripts(browser: Any, disputed: Path) -> None:
    with visit(browser, ServerSettings(disputed, cache=None), "Lea", java_script_enabled=False) as page:
        page.get_by_role("searchbox").fill("number 25")
        with page.expect_navigation():
            page.get_by_role("button", name="Show", exact=True).click()
        assert page.locator("tbody tr[data-state]").count() == 4
        for box in page.locator("tbody input[type=checkbox]").all():
            box.check()
        page.locator("#give").fill("Bo")
        with page.expect_navigation():
            page.get_by_role("button", name="Assign").click()
        assert page.locator(".people-cell strong").all_text_contents() == ["Bo"] * 4
        with page.expect_navigation():
            page.get_by_role("link", name="Listed").click()
        assert page.locator("th[aria-sort=ascending]").text_content().startswith("Listed")
