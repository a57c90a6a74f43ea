"""Deciding in a real browser: by keyboard alone, mending in place, and through the death of the server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from eyespot.pipelines.human_review import Case, Queue, write_queue
from eyespot.web import ServerSettings
from tests.web.conftest import copy_team_gallery, opened, press, serving
from tests.worlds import draw_photos

pytestmark = pytest.mark.long  # minutes of a browser
QUEUES = count()


def fresh(path: Path) -> Queue:
    """Four cases of one picture or two, without decisions; of their own, so that no late click decides them."""
    shown = (f"queue {next(QUEUES)}",)
    pictures = [str(one) for one in sorted(draw_photos(path.parent / "pictures", 5).iterdir())]
    cases = [
        Case(f"c{at}", f"Is caption {at} true?", tuple(pictures[at : at + 1 + at % 2]), {"text": f"{at} cups"}, shown)
        for at in range(4)
    ]
    write_queue(path, cases)
    return Queue(path)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server with a queue that each test writes anew."""
    folder = tmp_path_factory.mktemp("review")
    write_queue(folder / "queue.jsonl", [])
    with serving(ServerSettings(copy_team_gallery(folder), reviews=(folder / "queue.jsonl",))) as address:
        yield address, folder / "queue.jsonl"


@contextmanager
def reviewing(browser: Any, address: str) -> Iterator[Any]:
    """Somebody's own browser on the first queue."""
    with opened(browser, address, "Ada", viewport={"width": 1100, "height": 800}) as page:
        page.goto("/review")
        page.click(".queries a")
        case(page, 0)
        yield page


@pytest.fixture
def page(browser: Any, place: tuple[str, Path], queue: Queue) -> Iterator[Any]:
    with reviewing(browser, place[0]) as page:
        yield page


@pytest.fixture
def queue(place: tuple[str, Path]) -> Queue:
    place[1].with_suffix(".decisions.jsonl").unlink(missing_ok=True)
    return fresh(place[1])


def case(page: Any, number: int) -> None:
    """Wait until this case is before one's eyes and the one before is saved."""
    page.get_by_role("heading", name=f"Is caption {number} true?").wait_for()
    page.get_by_text("All saved", exact=True).wait_for()


def choices(queue: Queue) -> dict[str, str]:
    return {id: one.choice for id, one in queue.standing().items()}


def test_by_keyboard_alone_to_the_end(page: Any, queue: Queue) -> None:
    press(page, "a")
    case(page, 1)
    press(page, "d")
    case(page, 2)
    press(page, ("m", "Control+A"))
    page.keyboard.type("two mad cups")  # whose letters are no keys there
    page.keyboard.press("Control+Enter")
    case(page, 3)
    press(page, "a")
    page.get_by_role("heading", name="All is decided").wait_for()

    assert choices(queue) == {"c0": "accept", "c1": "drop", "c2": "mend", "c3": "accept"}
    assert queue.standing()["c2"].texts == {"text": "two mad cups"}


def test_skipped_cases_come_again_undo_opens_a_case_and_pictures_are_looked_at(page: Any, queue: Queue) -> None:
    for number in (1, 2, 3, 0):
        press(page, "s")
        case(page, number)
    press(page, "d")
    case(page, 1)
    press(page, "u")
    case(page, 0)
    assert choices(queue) == {}
    press(page, "s")
    case(page, 1)
    seen = []
    for _ in range(2):
        press(page, "z")
        seen.append(page.text_content("#which"))
    press(page, "z")

    assert seen == ["Picture 1 of 2", "Picture 2 of 2"] and not page.locator("#zoom[open]").count()


def test_a_changed_text_is_not_accepted_by_mistake(page: Any, queue: Queue) -> None:
    press(page, ("m", "!", "Escape", "a"))
    page.wait_for_selector("#wrong:not([hidden])")
    assert choices(queue) == {}
    press(page, "m")
    case(page, 1)

    assert queue.standing()["c0"].texts == {"text": "0 cups!"}
