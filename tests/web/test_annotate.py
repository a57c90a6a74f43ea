"""The annotators' pages as programs meet them: who may mark what, what is refused, and what two people share."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from fastapi.testclient import TestClient

from eyespot.curate.annotate.annotation_store import AnnotationStore, mark_of
from eyespot.web import Role, ServerSettings
from eyespot.web.annotate._overview import TOLD
from tests.made_once import made_once
from tests.web.conftest import ACCESS, TOKENS, Team, at_this_machine, copy_team_gallery, from_afar
from tests.worlds import annotation as world

Q = {"query": "a heron"}


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 pictures, the first ten near to the words `a heron`."""
    return world.gallery(tmp_path_factory.mktemp("annotate"))


@pytest.fixture
def settings(gallery: Path, tmp_path: Path) -> ServerSettings:
    return ServerSettings(
        gallery, access=ACCESS, hosts=("photos.example",), cache=tmp_path / "cache", refused=("secret nest",)
    )


@pytest.fixture
def ada(settings: ServerSettings) -> Iterator[TestClient]:
    with at_this_machine(settings) as client:
        client.post("/name", data={"name": "Ada"})
        client.post("/annotate/queries", data={"text": "a heron"})
        yield client


def images(client: TestClient, count: int = 5) -> list[str]:
    payload = client.get("/annotate/photos", params={**Q, "count": count}).json()
    return [one["image"] for one in payload["photos"]]


def mark(client: TestClient, marks: dict[str, str | None]) -> int:
    return client.post("/annotate/marks", params=Q, json={"marks": marks}).status_code


def test_a_mark_is_on_the_disk_when_the_answer_comes_and_shown_on_its_photo(ada: TestClient, gallery: Path) -> None:
    third = images(ada)[2]
    for _ in range(2):  # the same click again changes nothing
        last = ada.post("/annotate/marks", params=Q, json={"marks": {third: "d"}}).json()
    with AnnotationStore(gallery / "ledger.sqlite") as desk:
        assert mark_of(desk.last_judgements("a heron", "Ada")[third]) == "d"
    payload = ada.get("/annotate/photos", params={**Q, "first": 2, "count": 1}).json()
    assert (payload["photos"][0]["mark"], payload["total"], last["changed"]) == ("d", 60, 0)


def test_unknown_photos_marks_and_queries_are_refused(ada: TestClient) -> None:
    """A photo of no list with a status of its own, by which a page knows that it need not try again."""
    assert mark(ada, {"no such photo": "y"}) == 409
    assert mark(ada, {images(ada)[0]: "maybe"}) == 422
    assert ada.get("/annotate/photos", params={"query": "none"}).status_code == 422
    assert ada.post("/annotate/about", data={"query": "a heron", "visible": "maybe"}).status_code == 422


def test_who_said_no_name_marks_nothing(settings: ServerSettings) -> None:
    with at_this_machine(settings) as client:
        answer = client.get("/annotate/standing", params=Q)
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
    request = {"params": Q}
    marks = dict.fromkeys(images(ada)[:10], "n")
    payload = ada.post("/annotate/marks", json={"marks": marks, "opened": 45.5}, **request).json()
    assert payload["seconds"] >= 45.5
    for wrong in (-1, 1e10, "long ago"):
        assert ada.post("/annotate/marks", json={"marks": marks, "opened": wrong}, **request).status_code == 422


@pytest.mark.parametrize("what", ["likely", "telling"])
def test_likely_and_telling_first_show_what_is_not_labelled(ada: TestClient, what: str) -> None:
    listed = images(ada, 60)
    mark(ada, {listed[0]: "y", listed[-1]: "n"})
    payload = ada.get("/annotate/photos", params={**Q, "what": what, "count": 60}).json()
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


# -- an audit that two people share: one plan, no photo for both, one result, at two servers of one ledger ------------


@pytest.fixture
def people(tmp_path: Path) -> Iterator[tuple[TestClient, TestClient]]:
    """Ada and Bo, each at a server of their own over one gallery of 60 pictures; Ada labelled the first ten."""
    made = made_once("web-audit", world.gallery)
    settings = ServerSettings(Path(shutil.copytree(made / "gallery", tmp_path / "gallery")), cache=tmp_path / "cache")
    with at_this_machine(settings) as ada, at_this_machine(settings) as bo:
        ada.post("/name", data={"name": "Ada"})
        bo.post("/name", data={"name": "Bo"})
        ada.post("/annotate/queries", data={"text": "a heron"})
        label(ada, images(ada, 10), "y")
        yield ada, bo


