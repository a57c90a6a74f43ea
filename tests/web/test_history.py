"""The history on the pages: one's own searches, after a restart too, saved, deleted, and not kept at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from eyespot.web import Access, Role, ServerSettings
from eyespot.web._search_params import SearchParams
from eyespot.web.searching import unfiltered
from tests.web.conftest import BO, TOKENS, at_this_machine, copy_gallery, from_afar


@pytest.fixture
def world(tmp_path: Path, settings: ServerSettings) -> ServerSettings:
    return replace(settings, gallery=copy_gallery(tmp_path), cache=None)


@contextmanager
def named(settings: ServerSettings) -> Iterator[TestClient]:
    """Whoever sits at the machine that serves, under a name."""
    with at_this_machine(settings) as here:
        here.cookies.set("eyespot_name", "lea")
        yield here


def headings(client: TestClient) -> list[str]:
    """What the history shows; the server writes it behind the answers."""
    client.app.state.eyespot.history.writer.submit(lambda: None).result()  # type: ignore[attr-defined]
    return re.findall(r'<p><a href="/\?[^"]*" dir="auto">([^<]*)</a>', client.get("/history").text)


def test_a_search_is_saved_and_deleted_and_there_after_a_restart(world: ServerSettings) -> None:
    with named(world) as here:
        for params in ({"q": "stripes", "label": "kind=heron"}, {"q": "discs"}):
            assert here.get("/", params=params).status_code == 200
        assert headings(here) == ["discs", "stripes, filtered"]
        assert 'href="/?q=stripes' in here.get("/").text
        first, second = re.findall(r'name="number" value="(\d+)"><label', here.get("/history").text)
        here.post("/history/save", data={"number": second, "name": "Herons with stripes"})
        assert "Herons with stripes" in here.get("/").text
        here.post("/history/forget", data={"number": first})
    with named(world) as here:
        here.post("/history/clear")
        assert headings(here) == ["Herons with stripes"]
        here.post("/history/save", data={"number": second})
        here.post("/history/clear")
        assert headings(here) == []
        numbers = [0, 1, 2**62, 2**62 + 1, "one"]
        codes = [here.post("/history/forget", data={"number": n}, follow_redirects=False).status_code for n in numbers]
        assert codes == [422, 404, 404, 422, 422]


def test_a_search_within_a_list_or_a_region_is_a_filtered_one(world: ServerSettings) -> None:
    with named(world) as here:
        ids = [one["id"] for one in here.get("/v1/items", params={"limit": 3}).json()["items"]]
        made = here.post("/v1/lists", json={"name": "Three", "items": ids}).json()
        here.get("/", params={"q": "stripes", "list": made["list"]})
        assert headings(here) == ["stripes, filtered"]
    whole = SearchParams(q="stripes")
    for part in ({"region": "0123456789ab:c1"}, {"list": "Three"}, {"label": ("a=b",)}, {"near": "1,2,3,4"}):
        assert unfiltered(whole.model_copy(update=part)) == whole


OWNERS = [(), (Access.by(BO, "search", Role.OWNER, internal=True), Access.by(BO + "2", "owner", Role.OWNER))]


@pytest.mark.parametrize("access", OWNERS, ids=["nobody else has a token", "only owners have one"])
def test_the_owner_at_this_machine_needs_no_name(world: ServerSettings, access: tuple[Access, ...]) -> None:
    alone = replace(world, access=access)
    with at_this_machine(alone) as here:
        for words in ("stripes", "discs"):
            here.get("/", params={"q": words})
        assert headings(here) == ["discs", "stripes"]
        number = re.findall(r'name="number" value="(\d+)"><label', here.get("/history").text)[1]
        here.post("/history/save", data={"number": number, "name": "With stripes"})
    with at_this_machine(alone) as here:
        start, page = here.get("/").text, here.get("/history").text
        assert headings(here) == ["With stripes", "discs"] and "With stripes" in start
        assert "no name here" not in start + page + here.get("/lists").text and "<strong" not in page


def test_the_searches_of_a_nameless_owner_are_nobody_elses(world: ServerSettings) -> None:
    with at_this_machine(replace(world, access=())) as here:
        here.get("/", params={"q": "stripes"})
        here.cookies.set("eyespot_name", "ada")
        assert headings(here) == []
    for token in TOKENS.values():
        with from_afar(world, token) as other:
            assert headings(other) == []
    with at_this_machine(world) as anybody:  # who may be one of those with a token
        assert headings(anybody) == []


def test_who_has_no_name_has_no_history_and_learns_why(world: ServerSettings) -> None:
    with at_this_machine(world) as here:
        here.get("/", params={"q": "stripes"})
        assert headings(here) == [] and "not remembered" in here.get("/").text
        assert here.post("/history/save", data={"number": 1, "name": "Stripes"}).status_code == 422
        here.cookies.set("eyespot_name", "ada")
        here.get("/", params={"q": "discs"})
        assert headings(here) == ["discs"] and "visitor" not in here.get("/").text + here.get("/history").text


def test_what_earlier_versions_kept_of_visitors_is_shown_to_nobody_and_can_be_deleted(world: ServerSettings) -> None:
    with at_this_machine(world) as here:
        history = here.app.state.eyespot.history.open()  # type: ignore[attr-defined]
        for words in ("stripes", "discs"):
            history.record("person:visitor", f"q={words}", words, 1)
        history.save("person:visitor", history.recent("person:visitor")[0].number, "Saved")
        shown = here.get("/history").text + here.get("/").text
        here.post("/history/clear")
        left = here.get("/history").text

        assert not {"stripes", "Saved"} & set(re.findall(r"\w+", shown)) and "earlier visitors" in shown
        assert history.recent("person:visitor") == [] and "earlier visitors" not in left


def test_what_is_no_search_of_a_person_or_not_to_be_kept_is_not_remembered(world: ServerSettings) -> None:
    """Those of programs, pages further down, and of who does not want it or where the owner keeps none."""
    with named(world) as here:
        payload = here.get("/v1/search", params={"q": "stripes"}).json()
        here.get("/", params={"q": "discs", "cursor": payload["next"]})
        here.post("/history/keep", data={"on": "false"})
        here.get("/", params={"q": "stripes"})
        assert headings(here) == []
    with at_this_machine(replace(world, keep_history=False)) as here:
        assert [here.get(place).status_code for place in ("/?q=stripes", "/history")] == [200, 404]
