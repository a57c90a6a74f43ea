"""Deciding in a real browser: by keyboard alone, mending in place, and through the death of the server."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from eyespot.pipelines.human_review import Case, Queue, write_queue
from tests.web.test_annotate_browser import free_port, serving
from tests.worlds import annotation as world

pytestmark = pytest.mark.long  # minutes of a browser


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world.gallery(tmp_path_factory.mktemp("review"), 8, 4)


@pytest.fixture(scope="module")
def served(gallery: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """A server with a queue that each test writes anew."""
    queue = tmp_path_factory.mktemp("queues") / "queue.jsonl"
    write_queue(queue, [])
    port = free_port()
    with serving(gallery, port, "--review", str(queue)):
        yield port, queue


@pytest.fixture
def queue(served: tuple[int, Path], gallery: Path) -> Queue:
    """Four cases of one picture or two, without decisions."""
    _, path = served
    path.with_suffix(".decisions.jsonl").unlink(missing_ok=True)
    return fresh(path, gallery)


QUEUES = count()


def fresh(path: Path, gallery: Path) -> Queue:
    """Cases of their own, so that no click of an earlier test's browser that comes late decides them."""
    shown = (f"queue {next(QUEUES)}",)
    pictures = [str(one) for one in sorted((gallery.parent / "source/pictures").iterdir())]
    cases = [
        Case(f"c{at}", f"Is caption {at} true?", tuple(pictures[at : at + 1 + at % 2]), {"text": f"{at} cups"}, shown)
        for at in range(4)
    ]
    write_queue(path, cases)
    return Queue(path)


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """Somebody's own browser on the first queue; complaints of the browser fail the test."""
    contexts, complaints = [], []

    def opened(port: int, who: str = "Ada") -> Any:
        context = browser.new_context(viewport={"width": 1100, "height": 800})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)  # a busy machine is no error
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"http://127.0.0.1:{port}/review")
        page.locator("input[name=name]:focus").wait_for()  # which comes a moment after the page
        page.keyboard.type(who)
        with page.expect_navigation():
            page.keyboard.press("Enter")
        page.click(".queries a")
        case(page, 0)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def case(page: Any, number: int) -> None:
    """Wait until this case is before one's eyes and the one before is saved."""
    page.get_by_role("heading", name=f"Is caption {number} true?").wait_for()
    page.get_by_text("All saved", exact=True).wait_for()


def choices(queue: Queue) -> dict[str, str]:
    return {id: one.choice for id, one in queue.standing().items()}


def test_by_keyboard_alone_to_the_end(visit: Any, served: tuple[int, Path], queue: Queue) -> None:
    page = visit(served[0])
    for number, key in enumerate("ad"):
        case(page, number)
        page.keyboard.press(key)
    case(page, 2)
    for key in ("m", "Control+A"):
        page.keyboard.press(key)
    page.keyboard.type("two mad cups")  # whose letters are no keys there
    page.keyboard.press("Control+Enter")
    case(page, 3)
    page.keyboard.press("a")
    page.get_by_role("heading", name="All is decided").wait_for()
    assert choices(queue) == {"c0": "accept", "c1": "drop", "c2": "mend", "c3": "accept"}
    assert queue.standing()["c2"].texts == {"text": "two mad cups"}


def test_undo_brings_the_case_back_and_opens_it(visit: Any, served: tuple[int, Path], queue: Queue) -> None:
    page = visit(served[0])
    page.keyboard.press("d")
    case(page, 1)
    page.keyboard.press("u")
    case(page, 0)
    assert choices(queue) == {}


def test_a_changed_text_is_not_accepted_by_mistake(visit: Any, served: tuple[int, Path], queue: Queue) -> None:
    page = visit(served[0])
    page.keyboard.press("m")
    page.keyboard.type("!")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    page.wait_for_selector("#wrong:not([hidden])")
    assert choices(queue) == {}
    page.keyboard.press("m")
    case(page, 1)
    assert queue.standing()["c0"].texts == {"text": "0 cups!"}


def test_skipped_cases_come_again(visit: Any, served: tuple[int, Path], queue: Queue) -> None:
    page = visit(served[0])
    for number in (1, 2, 3, 0):
        page.keyboard.press("s")
        case(page, number)
    assert choices(queue) == {}


def test_pictures_are_looked_at_one_after_the_other(visit: Any, served: tuple[int, Path], queue: Queue) -> None:
    page = visit(served[0])
    page.keyboard.press("s")
    case(page, 1)
    seen = []
    for _ in range(2):
        page.keyboard.press("z")
        seen.append(page.text_content("#which"))
    page.keyboard.press("z")
    assert seen == ["Picture 1 of 2", "Picture 2 of 2"] and not page.locator("#zoom[open]").count()


def test_a_server_killed_in_mid_click_loses_nothing_and_doubles_nothing(
    visit: Any, gallery: Path, tmp_path: Path
) -> None:
    queue, port = fresh(tmp_path / "queue.jsonl", gallery), free_port()
    with serving(gallery, port, "--review", str(queue.path)) as server:
        page = visit(port)
        page.keyboard.press("a")
        case(page, 1)
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        page.keyboard.press("d")
        page.wait_for_selector("#wrong:not([hidden])")
        assert choices(queue) == {"c0": "accept"}
    with serving(gallery, port, "--review", str(queue.path)):
        case(page, 2)
    assert [(one.id, one.choice) for one in queue.decisions()] == [("c0", "accept"), ("c1", "drop")]


@pytest.mark.parametrize("width", [360, 1100])
def test_nothing_is_wider_than_the_screen(visit: Any, served: tuple[int, Path], queue: Queue, width: int) -> None:
    page = visit(served[0])
    page.set_viewport_size({"width": width, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
