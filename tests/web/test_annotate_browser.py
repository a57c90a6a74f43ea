"""Labelling in a real browser: by keyboard alone, two at once, and through the death of the server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from eyespot.curate.annotate.annotation_store import AnnotationStore, mark_of
from tests.worlds import annotation as world

pytestmark = pytest.mark.long  # minutes of a browser

PHOTOS = 420
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """420 pictures, the first ten near to the words `a heron`."""
    return world.gallery(tmp_path_factory.mktemp("annotate"), PHOTOS, 10)


@contextmanager
def serving(gallery: Path, port: int, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """`eyespot serve` in a process of its own, answering."""
    line = [sys.executable, "-m", "eyespot.cli", "serve", "-g", str(gallery), "--port", str(port), *more]
    with subprocess.Popen(line, stderr=subprocess.DEVNULL) as child:
        while child.poll() is None and not _answers(port):
            time.sleep(0.1)
        yield child
        child.kill()


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def port(gallery: Path) -> Iterator[int]:
    chosen = free_port()
    with serving(gallery, chosen):
        yield chosen


@pytest.fixture
def visit(browser: Any, port: int) -> Iterator[Open]:
    """A browser of somebody's own, on the grid of a query; complaints of the browser fail the test."""
    contexts, complaints = [], []

    def opened(who: str, text: str, at: int | None = None) -> Any:
        context = browser.new_context(viewport={"width": 1100, "height": 800})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)  # a busy machine is no error
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"http://127.0.0.1:{at or port}/annotate")
        page.locator("input[name=name]:focus").wait_for()  # which comes a moment after the page
        page.keyboard.type(who)
        with page.expect_navigation():
            page.keyboard.press("Enter")
        to_element(page, "text")
        page.keyboard.type(text)
        with page.expect_navigation(url="**/annotate/label**"):
            page.keyboard.press("Enter")
        page.wait_for_selector(".shot.here")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def to_element(page: Any, id: str) -> None:
    """By the Tab key alone."""
    for _ in range(40):
        if page.evaluate("document.activeElement.id") == id:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never comes to {id}")


def saved(page: Any) -> None:
    page.get_by_text("All saved", exact=True).wait_for(timeout=60_000)


def text_of(page: Any, id: str) -> str:
    return str(page.text_content(f"#{id}")).strip()


def marks_of(gallery: Path, query: str, who: str) -> list[str]:
    """The marks of somebody in the order of the list."""
    with AnnotationStore(gallery / "ledger.sqlite") as desk:
        marks = {image: mark_of(one) for image, one in desk.last_judgements(query, who).items()}
        return [marks[photo.image] for photo in desk.candidates(query) if photo.image in marks]


def test_two_hundred_photos_by_keyboard_alone_until_the_rule_fires(visit: Open, gallery: Path) -> None:
    page = visit("Ada", "a heron")
    for key in "y" * 10 + "n" * 190:
        page.keyboard.press(key)
    saved(page)
    assert marks_of(gallery, "a heron", "Ada") == ["y"] * 10 + ["n"] * 190
    assert text_of(page, "stop") == "stopped at 110"
    assert (text_of(page, "relevant"), text_of(page, "labelled")) == ("10", "200")


def test_keys_that_come_faster_than_photos_wait_for_them(visit: Open, gallery: Path) -> None:
    page = visit("Ada", "a slow line")
    slow = {"offline": False, "latency": 300, "downloadThroughput": -1, "uploadThroughput": -1}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", slow)
    for key in "yn" * 130:
        page.keyboard.press(key)
    page.locator("#labelled", has_text="260").wait_for(timeout=60_000)
    saved(page)
    assert marks_of(gallery, "a slow line", "Ada") == ["y", "n"] * 130


