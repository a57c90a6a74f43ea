"""The desk of a team in a real browser: an annotator's walk, shared lists, groups, flags, the table of all queries."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from eyespot.curate.annotate.annotation_store import mark_of
from eyespot.curate.annotate.team_store import is_twice
from tests.web.conftest import (
    PHONE,
    TEAM_PHOTOS,
    Team,
    copy_team_gallery,
    labelling,
    opened,
    press,
    saved,
    slow_down,
    team_of,
)

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser
DISPUTES = 26


def test_the_large_photo_says_why_unless_it_is_labelled_blind(browser: Any, team: Team) -> None:
    team.take_in(("why", "a heron"), photos=20)
    with labelling(browser, team, "Ada", "why") as page:
        why, zoom = page.locator("#reasons"), page.locator("#zoom")
        press(page, "zw")
        expect(why).to_contain_text("Its likeness to the query")
        expect(zoom.locator(".heat")).to_have_count(1)
        press(page, "y")
        expect(zoom.locator(".heat, .because")).to_have_count(0)
        page.locator("#with-facts").click()
        press(page, "w")
        expect(why).to_be_hidden()
        saved(page)


class Desk:
    """Somebody who labels by the calls of the page: yes to what is planted, no to the rest."""

    def __init__(self, page: Any, address: str, planted: set[str]) -> None:
        self.request, self.headers, self.planted = page.context.request, {"Origin": address}, planted
        self.at = f"{address}/annotate"

    def photos(self, query: str, what: str) -> list[str]:
        address = f"{self.at}/photos?query={query}&what={what}&count=500&unmarked=true"
        return [photo["image"] for photo in self.request.get(address).json()["photos"]]

    def post(self, call: str, query: str, **data: Any) -> Any:
        answer = self.request.post(f"{self.at}/{call}query={query}", headers=self.headers, data=data or None)
        assert answer.ok, answer.text()
        return answer.json()

    def say(self, query: str, what: str, images: list[str]) -> Any:
        marks = {image: "y" if image in self.planted else "n" for image in images}
        return self.post("marks?", query, marks=marks, what=what)

    def handed(self, query: str, what: str) -> list[str]:
        self.post(f"grow?what={what}&", query)
        return self.photos(query, what)

    def down(self, query: str, what: str, most: int = 500) -> Any:
        """All that is handed out, up to a number; how the query stands then."""
        return self.say(query, what, self.handed(query, what)[:most])


def ended(query: str, size: int, *desks: Desk) -> None:
    """The audit of all that is left, to its end: nothing was missed."""
    for _ in range(3):
        audits = [desk.down(query, "audit")["audit"] for desk in desks]
    for audit in audits:
        assert (audit["size"], audit["done"], audit["relevant"], audit["left"]["text"]) == (size, size, 0, "none")


def with_keys(page: Any, query: str) -> None:
    """One key a photo, and three steps more: `n` to begin, a click to the audit, `q` to the next query."""
    page.goto("/annotate")
    with page.expect_navigation(url=f"**/annotate/label?query={query}"):
        press(page, "n")
    page.wait_for_selector(".shot.here")
    page.context.set_offline(True)
    press(page, "yyyyy")
    expect(page.locator("#saving")).to_have_text("5 not saved yet")
    page.context.set_offline(False)
    saved(page)
    press(page, "y" * 5 + "n" * 100)
    expect(page.locator("#stop")).to_have_text("Stopped at 110")
    saved(page)
    assert (page.text_content("#relevant"), page.text_content("#labelled")) == ("10", "110")
    assert (page.input_value("#size"), page.get_attribute("#size", "max")) == ("50", "50")
    with page.expect_navigation():
        page.locator("#audit").click()
    page.wait_for_selector(".shot.here")
    press(page, "n" * 50)
    expect(page.locator("#over")).to_be_visible()
    expect(page.locator("#interval")).to_have_text("(the audit found 0 of 50)")  # all that is left: no interval
    saved(page)
    with page.expect_navigation(url="**/annotate/label?query=ten-3*"):
        press(page, "q")


def test_three_people_end_ten_queries_from_empty_lists_to_the_published_set(browser: Any, team: Team) -> None:
    """Ten planted herons of 160 under each: one query with keys and a lost network, the others by the page's calls.

    The last is a list that all three share, with a dispute that the lead settles and an audit that one joins.
    """
    people, ids = ("Gil", "Hana", "Ivo"), [f"ten-{at}" for at in range(10)]
    team.take_in(*((id, f"a heron, {id}") for id in ids))
    with ExitStack() as stack:
        lead, *pages = (
            stack.enter_context(opened(browser, team.address, who, viewport={"width": 1100, "height": 800}))
            for who in ("Lea", *people)
        )
        lead.goto("/annotate?q=ten-")
        lead.locator("#every").check()
        lead.get_by_role("button", name="List their photos").click()
        did = lead.locator(".note[role=status]")
        expect(did).to_have_text("10 queries with their photos listed.")
        expect(lead.locator("td[data-name=listed]")).to_have_text([str(TEAM_PHOTOS)] * 10)
        new = lead.get_by_role("button", name="It is a new person")
        for at, who in enumerate(people):
            for id in ids[at::3]:
                lead.locator(f"input[value={id}]").check()
            lead.locator("#give").fill(who)
            lead.get_by_role("button", name="Assign", exact=True).click()
            if lead.url.endswith("/assign"):  # a name that nobody has needs a yes
                new.click()
            expect(did).to_have_text(f"{len(ids[at::3])} queries assigned to {who}.")

        planted = {photo.image for photo in team.store.candidates(ids[0])[:10]}
        with_keys(pages[0], ids[0])
        gil, hana, ivo = desks = [Desk(page, team.address, planted) for page in pages]
        for at, id in enumerate(ids[1:9], 1):
            stands = desks[at % 3].down(id, "list", 110)
            assert [stands[name] for name in ("relevant", "labelled", "rest")] == [10, 110, 50]
            assert stands["descent"] == {"depth": 110, "in_a_row": 100, "stopped_at": 110}
            assert desks[at % 3].post("audit?size=50&", id) == {"drawn": 50, "rest": 50}
            ended(id, 50, desks[at % 3])

        id, seen = ids[9], set[str]()
        for desk in (gil, hana, ivo, gil, hana, ivo):  # until a hundred in a row are not
            handed = desk.handed(id, "team")
            stands = desk.say(id, "team", handed)
            seen |= {*handed}
        wrong = next(image for image, one in team.store.last_judgements(id, "Gil").items() if mark_of(one) == "n")
        hana.post("marks?", id, marks={wrong: "y"}, what="team")
        assert stands["stopped"] and (stands["relevant"], stands["labelled"]) == (10, len(seen))
        lead.goto("/annotate?q=ten-9")
        expect(lead.locator("td[data-name=disputed]")).to_have_text("1 disputed of a heron, ten-9")
        lead.goto(f"/annotate/disputes?query={id}")
        press(lead, "n")
        left(lead, 0)
        rest = TEAM_PHOTOS - len(seen)
        assert gil.post(f"audit?size={rest}&", id) == ivo.post("audit/join?", id) == {"drawn": rest, "rest": rest}
        ended(id, rest, gil, ivo)

        lead.goto("/annotate?q=ten-")
        expect(lead.locator("td[data-name=yes]")).to_have_text(["10"] * 10)
        expect(lead.locator("td[data-name=labelled]")).to_have_text([str(TEAM_PHOTOS)] * 10)
        archive = zipfile.ZipFile(BytesIO(lead.request.get("/annotate/set.zip").body()))
    qrels = {id: grades for id, grades in json.loads(archive.read("labelled/qrels.json")).items() if id in ids}
    assert {id: {image for image, grade in grades.items() if grade} for id, grades in qrels.items()} == dict.fromkeys(
        ids, planted
    )
    with opened(browser, team.address, people[0]) as page:
        page.goto(f"/?q=a heron, {ids[0]}")
        page.locator("#share summary").click()
        page.get_by_role("button", name="Link for a colleague").click()
        link = page.get_by_label("The link").input_value()
    with opened(browser, team.address) as colleague:  # on another machine, without a token
        colleague.goto(link)
        expect(colleague.locator(".tile")).to_have_count(len(planted))
        large = colleague.locator("#slides img")
        colleague.locator(".tile .picture").first.click()
        assert large.bounding_box()["y"] >= 0 and "Next" in colleague.locator("#slides").inner_text()
        colleague.context.set_offline(True)
        press(colleague, ["ArrowRight"])
        expect(colleague.locator("#slides .place")).to_have_text("2 of 10")
        colleague.context.set_offline(False)
        expect(large).not_to_have_js_property("naturalWidth", 0)


def test_two_people_go_down_one_list_and_a_slow_line_loses_nothing(browser: Any, team: Team) -> None:
    team.take_in(("both", "a heron for two"), photos=60)
    with labelling(browser, team, "Ada", "both", "team") as ada, labelling(browser, team, "Bo", "both", "team") as bo:
        slow_down(bo)
        for _ in range(30):
            press(ada, "n")
            press(bo, "n")
        for page in (ada, bo):
            expect(page.locator(".shot[data-mark=n]")).to_have_count(30)
            saved(page)
        ada.reload()
        expect(ada.locator("#labelled")).not_to_have_text("…")
        together = int(ada.text_content("#labelled") or 0)
    hers, his = (team.store.last_judgements("both", who).keys() for who in ("Ada", "Bo"))
    seed = team.store.team.seed("both") or ""

    assert len(hers) == len(his) == 30 and together == len(hers | his)
    assert all(is_twice(seed, image) for image in hers & his)


def test_a_photo_is_flagged_with_two_keys_and_the_letter_is_no_mark(browser: Any, team: Team) -> None:
    team.take_in(("flags", "a heron with a flag"), photos=160)
    with labelling(browser, team, "Ada", "flags") as page:
        press(page, ("End", "f", "2"))  # a photo that no other test flags
        flag = page.locator(".shot.here .flag")
        expect(flag).to_have_text("⚑ personal data")
        press(page, "zf4")
        page.keyboard.type("a yak in a pen")
        page.keyboard.press("Enter")
        expect(flag).to_have_text("⚑ personal data, another reason: a yak in a pen")
        press(page, "y")
        saved(page)

    assert team.marks("flags", "Ada") == ["y"]


def test_a_burst_is_one_tile_that_is_marked_undone_and_opened(browser: Any, tmp_path: Path) -> None:
    from tests.web.test_team import BURST, make_gallery

    with team_of(make_gallery(tmp_path)) as team:
        team.take_in(("1", "stripes"), photos=30)
        with labelling(browser, team, "Ada", "1") as page:
            tile = page.locator(".shot.stack")
            expect(tile.locator(".count")).to_have_text(f"× {BURST}")
            assert page.locator(".shot").count() == 30 - BURST + 1
            tile.click()
            press(page, "y")
            expect(page.locator("#labelled")).to_have_text(str(BURST))
            press(page, "u")
            expect(page.locator("#labelled")).to_have_text("0")
            press(page, "n")
            saved(page)
            tile.click()
            press(page, "g")
            expect(page.locator(".shot")).to_have_count(30)
            press(page, ("ArrowRight", "y"))
            saved(page)
            page.reload()
            page.wait_for_selector(".shot.here")
            expect(page.locator("#relevant")).to_have_text("1")
            expect(page.locator(".shot.stack .count")).to_have_text(f"× {BURST - 1}")
        assert sorted(team.marks("1", "Ada")) == ["n"] * (BURST - 1) + ["y"]


def test_the_least_done_of_250_queries_is_found_with_one_click(browser: Any, tmp_path: Path) -> None:
    with (
        team_of(copy_team_gallery(tmp_path)) as team,
        opened(browser, team.address, "Lea", viewport={"width": 1280, "height": 720}) as page,
    ):
        team.take_in(("1", "a heron"), photos=60)
        team.take_in(*((str(number), f"bird number {number}") for number in range(2, 251)))
        team.store.mark("1", "Ada", {team.store.candidates("1")[0].image: "y"})
        page.goto("/annotate")
        with page.expect_navigation():
            page.get_by_role("link", name="Progress").click()
        first, last = (page.locator("tbody tr").nth(at).locator("th").text_content() for at in (0, 249))
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size(PHONE)
        width = page.evaluate("document.documentElement.scrollWidth")

    assert (first, last) == ("bird number 2", "a heron")
    assert height < 1400 and width == 390  # the table scrolls in itself


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

    counts = [text.count(f"Settled as {word} by") for word in ("yes", "no", "unsure")]
    assert counts == [9, 9, 8]


def test_disputes_are_settled_with_zoom_undo_a_note_and_a_flag(browser: Any, team: Team) -> None:
    with disputing(browser, team, "Lea", "look at") as page:
        page.set_viewport_size({"width": 3840, "height": 2160})
        assert page.locator(".disputed").bounding_box()["width"] > 3400
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
        expect(page.locator("#photo-1")).to_contain_text("Settled as unsure by Lea")
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
        card.get_by_role("button", name="Photo 20 is a no").click()
        expect(card).to_contain_text("Settled as no by Cem")
        assert (page.evaluate("scrollY"), before > 500) == (before, True)
        left(page, DISPUTES - 1)
        expect(card.get_by_role("button", name="Photo 20 is a no")).to_be_focused()
        page.reload()
        expect(card).to_contain_text("Settled as no by Cem")
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
        expect(page.locator("#photo-1")).to_contain_text("Settled as yes by Lea")
        expect(page.locator("#photo-1").get_by_role("alert")).to_have_count(0)
        saved(page)
        page.reload()
        left(page, DISPUTES - 3)
