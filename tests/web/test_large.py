"""One photo large: its file for those who may have it, why it was found, which words matched."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from eyespot.web import Role, ServerSettings
from tests.web.conftest import TOKENS, at_this_machine, from_afar
from tests.worlds import draw_photos, index_gallery, make_gallery


def first_item(client: TestClient, **params: Any) -> dict[str, Any]:
    item: dict[str, Any] = client.get("/v1/search", params={"q": "stripes", **params}).json()["items"][0]
    return item


def test_the_file_is_sent_as_it_was_indexed(client: TestClient, gallery: Path) -> None:
    item = first_item(client)
    answer = client.get(f"/v1/originals/{item['id']}", headers={"Range": "bytes=0-3"})
    name = Path(item["path"]).name

    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")
    assert answer.content == (gallery.parent / "photos" / name).read_bytes()
    assert answer.headers["accept-ranges"] == "none"  # the whole file is checked, and sent whole
    assert answer.headers["content-disposition"].startswith("inline; filename=")
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("role", "least", "status"),
    [
        (None, Role.READER, 401),
        (Role.READER, Role.OWNER, 403),
        (Role.ANNOTATOR, Role.OWNER, 403),
        (Role.OWNER, Role.OWNER, 200),
        (Role.ANNOTATOR, Role.ANNOTATOR, 200),
        (Role.READER, Role.READER, 200),
    ],
)
def test_only_those_who_may_open_files(
    settings: ServerSettings, client: TestClient, role: Role | None, least: Role, status: int
) -> None:
    id = first_item(client)["id"]
    with from_afar(replace(settings, originals=least), TOKENS.get(role)) as opened:
        assert opened.get(f"/v1/originals/{id}").status_code == status
        assert ("Open the original file" in opened.get(f"/photo/{id}").text) == (status == 200)


def test_a_file_that_has_changed_or_is_gone_is_not_sent(tmp_path: Path) -> None:
    with at_this_machine(ServerSettings(make_gallery(tmp_path, 3))) as client:
        places = {item["id"]: Path(item["path"]).name for item in client.get("/v1/items").json()["items"]}
        changed, gone, same = places
        (tmp_path / "photos" / places[changed]).write_bytes(b"other bytes")
        (tmp_path / "photos" / places[gone]).unlink()

        assert [client.get(f"/v1/originals/{id}").status_code for id in (changed, gone, same)] == [404, 404, 200]


def test_what_no_browser_shows_is_saved_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (40, 30), "red").save(tmp_path / "photos" / 'ü"; x.tif', compression="raw")
    index_gallery(tmp_path / "gallery", tmp_path / "photos")
    with at_this_machine(ServerSettings(tmp_path / "gallery")) as client:
        (item,) = client.get("/v1/items").json()["items"]
        answer = client.get(f"/v1/originals/{item['id']}")

    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == (
        "attachment; filename=\"___ x.tif\"; filename*=UTF-8''%C3%BC%22%3B%20x.tif"
    )


def test_the_page_says_why_a_photo_is_there_unless_the_search_is_gone(client: TestClient) -> None:
    id = first_item(client, q="heron")["id"]
    page = client.get(f"/photo/{id}", params={"q": "heron", "rank": 1}).text
    gone = client.get(f"/photo/{id}", params={"q": "stripes", "label": "kind=nothing"})

    assert "Why it is here" in page and "label kind" in page and "<mark>heron</mark>" in page
    assert re.search(r"looks like the query: -?0\.\d{3} of 1", page)
    assert f'<div class="why" data-id="{id}">' in page
    assert gone.status_code == 200 and "Why it is here" not in gone.text
    assert "Why it is here" not in client.get(f"/photo/{id}").text


def test_small_photos_come_in_five_sizes(client: TestClient) -> None:
    id = first_item(client)["id"]
    sizes = [len(client.get(f"/v1/thumbnails/{size}/{id}").content) for size in (128, 200, 320, 640, 1600)]

    assert sizes[0] == sizes[2] < sizes[3]  # the drawing is smaller than all of them; those of a grid are lighter
    assert client.get(f"/v1/thumbnails/100/{id}").status_code == 422


def test_a_folded_tile_opens_its_group(tmp_path: Path) -> None:
    photos = draw_photos(tmp_path / "photos", 3, name="{}.png")
    for copy in range(2):  # the same picture in other bytes
        (photos / f"copy{copy}.png").write_bytes((photos / "0.png").read_bytes() + bytes([copy]))
    index_gallery(tmp_path / "gallery", photos)
    with at_this_machine(ServerSettings(tmp_path / "gallery")) as client:
        page = client.get("/", params={"q": "stripes"}).text
        (link,) = re.findall(r'class="fold" href="([^"]*)"', page)
        whole, part = client.get(link), client.get(link, headers={"HX-Request": "true"})

    assert "+2" in page
    assert [answer.text.count('class="tile') for answer in (whole, part)] == [3, 3]
    assert "Back to the search" in whole.text and "<html" not in part.text
