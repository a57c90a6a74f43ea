"""Labelling in a real browser: by keyboard alone, two at once, on a line that breaks, and through a server's death."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from eyespot.curate.annotate.annotation_store import Candidate
from eyespot.curate.annotate.team_store import Unit
from eyespot.pipelines.human_review import Case, Queue, write_queue
from eyespot.web import ServerSettings
from tests.web.conftest import TEAM_PHOTOS, Team, copy_team_gallery, labelling, opened, press, saved, serving, slow_down
from tests.worlds import draw_photos

pytestmark = pytest.mark.long  # minutes of a browser

expect = pytest.importorskip("playwright.sync_api").expect


def to_element(page: Any, id: str) -> None:
    for _ in range(40):
        if page.evaluate("document.activeElement.id") == id:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never comes to {id}")


def begin(page: Any, who: str, text: str) -> None:
    """From the first page to the photos of a query, by keyboard alone."""
    page.goto("/annotate")
    page.locator("input[name=name]:focus").wait_for()  # which comes a moment after the page
    page.keyboard.type(who)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    to_element(page, "add-query")
    if not page.locator(".new-query[open]").count():
        page.keyboard.press("Enter")
    to_element(page, "text")
    page.keyboard.type(text)
    with page.expect_navigation(url="**/annotate/label**"):
        page.keyboard.press("Enter")
    page.wait_for_selector(".shot.here")


def text_of(page: Any, id: str) -> str:
    return str(page.text_content(f"#{id}")).strip()


def test_keys_alone_lead_to_photos_and_mark_them_and_who_comes_back_goes_on(browser: Any, team: Team) -> None:
    marks: list[str] = []
    with opened(browser, team.address) as page:
        begin(page, "Ada", "a fish")
        for what, (keys, more) in {
            "a range, a doubt and undo": (("y", "d", "Shift+ArrowRight", "Shift+ArrowRight", "n", "y", "u"), "ydnnn"),
            "undo goes back as far as one went": ("yyyuuu", ""),
            "a large photo is marked as a small one": (("z", "y", "n", "z", "y"), "yny"),
            "nothing is marked behind the help": (("?", "y", "x", "ArrowRight", "Escape", "d"), "d"),
        }.items():
            press(page, keys)
            saved(page)
            marks += more
            assert team.marks("a fish", "Ada") == marks, what
        for _ in range(5):  # the browser reports repeats of a key that was not let go
            page.keyboard.down("n")
        page.keyboard.up("n")
        page.click(f"#shot-{len(marks) + 2}")
        page.click(".keys [data-key=y]")
        saved(page)
        assert team.marks("a fish", "Ada") == [*marks, "n", "y"]
        page.reload()
        page.wait_for_selector(".shot.here")
        assert page.get_attribute(".shot.here", "aria-label") == f"Photo {len(marks) + 2}, no mark"
    (opening,) = team.store.openings("a fish", "Ada")
    assert opening <= min(one.at for one in team.store.last_judgements("a fish", "Ada").values())


def test_keys_that_come_faster_than_photos_wait_for_them(browser: Any, team: Team) -> None:
    with opened(browser, team.address) as page:
        begin(page, "Ada", "a slow line")
        slow_down(page)
        press(page, "yn" * 65)
        page.locator("#labelled", has_text="130").wait_for()
        saved(page)

    assert team.marks("a slow line", "Ada") == ["y", "n"] * 65


def test_likely_first_goes_on_though_nothing_was_marked(browser: Any, team: Team) -> None:
    with opened(browser, team.address) as page:
        begin(page, "Ada", "a newt")
        page.get_by_role("link", name="Most likely first").click()
        page.wait_for_selector(".shot.here")
        page.locator("#shot-119").wait_for(state="attached")
        page.keyboard.press("End")
        page.locator(f"#shot-{TEAM_PHOTOS - 1}").wait_for(state="attached")


def test_a_mark_that_is_refused_holds_no_other_up(browser: Any, team: Team) -> None:
    team.take_in(("toad", "a toad"), photos=60)
    with labelling(browser, team, "Ada", "toad") as page:
        page.context.set_offline(True)
        press(page, "yn")
        page.wait_for_selector("#wrong:not([hidden])")
        page.evaluate("""() => {
            const place = localStorage.key(0);
            localStorage[place.slice(0, place.lastIndexOf(" ") + 1) + "gone"] = '"y"';
        }""")
        page.context.set_offline(False)
        again = page.context.new_page()  # what the first one has not sent is sent by the second
        again.goto(page.url)
        saved(again)
        assert "1 mark from before" in text_of(again, "wrong")
        assert (team.marks("toad", "Ada"), again.evaluate("localStorage.length")) == (["y", "n"], 0)


def test_two_tabs_keep_each_others_marks(browser: Any, team: Team) -> None:
    team.take_in(("crab", "a crab"), photos=60)
    with labelling(browser, team, "Ada", "crab") as one:
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

    assert team.marks("crab", "Ada") == ["y", "n"]


def test_two_people_share_an_audit_of_the_size_that_one_of_them_chose(browser: Any, team: Team) -> None:
    team.take_in(("shared", "a shared bird"), photos=100)
    with labelling(browser, team, "Ada", "shared") as ada, labelling(browser, team, "Bo", "shared") as bo:
        press(ada, "n" * 100)
        saved(ada)
        ada.fill("#size", "40")
        with ada.expect_navigation():
            ada.click("#audit")
        ada.wait_for_selector(".shot.here")
        bo.reload()
        expect(bo.locator("#joinable")).to_contain_text("0 of 40")
        with bo.expect_navigation():
            bo.click("#join")
        bo.wait_for_selector(".shot.here")
        press(bo, "n" * 16)
        saved(bo)
        press(ada, "n" * 23)
        assert ada.locator("#onward").is_hidden()  # while a photo waits
        press(ada, "n")
        saved(ada)
        expect(ada.locator("#over")).to_have_text("The audit is done.")
        assert "at least" in text_of(ada, "interval") and ada.locator(".shot").count() == 24
        bo.reload()
        expect(bo.locator("#interval")).to_contain_text("95 %")


# -- keys that are faster than the photos: each waits for its photo, or the page says that there is none for it ------


def take_in_short(team: Team, id: str, photos: int) -> None:
    """A query over the first photos of a gallery, a list that does not go on."""
    team.take_in((f"all of {id}", f"a heron {id}"), photos=photos)
    team.take_in((id, f"a stork {id}"))
    team.store.extend(id, [Candidate(*photo) for photo in team.store.candidates(f"all of {id}")])


def unused(page: Any, keys: str) -> None:
    expect(page.locator("#note")).to_contain_text(f": {keys}")


@pytest.mark.parametrize("what", ["team", "list", "likely"])
def test_a_mark_without_a_photo_is_refused_and_changes_no_other(browser: Any, team: Team, what: str) -> None:
    take_in_short(team, f"short {what}", 10)
    with labelling(browser, team, "Ada", f"short {what}", what) as page:
        press(page, "n" * 12)
        unused(page, "2 keys")
        press(page, "y")
        unused(page, "3 keys")
        saved(page)
        assert team.marks(f"short {what}", "Ada") == ["n"] * 10
        press(page, ["ArrowLeft"])
        expect(page.locator("#note")).to_be_hidden()
        press(page, ("ArrowRight", "y"))  # whoever goes to the last photo means it
        saved(page)

    assert sorted(team.marks(f"short {what}", "Ada")) == [*["n"] * 9, "y"]


def test_keys_behind_a_lost_network_are_refused_and_work_when_it_is_back(browser: Any, team: Team) -> None:
    team.take_in(("lost", "a lost heron"), photos=60)
    with labelling(browser, team, "Ada", "lost", "team") as page:
        page.context.set_offline(True)
        press(page, "n" * 26)
        unused(page, "2 keys")
        page.wait_for_selector("#wrong:not([hidden])")
        page.context.set_offline(False)
        saved(page)
        press(page, "y")
        expect(page.locator(".shot[data-mark=y]")).to_have_count(1)
        saved(page)

    assert sorted(team.marks("lost", "Ada")) == [*["n"] * 24, "y"]


def test_photos_that_come_back_are_handed_out_at_the_next_key(browser: Any, team: Team) -> None:
    """Bo and Cy hold what Ada asks for, and give it up while her page stands at its end; two of them, for the photos
    that two people label."""
    take_in_short(team, "back", 30)
    with labelling(browser, team, "Ada", "back", "team") as page:
        rest = [photo.image for photo in team.store.candidates("back")][24:]
        units = [Unit((image,), 2) for image in rest]
        held = [team.store.team.hand_out("back", person, units, [], len(rest)) for person in ("Bo", "Cy")]
        press(page, "n" * 25)
        unused(page, "1 key")
        saved(page)
        with closing(sqlite3.connect(team.gallery / "ledger.sqlite")) as sql, sql:
            sql.execute("UPDATE list_leases SET at = 0 WHERE person IN ('Bo', 'Cy')")
        press(page, "y")
        expect(page.locator(".shot[data-mark=y]")).to_have_count(1)
        saved(page)

    assert held == [6, 6] and sorted(team.marks("back", "Ada")) == [*["n"] * 24, "y"]


# -- deciding: by keyboard alone, and correcting in place --------------------------------------------------------------


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