def test_the_audit_says_what_remains(visit: Open) -> None:
    page = visit("Ada", "a bird in a tree")
    for _ in range(100):
        page.keyboard.press("n")
    saved(page)
    with page.expect_navigation():
        page.click("#audit")
    page.wait_for_selector(".shot.here")
    page.keyboard.press("End")
    while page.locator(".shot").count() < 300:
        page.keyboard.press("End")
        page.wait_for_timeout(50)
    page.keyboard.press("End")
    page.keyboard.press("y")
    page.keyboard.press("x")
    saved(page)
    assert text_of(page, "left") == "about 0"  # 1/300 of the 20 that neither saw
    assert "95 %" in text_of(page, "interval")


def test_a_range_a_doubt_and_undo(visit: Open, gallery: Path) -> None:
    page = visit("Ada", "a fish")
    for key in ("y", "d", "Shift+ArrowRight", "Shift+ArrowRight", "n", "y", "u"):
        page.keyboard.press(key)
    saved(page)
    assert marks_of(gallery, "a fish", "Ada") == ["y", "d", "n", "n", "n"]


def test_undo_goes_back_as_far_as_one_went(visit: Open, gallery: Path) -> None:
    page = visit("Ada", "a whale")
    for key in "yyyuuu":
        page.keyboard.press(key)
    saved(page)
    assert marks_of(gallery, "a whale", "Ada") == []


def test_a_large_photo_is_marked_as_a_small_one(visit: Open, gallery: Path) -> None:
    page = visit("Ada", "a cow")
    for key in ("z", "y", "n", "z", "y"):
        page.keyboard.press(key)
    saved(page)
    assert marks_of(gallery, "a cow", "Ada") == ["y", "n", "y"]


def test_a_key_held_down_marks_one_photo(visit: Open, gallery: Path) -> None:
    page = visit("Ada", "a goose")
    for _ in range(5):  # the browser reports repeats of a key that was not let go
        page.keyboard.down("n")
    page.keyboard.up("n")
    saved(page)
    assert marks_of(gallery, "a goose", "Ada") == ["n"]


def test_the_page_says_once_when_it_was_opened(visit: Open, gallery: Path) -> None:
    page = visit("Ada", "a swan")
    for key in "yn":
        page.keyboard.press(key)
        saved(page)
    with AnnotationStore(gallery / "ledger.sqlite") as store:
        (opened,) = store.openings("a swan", "Ada")
        marked = min(one.at for one in store.last_judgements("a swan", "Ada").values())
    assert 0 < marked - opened < 60


def test_nothing_is_marked_behind_the_help(visit: Open, gallery: Path) -> None:
    page = visit("Ada", "a moth")
    for key in ("?", "y", "x", "ArrowRight", "Escape", "d"):
        page.keyboard.press(key)
    saved(page)
    assert marks_of(gallery, "a moth", "Ada") == ["d"]


def test_likely_first_goes_on_though_nothing_was_marked(visit: Open) -> None:
    page = visit("Ada", "a newt")
    page.get_by_role("link", name="Likely first").click()
    page.wait_for_selector(".shot.here")
    for last in (119, 239, 359):
        page.locator(f"#shot-{last}").wait_for(state="attached")
        page.keyboard.press("End")
    page.locator(f"#shot-{PHOTOS - 1}").wait_for(state="attached")


def test_a_mark_that_is_refused_holds_no_other_up(visit: Open, gallery: Path) -> None:
    page = visit("Ada", "a toad")
    page.context.set_offline(True)
    page.keyboard.press("y")
    page.keyboard.press("n")
    page.wait_for_selector("#wrong:not([hidden])")
    page.evaluate("""() => {
        const place = localStorage.key(0);
        localStorage[place.slice(0, place.lastIndexOf(" ") + 1) + "gone"] = '"y"';
    }""")
    page.context.set_offline(False)
    again = page.context.new_page()  # what the first one has not sent is sent by the second
    again.goto(page.url)
    saved(again)
    assert "1 marks from before were set aside" in text_of(again, "wrong")
    assert (marks_of(gallery, "a toad", "Ada"), again.evaluate("localStorage.length")) == (["y", "n"], 0)