def label(client: TestClient, images: list[str], verdict: str = "n") -> None:
    assert mark(client, dict.fromkeys(images, verdict)) == 200


def held(client: TestClient) -> list[str]:
    payload = client.get("/annotate/photos", params={**Q, "what": "audit", "count": 500}).json()
    return [one["image"] for one in payload["photos"] if one["mark"] is None]


def stands(client: TestClient) -> Any:
    return client.get("/annotate/standing", params=Q).json()


def work(client: TestClient) -> list[str]:
    """Mark what is handed out until there is no more; gives the photos."""
    marked: list[str] = []
    while True:
        while handed := held(client):
            label(client, handed[:4])  # page by page, so that both are at it
            marked += handed[:4]
        if not client.post("/annotate/grow", params={**Q, "what": "audit"}).json()["new"]:
            return marked


def draw(client: TestClient, **more: float) -> int:
    return client.post("/annotate/audit", params={**Q, **more}).status_code


def join(client: TestClient) -> int:
    return client.post("/annotate/audit/join", params=Q).status_code


@pytest.mark.long
def test_two_people_finish_one_audit_and_no_photo_is_drawn_twice(people: tuple[TestClient, TestClient]) -> None:
    """What either finds counts for both, and their next audit leaves out what either has labelled."""
    ada, bo = people
    wrong = [join(bo), draw(ada, size=0)]
    assert draw(ada, size=45) == 201
    before = stands(bo)["joinable"]
    wrong.append(draw(bo))
    assert join(bo) == 200
    label(bo, held(bo)[:3], "y")

    with ThreadPoolExecutor(2) as pool:
        hers, his = pool.map(work, people)

    assert wrong == [422] * 3
    assert before == {"people": ["Ada"], "size": 45, "done": 0} and stands(bo)["joinable"] is None
    assert len(hers) + len(his) == 42 == len({*hers, *his}) and hers and his
    both = [stands(client) for client in people]
    audit = both[0]["audit"]
    assert audit == both[1]["audit"] and (audit["done"], audit["people"]) == (45, ["Ada", "Bo"])
    assert audit["together"] == 13 and audit["left"]["high"] <= 5
    assert [one["found_at_least"] for one in both] == [pytest.approx(both[0]["found_at_least"])] * 2
    assert (both[1]["relevant"], draw(ada, size=5)) == (3, 201)
    assert not {*hers, *his}.intersection(held(ada)) and stands(bo)["audit"]["size"] == 5


# -- a list that several share ---------------------------------------------------------------------------------------

PEOPLE = 4
TEAM = {"query": "1", "what": "team"}


def person(client: TestClient, name: str) -> TestClient:
    """Another browser at the same server, of somebody who entered a name."""
    opened = TestClient(client.app, base_url="http://127.0.0.1", client=("127.0.0.1", 4000))
    opened.post("/name", data={"name": name})
    return opened


@pytest.mark.long
def test_all_who_come_to_the_end_of_a_list_at_once_get_photos_of_what_it_grows_by(tmp_path: Path) -> None:
    """The list holds 24 photos, which the first of them has; it grows once, for all who wait for it."""
    place = copy_team_gallery(tmp_path)
    with closing(Team(place, "")) as team:
        team.take_in(("1", world.WORDS), photos=24)
    with at_this_machine(ServerSettings(place, cache=None)) as client:
        first, *others = [person(client, f"person {number}") for number in range(PEOPLE)]
        first.post("/annotate/grow", params=TEAM)
        gate = Barrier(len(others))

        def ask(who: TestClient) -> int:
            gate.wait()
            return int(who.post("/annotate/grow", params=TEAM).json()["new"])

        with ThreadPoolExecutor(len(others)) as pool:
            handed = list(pool.map(ask, others))
        shown = [len(one.get("/annotate/photos", params=TEAM).json()["photos"]) for one in others]

    assert shown == handed and 0 not in handed
