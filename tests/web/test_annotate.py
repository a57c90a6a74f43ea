"""The annotators' pages as programs and strangers meet them: who may mark what, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from eyespot.build.annotate.desk import Desk, mark_of
from eyespot.web import Access, Role, Settings
from tests.build.annotate import world
from tests.web.conftest import TOKENS, at_this_machine, from_afar


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 pictures, the first ten near to the words `a heron`."""
    return world.gallery(tmp_path_factory.mktemp("annotate"))


@pytest.fixture
def settings(gallery: Path, tmp_path: Path) -> Settings:
    access = tuple(Access.by(token, role.name.lower(), role) for role, token in TOKENS.items())
    return Settings(
        gallery, access=access, hosts=("photos.example",), cache=tmp_path / "cache", refused=("secret nest",)
    )


@pytest.fixture
def ada(settings: Settings) -> Iterator[TestClient]:
    """Ada, at this machine, with the query `a heron`."""
    with at_this_machine(settings) as client:
        client.post("/annotate/name", data={"name": "Ada"})
        client.post("/annotate/queries", data={"text": "a heron"})
        yield client


def images(client: TestClient, count: int = 5) -> list[str]:
    told = client.get("/annotate/photos", params={"query": "a heron", "count": count}).json()
    return [one["image"] for one in told["photos"]]


def mark(client: TestClient, marks: dict[str, str | None]) -> int:
    return client.post("/annotate/marks", params={"query": "a heron"}, json={"marks": marks}).status_code


def test_a_mark_is_on_the_disk_when_the_answer_comes(ada: TestClient, gallery: Path) -> None:
    image = images(ada)[0]
    mark(ada, {image: "y"})
    with Desk(gallery / "ledger.sqlite") as desk:
        assert mark_of(desk.said("a heron", "Ada")[image]) == "y"


def test_the_same_click_again_changes_nothing(ada: TestClient) -> None:
    image = images(ada)[1]
    mark(ada, {image: "n"})
    again = ada.post("/annotate/marks", params={"query": "a heron"}, json={"marks": {image: "n"}})
    assert again.json()["changed"] == 0


def test_the_photos_say_what_was_said_of_them(ada: TestClient) -> None:
    third = images(ada)[2]
    mark(ada, {third: "d"})
    told = ada.get("/annotate/photos", params={"query": "a heron", "first": 2, "count": 1}).json()
    assert (told["photos"][0]["mark"], told["total"]) == ("d", 60)


def test_a_photo_of_no_list_is_refused(ada: TestClient) -> None:
    assert mark(ada, {"no such photo": "y"}) == 422


def test_an_unknown_mark_is_refused(ada: TestClient) -> None:
    assert mark(ada, {images(ada)[0]: "maybe"}) == 422


def test_who_said_no_name_marks_nothing(settings: Settings) -> None:
    with at_this_machine(settings) as client:
        answer = client.get("/annotate/standing", params={"query": "a heron"})
    assert answer.status_code == 422 and "say your name" in answer.json()["detail"]


def test_a_name_of_any_letters_is_kept(settings: Settings) -> None:
    with at_this_machine(settings) as client:
        client.post("/annotate/name", data={"name": "Žofie 蒼鷺"})
        assert "Žofie 蒼鷺" in client.get("/annotate").text


def test_a_reader_does_not_annotate(settings: Settings) -> None:
    assert from_afar(settings, TOKENS[Role.READER]).get("/annotate").status_code == 403


def test_a_token_names_its_annotator_whatever_the_cookie_says(settings: Settings) -> None:
    client = from_afar(settings, TOKENS[Role.ANNOTATOR])
    client.cookies.set("eyespot-annotator", b"eve".hex())
    assert 'You label as <strong dir="auto">annotator</strong>' in client.get("/annotate").text


def test_another_sites_page_marks_nothing(ada: TestClient) -> None:
    asked = {"params": {"query": "a heron"}, "json": {"marks": {images(ada)[0]: "n"}}}
    assert ada.post("/annotate/marks", headers={"Origin": "http://evil.example"}, **asked).status_code == 403


def test_words_that_the_owner_refuses_are_no_query(ada: TestClient) -> None:
    answer = ada.post("/annotate/queries", data={"text": "the secret nest"})
    assert answer.status_code == 422 and "answers no query" in answer.json()["detail"]


def test_html_in_a_query_stays_text(ada: TestClient) -> None:
    ada.post("/annotate/queries", data={"text": "<script>alert(1)</script>"})
    assert "<script>alert" not in ada.get("/annotate").text


def test_an_unknown_query_is_told(ada: TestClient) -> None:
    assert ada.get("/annotate/photos", params={"query": "none"}).status_code == 422


def test_likely_first_shows_what_is_not_labelled(ada: TestClient) -> None:
    listed = images(ada, 60)
    mark(ada, {listed[0]: "y", listed[-1]: "n"})
    told = ada.get("/annotate/photos", params={"query": "a heron", "what": "likely", "count": 60}).json()
    assert not {listed[0], listed[-1]} & {one["image"] for one in told["photos"]}


def test_a_dispute_is_settled_on_its_page(ada: TestClient, settings: Settings) -> None:
    image = images(ada)[4]
    mark(ada, {image: "y"})
    with at_this_machine(settings) as bob:
        bob.post("/annotate/name", data={"name": "Bob"})
        mark(bob, {image: "n"})
        before = bob.get("/annotate/disputes", params={"query": "a heron"}).text
        bob.post("/annotate/settle", data={"query": "a heron", "image": image, "mark": "y"})
        after = bob.get("/annotate/disputes", params={"query": "a heron"}).text
    assert image in before and image not in after
