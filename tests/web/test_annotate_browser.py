"""Labelling in a real browser: by keyboard alone, two at once, through a dead server, and a whole day of it."""

from __future__ import annotations

import csv
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from io import BytesIO, StringIO
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from eyespot.curate.annotate.annotation_store import Candidate
from eyespot.curate.annotate.team_store import Unit
from eyespot.pipelines.human_review import Case, Queue, write_queue
from eyespot.web import ServerSettings
from tests.web.conftest import (
    DESK,
    PHONE,
    TEAM_PHOTOS,
    Team,
    copy_team_gallery,
    labelling,
    opened,
    press,
    saved,
    serving,
    slow_down,
)
from tests.worlds import copy_of_sample_gallery, draw_photos
from tests.worlds.galleries import facts_of

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
