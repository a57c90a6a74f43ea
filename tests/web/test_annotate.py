"""The annotators' pages as programs and strangers meet them: who may mark what, and what is refused."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from eyespot.curate.annotate.annotation_store import AnnotationStore, mark_of
from eyespot.web import Access, Role, ServerSettings
from eyespot.web.annotate._overview import TOLD
from tests.web.conftest import TOKENS, at_this_machine, from_afar
from tests.worlds import annotation as world


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 pictures, the first ten near to the words `a heron`."""
    return world.gallery(tmp_path_factory.mktemp("annotate"))


@pytest.fixture
def settings(gallery: Path, tmp_path: Path) -> ServerSettings:
    access = tuple(Access.by(token, role.name.lower(), role) for role, token in TOKENS.items())
    return ServerSettings(
        gallery, access=access, hosts=("photos.example",), cache=tmp_path / "cache", refused=("secret nest",)
    )


@pytest.fixture
def ada(settings: ServerSettings) -> Iterator[TestClient]:
    """Ada, at this machine, with the query `a heron`."""
    with at_this_machine(settings) as client:
        client.post("/name", data={"name": "Ada"})
        client.post("/annotate/queries", data={"text": "a heron"})
        yield client


def images(client: TestClient, count: int = 5) -> list[str]:
    payload = client.get("/annotate/photos", params={"query": "a heron", "count": count}).json()
    return [one["image"] for one in payload["photos"]]


def mark(client: TestClient, marks: dict[str, str | None]) -> int:
    return client.post("/annotate/marks", params={"query": "a heron"}, json={"marks": marks}).status_code


def test_a_mark_is_on_the_disk_when_the_answer_comes_and_shown_on_its_photo(ada: TestClient, gallery: Path) -> None:
    third = images(ada)[2]
    for _ in range(2):  # the same click again changes nothing
        last = ada.post("/annotate/marks", params={"query": "a heron"}, json={"marks": {third: "d"}}).json()
    with AnnotationStore(gallery / "ledger.sqlite") as desk:
        assert mark_of(desk.last_judgements("a heron", "Ada")[third]) == "d"
    payload = ada.get("/annotate/photos", params={"query": "a heron", "first": 2, "count": 1}).json()
    assert (payload["photos"][0]["mark"], payload["total"], last["changed"]) == ("d", 60, 0)


def test_unknown_photos_marks_and_queries_are_refused(ada: TestClient) -> None:
    """A photo of no list with a status of its own, by which a page knows that it need not try again."""
    assert mark(ada, {"no such photo": "y"}) == 409
    assert mark(ada, {images(ada)[0]: "maybe"}) == 422
    assert ada.get("/annotate/photos", params={"query": "none"}).status_code == 422
    assert ada.post("/annotate/about", data={"query": "a heron", "visible": "maybe"}).status_code == 422


def test_who_said_no_name_marks_nothing(settings: ServerSettings) -> None:
    with at_this_machine(settings) as client:
        answer = client.get("/annotate/standing", params={"query": "a heron"})
    assert answer.status_code == 422 and "your name" in answer.json()["detail"]


def test_a_name_that_was_said_while_searching_is_kept_with_any_letters(settings: ServerSettings) -> None:
    with at_this_machine(settings) as client:
        client.post("/name", data={"name": "Žofie 蒼鷺", "next": "/"})
        assert 'You label as <strong dir="auto">Žofie 蒼鷺</strong>' in client.get("/annotate").text


def test_a_token_names_its_annotator_whatever_the_cookie_says(settings: ServerSettings) -> None:
    client = from_afar(settings, TOKENS[Role.ANNOTATOR])
    client.cookies.set("eyespot_name", "eve")
    assert 'You label as <strong dir="auto">annotator</strong>' in client.get("/annotate").text


def test_the_first_marks_of_a_page_take_the_time_since_it_was_opened(ada: TestClient) -> None:
    request = {"params": {"query": "a heron"}}
    marks = dict.fromkeys(images(ada)[:10], "n")
    payload = ada.post("/annotate/marks", json={"marks": marks, "opened": 45.5}, **request).json()
    assert payload["seconds"] >= 45.5
    for wrong in (-1, 1e10, "long ago"):
        assert ada.post("/annotate/marks", json={"marks": marks, "opened": wrong}, **request).status_code == 422


@pytest.mark.parametrize("what", ["likely", "telling"])
def test_likely_and_telling_first_show_what_is_not_labelled(ada: TestClient, what: str) -> None:
    listed = images(ada, 60)
    mark(ada, {listed[0]: "y", listed[-1]: "n"})
    payload = ada.get("/annotate/photos", params={"query": "a heron", "what": what, "count": 60}).json()
    assert not {listed[0], listed[-1]} & {one["image"] for one in payload["photos"]}


# -- lists, intake, and what is taken along ---------------------------------------------------------------------------


def queries(gallery: Path) -> list[str]:
    with AnnotationStore(gallery / "ledger.sqlite") as desk:
        return [*desk.queries()]


