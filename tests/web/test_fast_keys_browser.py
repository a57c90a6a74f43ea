"""Keys that are faster than the photos: each waits for its photo, or the page says that there is none for it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from eyespot.curate.annotate.annotation_store import Candidate
from eyespot.curate.annotate.leases import Unit
from tests.web.conftest import Team, labelling, press, saved, slow_down

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # minutes of a browser


def take_in_short(team: Team, id: str, photos: int) -> None:
    """A query over the first photos of a gallery, a list that does not go on."""
    team.take_in((f"all of {id}", f"a heron {id}"), photos=photos)
    team.take_in((id, f"a stork {id}"))
    team.store.extend(id, [Candidate(*photo) for photo in team.store.candidates(f"all of {id}")])


def unused(page: Any, keys: str) -> None:
    """The page says that so many keys were not used."""
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


def test_taps_on_a_slow_line_wait_for_their_photos_as_keys_do(browser: Any, team: Team) -> None:
    team.take_in(("taps", "a heron to tap"), photos=60)
    with labelling(browser, team, "Ada", "taps", "team") as page:
        slow_down(page)
        page.evaluate("for (let tap = 0; tap < 40; tap += 1) document.querySelector('.keys [data-key=n]').click()")
        expect(page.locator("#note")).to_contain_text("16 keys")
        expect(page.locator(".shot[data-mark=n]")).to_have_count(40)
        expect(page.locator("#note")).to_be_hidden()
        saved(page)

    assert team.marks("taps", "Ada") == ["n"] * 40


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
        held = [team.store.team.leases.hand_out("back", person, units, [], len(rest)) for person in ("Bo", "Cy")]
        press(page, "n" * 25)
        unused(page, "one key")
        saved(page)
        with closing(sqlite3.connect(team.gallery / "ledger.sqlite")) as sql, sql:
            sql.execute("UPDATE list_leases SET at = 0 WHERE person IN ('Bo', 'Cy')")
        press(page, "y")
        expect(page.locator(".shot[data-mark=y]")).to_have_count(1)
        saved(page)

    assert held == [6, 6] and sorted(team.marks("back", "Ada")) == [*["n"] * 24, "y"]