def test_two_tabs_keep_each_others_marks(visit: Open, gallery: Path) -> None:
    one = visit("Ada", "a crab")
    two = one.context.new_page()
    two.goto(one.url)
    two.wait_for_selector(".shot.here")
    one.context.set_offline(True)
    two.keyboard.press("ArrowRight")
    for page, key in ((one, "y"), (two, "n")):
        page.keyboard.press(key)
        page.wait_for_selector("#wrong:not([hidden])")
    one.close()
    two.context.set_offline(False)
    saved(two)
    two.reload()
    two.wait_for_selector(".shot.here")
    saved(two)
    assert marks_of(gallery, "a crab", "Ada") == ["y", "n"]


def test_by_touch_alone(visit: Open, gallery: Path) -> None:
    page = visit("Ada", "a snail")
    page.click("#shot-2")
    page.click(".keys [data-key=y]")
    saved(page)
    with AnnotationStore(gallery / "ledger.sqlite") as desk:
        assert [*desk.last_judgements("a snail", "Ada")] == [desk.candidates("a snail")[2].image]


def test_who_comes_back_goes_on_where_they_were(visit: Open) -> None:
    page = visit("Ada", "a beetle")
    for _ in range(50):
        page.keyboard.press("n")
    saved(page)
    page.reload()
    page.wait_for_selector(".shot.here")
    assert page.get_attribute(".shot.here", "aria-label") == "Photo 51, no mark"


def test_two_at_once_lose_and_double_nothing(visit: Open, gallery: Path) -> None:
    pages = {who: visit(who, "a stork") for who in ("Ada", "Bob")}
    for number in range(40):
        for who, page in pages.items():
            page.keyboard.press("y" if (number + len(who)) % 2 else "n")
    for page in pages.values():
        saved(page)
    with AnnotationStore(gallery / "ledger.sqlite") as desk:
        digest = desk.judgements.enter([desk.query("a stork").query]).popitem()[1]
        rows = [row for row in desk.judgements.rows() if row.judgement.query == digest]
    assert (len(marks_of(gallery, "a stork", "Ada")), len(marks_of(gallery, "a stork", "Bob")), len(rows)) == (
        40,
        40,
        80,
    )


def test_a_server_killed_in_mid_click_loses_nothing(visit: Open, gallery: Path) -> None:
    port = free_port()
    with serving(gallery, port) as server:
        page = visit("Ada", "an owl", port)
        for _ in range(30):
            page.keyboard.press("n")
        os.kill(server.pid, signal.SIGKILL)
        for _ in range(30):
            page.keyboard.press("y")
        page.wait_for_selector("#wrong:not([hidden])")
        confirmed = marks_of(gallery, "an owl", "Ada")
    with serving(gallery, port):
        saved(page)
    marks = ["n"] * 30 + ["y"] * 30
    assert (marks_of(gallery, "an owl", "Ada"), confirmed) == (marks, marks[: len(confirmed)])


def test_two_people_share_an_audit_of_the_size_that_one_of_them_chose(visit: Open) -> None:
    ada, bo = visit("Ada", "a shared bird"), visit("Bo", "a shared bird")
    for _ in range(100):
        ada.keyboard.press("n")
    saved(ada)
    ada.fill("#size", "40")
    with ada.expect_navigation():
        ada.click("#audit")
    ada.wait_for_selector(".shot.here")
    bo.reload()
    bo.locator("#joinable", has_text="Ada audits the rest: 0 of 40 photos labelled.").wait_for()
    with bo.expect_navigation():
        bo.click("#join")
    bo.wait_for_selector(".shot.here")
    for _ in range(16):
        bo.keyboard.press("n")
    saved(bo)
    for _ in range(24):
        ada.keyboard.press("n")
    saved(ada)
    assert "at least" in text_of(ada, "interval") and ada.locator(".shot").count() == 24
    bo.reload()
    bo.locator("#interval", has_text="95 %").wait_for()
