"""Keys that are faster than the photos: each waits for its photo, or the page says that there is none for it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eyespot.curate.annotate.annotation_store import AnnotationStore, Candidate
from eyespot.curate.annotate.leases import Unit
from eyespot.web import ServerSettings
from tests.web.test_team_browser import marks_of, place, saved, take_in, visit

__all__ = ["place"]
expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser
SLOW = {"offline": False, "latency": 300, "downloadThroughput": -1, "uploadThroughput": -1}


def cut_short(gallery: Path, photos: int) -> None:
    """The query 1 over the first photos of a gallery, a list that does not go on."""
    take_in(gallery, ("0", "a heron"), photos=photos)
    take_in(gallery, ("1", "a stork"))
    with AnnotationStore(gallery / "ledger.sqlite") as store:
        store.extend("1", [Candidate(*photo) for photo in store.candidates("0")])


@pytest.mark.parametrize("what", ["team", "list", "likely"])
def test_a_mark_without_a_photo_is_refused_in_words_and_changes_no_other(browser: Any, place: Path, what: str) -> None:
    cut_short(place, 10)
    with visit(browser, ServerSettings(place, cache=None), "Ada") as page:
        page.goto(f"/annotate/label?query=1&what={what}")
        page.wait_for_selector(".shot.here")
        for _ in range(12):
            page.keyboard.press("n")
        note = page.locator("#note")
        expect(note).to_have_text("There are no more photos for you here: 2 keys were not used")
        page.keyboard.press("y")
        expect(note).to_have_text("There are no more photos for you here: 3 keys were not used")
        saved(page)
        before = marks_of(place, "1", "Ada")
        page.keyboard.press("ArrowLeft")
        expect(note).to_be_hidden()
        for key in ("ArrowRight", "y"):  # whoever goes to the last photo means it
            page.keyboard.press(key)
        saved(page)

    assert before == ["n"] * 10 and sorted(marks_of(place, "1", "Ada")) == [*["n"] * 9, "y"]


def test_taps_on_a_slow_line_wait_for_their_photos_as_keys_do(browser: Any, place: Path) -> None:
    take_in(place, ("1", "a heron"), photos=60)
    with visit(browser, ServerSettings(place, cache=None), "Ada") as page:
        page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", SLOW)
        page.goto("/annotate/label?query=1&what=team")
        page.wait_for_selector(".shot.here")
        page.evaluate("for (let tap = 0; tap < 40; tap += 1) document.querySelector('.keys [data-key=n]').click()")
        expect(page.locator("#note")).to_have_text("16 keys wait for the next photos")
        expect(page.locator(".shot[data-mark=n]")).to_have_count(40, timeout=60_000)
        expect(page.locator("#note")).to_be_hidden()
        saved(page)

    assert marks_of(place, "1", "Ada") == ["n"] * 40


def test_keys_behind_a_lost_network_are_refused_and_work_when_it_is_back(browser: Any, place: Path) -> None:
    take_in(place, ("1", "a heron"), photos=60)
    with visit(browser, ServerSettings(place, cache=None), "Ada") as page:
        page.goto("/annotate/label?query=1&what=team")
        page.wait_for_selector(".shot.here")
        page.context.set_offline(True)
        for _ in range(26):
            page.keyboard.press("n")
        why = "The next photos do not come (the server cannot be reached): 2 keys were not used"
        expect(page.locator("#note")).to_have_text(why)
        page.context.set_offline(False)
        saved(page)
        page.keyboard.press("y")
        expect(page.locator(".shot[data-mark=y]")).to_have_count(1)
        saved(page)

    assert sorted(marks_of(place, "1", "Ada")) == [*["n"] * 24, "y"]


def test_photos_that_come_back_are_handed_out_at_the_next_key(browser: Any, place: Path) -> None:
    """Bo and Cy hold what Ada asks for, and give it up while her page stands at its end; two of them, for the photos
    that two people label."""
    cut_short(place, 30)
    with visit(browser, ServerSettings(place, cache=None), "Ada") as page:
        page.goto("/annotate/label?query=1&what=team")
        page.wait_for_selector(".shot.here")
        with AnnotationStore(place / "ledger.sqlite") as store:
            rest = [photo.image for photo in store.candidates("1")][24:]
            units = [Unit((image,), 2) for image in rest]
            held = [store.team.leases.hand_out("1", person, units, [], len(rest)) for person in ("Bo", "Cy")]
        for _ in range(25):
            page.keyboard.press("n")
        expect(page.locator("#note")).to_have_text("There are no more photos for you here: one key was not used")
        saved(page)
        with closing(sqlite3.connect(place / "ledger.sqlite")) as sql, sql:
            sql.execute("UPDATE list_leases SET at = 0 WHERE person IN ('Bo', 'Cy')")
        page.keyboard.press("y")
        expect(page.locator(".shot[data-mark=y]")).to_have_count(1)
        saved(page)

    assert held == [6, 6] and sorted(marks_of(place, "1", "Ada")) == [*["n"] * 24, "y"]