REFUSED = (
    ({"text": "  "}, 422),
    ({"text": "a\0whale"}, 422),
    ({"text": "a whale " * 40}, 422),
    ({"text": "the secret nest"}, 422),
    ({"text": "a whale", "label": "kind"}, 422),
    ({"text": "a whale", "label": "kind=whale"}, 404),
    ({"text": "a whale", "label": "no column=1"}, 422),
)


def test_what_is_refused_leaves_no_query_behind(ada: TestClient, gallery: Path) -> None:
    before = queries(gallery)
    codes = [ada.post("/annotate/queries", data=given).status_code for given, _ in REFUSED]
    assert codes == [code for _, code in REFUSED] and queries(gallery) == before
    assert ada.post("/annotate/queries", data={"text": ("a heron " * 38)[:300]}).status_code == 200


def test_a_search_whose_list_is_the_gallery_can_be_finished(ada: TestClient) -> None:
    ada.post("/annotate/queries", data={"text": "a gull"})
    of_gulls = {"params": {"query": "a gull"}}
    listed = [one["image"] for one in ada.get("/annotate/photos?count=100", **of_gulls).json()["photos"]]
    payload = ada.post("/annotate/marks", json={"marks": dict.fromkeys(listed, "y")}, **of_gulls).json()
    assert (payload["listed"], payload["stopped"], payload["grows"]) == (60, True, False)


def test_the_list_of_all_queries_is_never_behind(ada: TestClient) -> None:
    ada.post("/annotate/queries", data={"text": "a raven"})
    shown = []
    for image in images(ada, 2):
        ada.post("/annotate/marks", params={"query": "a raven"}, json={"marks": {image: "y"}})
        row = ada.get("/annotate").text.partition(">a raven</a>")[2]
        shown.append(re.findall(r'data-name="labelled">(\d+)</td>', row)[0])
    assert shown == ["1", "2"]


def test_a_label_lists_all_its_photos_and_no_others(ada: TestClient) -> None:
    ada.post("/annotate/queries", data={"text": "a wading bird", "label": "kind=heron"})
    payload = ada.get("/annotate/photos", params={"query": "a wading bird"}).json()
    assert (payload["total"], payload["grows"]) == (10, False)


def test_what_is_told_of_a_query_is_kept(ada: TestClient, gallery: Path) -> None:
    """And whoever says one thing more leaves the rest."""
    for given in ({"category": "Behavior", "lingo": "yes", "visible": "yes", "feasible": "yes"}, {"of_interest": "no"}):
        ada.post("/annotate/about", data={"query": "a heron", **given})
    with AnnotationStore(gallery / "ledger.sqlite") as desk:
        wanted = desk.query("a heron")
    assert (wanted.facts["category"], wanted.facts["lingo"]) == ("Behavior", "yes")
    assert (wanted.failing, wanted.open) == (["of_interest"], [])


def about(gallery: Path) -> dict[str, str]:
    with AnnotationStore(gallery / "ledger.sqlite") as desk:
        facts = desk.query("a heron").facts
        return {name: str(facts.get(name, "")) for name in TOLD}


def test_a_page_that_is_out_of_date_changes_only_what_was_changed_on_it(ada: TestClient, gallery: Path) -> None:
    ada.post("/annotate/about", data={"query": "a heron", "category": "Species", "lingo": "no", "iconic_group": "Aves"})
    shown = about(gallery)
    ada.post("/annotate/about", data={"query": "a heron", **shown, "lingo": "yes", "before": json.dumps(shown)})
    stale = shown | {"category": "Behavior", "iconic_group": ""}
    ada.post("/annotate/about", data={"query": "a heron", **stale, "before": json.dumps(shown)})
    assert about(gallery) == shown | {"category": "Behavior", "iconic_group": "", "lingo": "yes"}


def test_the_form_says_what_it_showed(ada: TestClient, gallery: Path) -> None:
    ada.post("/annotate/about", data={"query": "a heron", "category": 'it\'s "one"'})
    shown = re.search(r"name=\"before\" value='([^']*)'", ada.get("/annotate/query?query=a+heron").text)
    assert shown and json.loads(html.unescape(shown[1])) == about(gallery)


def test_a_query_without_marks_is_removed_and_one_with_marks_is_not(ada: TestClient) -> None:
    ada.post("/annotate/queries", data={"text": "a bittern"})
    gone = ada.post("/annotate/remove", data={"query": "a bittern"}, follow_redirects=False)
    mark(ada, {images(ada)[0]: "y"})
    refusal = ada.post("/annotate/remove", data={"query": "a heron"})
    shown = ada.get("/annotate", headers={"Accept": "text/html"}).text
    about = ada.get("/annotate/query?query=a+heron").text

    assert (gone.status_code, refusal.status_code) == (303, 422)
    assert "a heron" in shown and "a bittern" not in shown
    assert 'action="/annotate/about"' in about and 'action="/annotate/remove"' not in about
