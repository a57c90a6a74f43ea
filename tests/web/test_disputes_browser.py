"""Disputes between annotators in a real browser: settled where one is, with keys, clicks, and a line that breaks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.web.conftest import Team, opened, press, saved

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser
DISPUTES = 26


@contextmanager
def disputing(browser: Any, team: Team, who: str, query: str) -> Iterator[Any]:
    """A page of somebody who sees the 26 photos of this query on which Ada and Bo differ."""
    team.take_in((query, f"a heron to {query}"), photos=60)
    first = [photo.image for photo in team.store.candidates(query)][:DISPUTES]
    for annotator, mark in (("Ada", "y"), ("Bo", "n")):
        team.store.mark(query, annotator, dict.fromkeys(first, mark))
    with opened(browser, team.address, who, viewport={"width": 1000, "height": 700}) as page:
        page.goto(f"/annotate/disputes?query={query}")
        yield page


def left(page: Any, number: int) -> None:
    expect(page.locator("#left")).to_have_text(str(number))


def test_a_lead_sees_who_disputes_what_and_settles_26_disputes_with_26_keys(browser: Any, team: Team) -> None:
    """One key each, and no load of the page."""
    with disputing(browser, team, "Lea", "settle") as page:
        page.goto("/annotate")
        row = page.locator("tr", has_text="a heron to settle")
        expect(row.locator(".people-cell")).to_have_text("Ada 26, Bo 26")
        with page.expect_navigation():
            row.locator("[data-name=disputed] a").click()
        loads: list[str] = []
        page.on("framenavigated", lambda frame: loads.append(frame.url))
        press(page, "ynd" * 8 + "yn")
        left(page, 0)
        saved(page)
        assert page.evaluate("scrollY") > 500 and loads == []
        text = page.request.get("/annotate/disputes?query=settle").text()

    counts = [text.count(f"Settled as {word} by") for word in ("relevant", "not relevant", "in doubt")]
    assert counts == [9, 9, 8]


def test_disputes_are_settled_with_zoom_undo_a_note_and_a_flag(browser: Any, team: Team) -> None:
    with disputing(browser, team, "Lea", "look at") as page:
        page.locator("#photo-2 .enlarge").click()
        assert "/1600/" in page.locator("#zoom[open] img").get_attribute("src")
        page.keyboard.press("Escape")
        expect(page.locator("#zoom")).to_be_hidden()
        expect(page.locator("#photo-2 .enlarge")).to_be_focused()
        page.reload()
        press(page, "z")
        large = page.locator("#zoom[open] img").get_attribute("src")
        press(page, "y")
        assert page.locator("#zoom[open] img").get_attribute("src") != large
        press(page, "zu")
        left(page, DISPUTES)
        press(page, "c")
        page.keyboard.type("y it is a yellow beak")  # whose first letter is no mark
        page.keyboard.press("Enter")
        expect(page.locator("#photo-1 .notes")).to_contain_text("Lea: y it is a yellow beak")
        press(page, "f1")
        expect(page.locator("#photo-1 .flagged")).to_contain_text("a face")
        press(page, "d")
        expect(page.locator("#photo-1")).to_contain_text("Settled as in doubt by Lea")
        expect(page.locator("#photo-2")).to_have_class("card here")


def test_whoever_disagrees_is_told_that_another_settles_it(browser: Any, team: Team) -> None:
    with disputing(browser, team, "Ada", "leave") as page:
        press(page, "y")
        expect(page.locator("#photo-1 .problem")).to_contain_text("somebody else")
        left(page, DISPUTES)


def test_a_click_leaves_one_where_one_is_and_is_taken_back(browser: Any, team: Team) -> None:
    with disputing(browser, team, "Cem", "click at") as page:
        card = page.locator("#photo-20")
        card.scroll_into_view_if_needed()
        before = page.evaluate("scrollY")
        card.get_by_role("button", name="Photo 20 is not relevant").click()
        expect(card).to_contain_text("Settled as not relevant by Cem")
        assert (page.evaluate("scrollY"), before > 500) == (before, True)
        left(page, DISPUTES - 1)
        expect(card.get_by_role("button", name="Photo 20 is not relevant")).to_be_focused()
        page.reload()
        expect(card).to_contain_text("Settled as not relevant by Cem")
        card.get_by_role("button", name="take my word back").click()
        expect(card).to_contain_text("Open")
        left(page, DISPUTES)


def test_words_on_disputes_survive_a_lost_network(browser: Any, team: Team) -> None:
    with disputing(browser, team, "Lea", "lose") as page:
        page.context.set_offline(True)
        press(page, "yny")
        expect(page.locator("#saving")).to_have_text("3 not saved yet")
        expect(page.locator("#photo-1").get_by_role("alert")).to_be_visible()
        page.context.set_offline(False)
        expect(page.locator("#photo-1")).to_contain_text("Settled as relevant by Lea")
        expect(page.locator("#photo-1").get_by_role("alert")).to_have_count(0)
        saved(page)
        page.reload()
        left(page, DISPUTES - 3)
