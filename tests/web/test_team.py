"""The desk of a team over the network: the table, who is given what, one list for several, groups, flags, disputes."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from eyespot.curate.annotate.annotation_store import AnnotationStore
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.curate.inat.licences import PHOTOS, listed
from eyespot.web import Access, Role, ServerSettings
from tests.made_once import made_once
from tests.web.conftest import ACCESS, TOKENS, at_this_machine, from_afar
from tests.worlds import draw, index_gallery

Q = {"query": "stripes"}
BURST = 6


def make_gallery(folder: Path) -> Path:
    """Thirty photos, of which six are copies of one in other sizes."""
    for seed in range(30 - BURST + 1):
        draw(folder / "photos" / f"{seed:03d}.jpg", seed)
    with Image.open(folder / "photos" / "004.jpg") as first:
        for number in range(1, BURST):
            size = first.width - 6 * number, first.height - 4 * number
            first.resize(size).save(folder / "photos" / f"copy{number}.jpg", quality=95)
    index_gallery(folder / "gallery", folder / "photos")
    return folder / "gallery"


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    made = made_once("web-team", make_gallery)
    shutil.copytree(made / "photos", tmp_path / "photos")
    gallery = Path(shutil.copytree(made / "gallery", tmp_path / "gallery"))
    return ServerSettings(gallery, access=ACCESS, hosts=("photos.example",), cache=tmp_path / "cache")


@pytest.fixture
def lea(settings: ServerSettings) -> Iterator[TestClient]:
    """The lead, at this machine, with the query `stripes`."""
    with at_this_machine(settings) as client:
        as_(client, "Lea").post("/annotate/queries", data={"text": "stripes"})
        yield client


def as_(client: TestClient, name: str) -> TestClient:
    client.post("/name", data={"name": name})
    return client


def take_in(settings: ServerSettings, *queries: tuple[str, str, str]) -> None:
    with AnnotationStore(settings.ledger) as store:
        store.take_in([AnnotationQuery(id, text, {"category": category}) for id, text, category in queries])


def shown(client: TestClient, **params: str | int) -> list[str]:
    page = client.get("/annotate", params=params)
    assert page.status_code == 200, page.text
    return re.findall(r'<th scope="row" class="name-cell"[^>]*><a [^>]*>([^<]*)</a>', page.text)


def photos(client: TestClient, what: str = "list", **more: str | int) -> list[dict[str, Any]]:
    response = client.get("/annotate/photos", params={**Q, "what": what, "count": 500, **more})
    found: list[dict[str, Any]] = response.json()["photos"]
    return found


def mark(client: TestClient, marks: dict[str, str | None], **more: object) -> Any:
    response = client.post("/annotate/marks", params=Q, json={"marks": marks, **more})
    assert response.status_code == 200, response.text
    return response.json()


@pytest.fixture
def table(lea: TestClient, settings: ServerSettings) -> TestClient:
    take_in(settings, ("2", "a heron", "birds"), ("3", "a Barn owl", "birds"), ("4", "a newt", "amphibians"))
    return lea


@pytest.mark.long
def test_the_table_is_searched_sorted_and_filtered_by_its_address(table: TestClient) -> None:
    mark(table, {one["image"]: "n" for one in photos(table)[:5]})

    assert shown(table) == ["stripes", "a heron", "a Barn owl", "a newt"]
    assert shown(table, sort="query") == ["a Barn owl", "a heron", "a newt", "stripes"]
    assert shown(table, sort="labelled", down=1)[0] == "stripes" and shown(table, sort="progress")[-1] == "stripes"
    assert shown(table, q="BIRDS own") == [] and shown(table, q="birds OWL") == ["a Barn owl"]
    assert shown(table, label="amphibians") == ["a newt"] and shown(table, state="going") == ["stripes"]
    assert shown(table, person="Lea") == ["stripes"] and shown(table, state="new", sort="category")[0] == "a newt"
    assert table.get("/annotate", params={"sort": "nothing"}).status_code == 422
    page = table.get("/annotate?q=a&sort=query").text
    assert 'aria-sort="ascending"' in page and 'href="/annotate?q=a&amp;sort=query&amp;down=1"' in page


def test_the_lead_alone_gives_queries_to_a_person_and_takes_them(table: TestClient, settings: ServerSettings) -> None:
    given = {"query": ["2", "3"], "person": " Bo ", "back": "sort=people"}
    asked = table.post("/annotate/assign", data=given, follow_redirects=False).text  # nobody has that name yet
    assert "Nobody here is called" in asked and shown(table, person="Bo") == []
    given |= {"new": "true"}
    answer = table.post("/annotate/assign", data=given, follow_redirects=False)
    before = shown(table, person="Bo"), shown(table, person="-")
    table.post("/annotate/assign", data={"query": ["2"], "person": "Bo", "act": "take"})

    for wrong in ({"query": ["none"]}, {"person": " "}, {"person": "x" * 70}, {"act": "steal"}):
        assert table.post("/annotate/assign", data={"query": ["4"], "person": "Bo"} | wrong).status_code == 422
    assert answer.headers["location"] == "/annotate?sort=people&did=give&many=2&whom=Bo"
    assert "2 queries assigned to" in table.get(answer.headers["location"]).text
    assert before == (["a heron", "a Barn owl"], ["stripes", "a newt"]) and shown(table, person="Bo") == ["a Barn owl"]
    page = table.get("/annotate").text
    assert re.search(r">Bo</a></th><td class=\"number\">1</td><td class=\"number\">0</td>", page)
    others = from_afar(settings, TOKENS[Role.ANNOTATOR]).get("/annotate").text
    assert 'class="tick-cell"' in page and 'class="tick-cell"' not in others


def test_next_is_the_least_done_of_ones_own_then_what_nobody_has(table: TestClient) -> None:
    table.post("/annotate/assign", data={"query": ["3"], "person": "Bo", "new": "true"})
    table.post("/annotate/assign", data={"query": ["4"], "person": "Lea", "new": "true"})

    def next_for(name: str, **after: str) -> str:
        answer = as_(table, name).get("/annotate/next", params=after, follow_redirects=False)
        return str(answer.headers["location"])

    mark(as_(table, "Cy"), {photos(table)[0]["image"]: "n"})

    assert [next_for("Lea"), next_for("Bo")] == ["/annotate/label?query=4", "/annotate/label?query=3"]
    assert [next_for("Cy"), next_for("Bo", after="3")] == ["/annotate/label?query=2"] * 2
    table.post("/annotate/assign", data={"query": ["3"], "person": "Cy"})
    assert next_for("Bo") == "/annotate/label?query=3&what=team"


def test_a_query_that_came_without_photos_is_filled_on_its_page(table: TestClient) -> None:
    empty = table.get("/annotate/label", params={"query": "2"}).text
    shared = table.get("/annotate/label", params={"query": "2", "what": "team"}).text
    assert '<input type="hidden" name="what" value="team">' in shared  # nobody is thrown out of the shared list
    assert table.post("/annotate/fill", data={"query": "4", "what": "team"}).url.params["what"] == "team"
    listed = table.post("/annotate/fill", data={"query": "2"})
    again = table.post("/annotate/fill", data={"query": "2"})
    wrong = table.post("/annotate/fill", data={"query": "3", "label": "no label"})

    assert "No photos are" in empty and "No photos are" not in listed.text
    assert listed.url.params["query"] == "2" == again.url.params["query"]
    assert len(table.get("/annotate/photos", params={"query": "2", "count": 500}).json()["photos"]) == 30
    assert wrong.status_code == 422 and "COLUMN=VALUE" in wrong.text
    assert table.post("/annotate/fill", data={"query": "nothing"}).status_code == 422
    several = table.post("/annotate/assign", data={"query": ["3", "4"], "act": "list"})
    assert several.url.params["did"] == "list" and "2 queries with their photos listed" in several.text
    assert len(table.get("/annotate/photos", params={"query": "3", "count": 500}).json()["photos"]) == 30


def test_a_list_for_several_counts_at_once_what_somebody_labelled_before(lea: TestClient) -> None:
    first, second, *_ = lea.get("/annotate/photos", params={**Q, "count": 4}).json()["photos"]
    marks = {first["image"]: "y", second["image"]: "n"}
    assert lea.post("/annotate/marks", params=Q, json={"marks": marks}).status_code == 200
    stands = lea.get("/annotate/standing", params={**Q, "what": "team"}).json()

    assert (stands["labelled"], stands["relevant"]) == (2, 1)


def test_copies_come_with_the_number_of_their_group_and_are_marked_at_once(lea: TestClient) -> None:
    grouped = [one["image"] for one in photos(lea) if one["group"] is not None]
    standing = mark(lea, dict.fromkeys(grouped, "y"), by_group=grouped[1:])
    by_group = [one["image"] for one in photos(lea) if one["by_group"]]
    mark(lea, {grouped[2]: "n"})
    after = [one["image"] for one in photos(lea) if one["by_group"]]
    undone = mark(lea, dict.fromkeys(grouped))

    assert len(grouped) == BURST and len({one["group"] for one in photos(lea)}) == 2
    assert standing["labelled"] == BURST and by_group == grouped[1:] and after == [grouped[1], *grouped[3:]]
    assert undone["labelled"] == 0 and not any(one["by_group"] for one in photos(lea))
    mark(lea, {photos(lea)[0]["image"]: "n"})
    lea.post("/annotate/audit", params={**Q, "size": 29})
    assert {one["group"] for one in photos(lea, "audit")} == {None}  # one by one


def flag(client: TestClient, image: str, kind: str = "face", **more: str) -> Any:
    headers = {"HX-Request": "true"}
    return client.post("/annotate/flags", data={"image": image, "kind": kind, **more}, headers=headers)


def test_a_flag_is_listed_exported_and_leaves_the_set_where_asked(lea: TestClient, tmp_path: Path) -> None:
    first, second = (one["image"] for one in photos(lea)[:2])
    mark(lea, {first: "y", second: "n"})
    payload = flag(lea, first).json()
    flag(lea, second, "other", reason="=a ruler")
    file = lea.get("/annotate/flagged.csv")
    (tmp_path / "flagged.csv").write_bytes(file.content)
    with zipfile.ZipFile(io.BytesIO(lea.get("/annotate/set.zip", params={"without_flagged": True}).content)) as packed:
        qrels = json.loads(packed.read("labelled/qrels.json"))
        names = {name.rpartition("/")[2] for name in packed.namelist()}

    assert {"queries.csv", "annotations.csv", "datasheet.md"} < names
    assert payload == {"flags": ["a face"]} and photos(lea)[0]["flags"] == ["a face"]
    rows = list(csv.DictReader(io.StringIO(file.text)))
    said = [(row["flag"], row["person"], row["reason"]) for row in rows]
    assert said == [("face", "Lea", ""), ("other", "Lea", "'=a ruler")]
    assert {row["photo"] for row in rows} <= listed(tmp_path / "flagged.csv", PHOTOS) and qrels["stripes"] == {}
    assert "a face" in lea.get("/annotate/flagged").text and "2 flagged photos" in lea.get("/annotate").text


def test_a_flag_says_something_and_is_taken_down_by_whoever_raised_it(lea: TestClient) -> None:
    given = {"image": photos(lea)[0]["image"], "kind": "face"}
    for wrong in ({"kind": "ugly"}, {"kind": "other"}, {"image": "none"}, {"kind": "other", "reason": "x" * 301}):
        assert flag(lea, **given | wrong).status_code in (404, 422)
    flag(lea, **given)
    others = flag(as_(lea, "Bo"), **given, act="take").json()
    own = flag(as_(lea, "Lea"), **given, act="take").json()

    assert (others, own) == ({"flags": ["a face"]}, {"flags": []})
    assert lea.get("/annotate/flagged.csv").status_code == 404


@pytest.fixture
def disputed(lea: TestClient) -> str:
    image: str = photos(lea)[0]["image"]
    for name, given in (("Ada", "y"), ("Bo", "n")):
        mark(as_(lea, name), {image: given})
    return image


def settle(client: TestClient, image: str, given: str, note: str = "", **how: Any) -> Any:
    return client.post("/annotate/settle", data={**Q, "image": image, "mark": given, "note": note}, **how)


def test_who_disagrees_settles_only_if_the_lead_allows_it(lea: TestClient, disputed: str) -> None:
    refused = settle(as_(lea, "Bo"), disputed, "n")
    lea.post("/annotate/rules", data={"own_disputes": "yes"})
    allowed = settle(lea, disputed, "n")
    assert refused.status_code == 422 and "own dispute" in refused.json()["detail"]
    assert allowed.status_code == 200 and "Settled as no" in allowed.text


def test_two_who_settle_one_photo_leave_the_last_word(lea: TestClient, disputed: str) -> None:
    settle(as_(lea, "Cy"), disputed, "note", "the beak is visible")
    settle(lea, disputed, "y")
    answer = settle(as_(lea, "Di"), disputed, "n", follow_redirects=False)
    page = lea.get("/annotate/disputes", params=Q).text

    assert answer.headers["location"] == "/annotate/disputes?query=stripes#photo-1"
    assert re.search(r"Ada</span>: <strong>yes</strong>\s*<span[^>]*>20\d\d-\d\d-\d\d \d\d:\d\d UTC", page)
    assert "Settled as no" in page and "the beak is visible" in page and "Take back" in page
    assert "Take back" not in as_(lea, "Ed").get("/annotate/disputes", params=Q).text
    assert "Settled as yes" in settle(as_(lea, "Di"), disputed, "back").text


@pytest.mark.long
def test_the_token_of_a_program_is_offered_as_nobody(settings: ServerSettings) -> None:
    access = (*settings.access, Access.by("a-program-0123456789", "daemon-token", Role.OWNER, internal=True))
    with at_this_machine(replace(settings, access=access)) as client:
        as_(client, "Lea").post("/annotate/queries", data={"text": "stripes"})
        page = client.get("/annotate").text
    assert '<option value="annotator">' in page and "daemon-token" not in page
