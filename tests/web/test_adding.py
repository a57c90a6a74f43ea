"""Photos into the gallery from the browser: folders by who sits here, uploads by the owner, stopped and resumed."""

from __future__ import annotations

import errno
import io
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from eyespot.web import Role, ServerSettings
from eyespot.web._problems import Problem
from eyespot.web._search_params import SearchParams, query_of
from eyespot.web.indexing import list_folders, write_photo
from eyespot.web.pictures import KEPT, keep, upload_jpeg
from tests.web.conftest import ACCESS, TOKENS, at_this_machine, from_afar
from tests.wording import raises
from tests.worlds import draw_photos, index_gallery, make_gallery


@pytest.fixture
def empty(tmp_path: Path) -> ServerSettings:
    """A gallery without photos, for this machine and an owner from afar."""
    index_gallery(tmp_path / "gallery")
    return ServerSettings(tmp_path / "gallery", access=ACCESS, hosts=None, upload_bytes=1 << 20)


@pytest.fixture
def client(empty: ServerSettings) -> Iterator[TestClient]:
    with at_this_machine(empty) as opened:
        yield opened


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    (draw_photos(tmp_path / "photos", 6) / "broken.jpg").write_bytes(b"no picture at all")
    return tmp_path / "photos"


def finish(client: TestClient) -> str:
    """The state once the run is over."""
    while "every 1s" in (text := client.get("/add/state").text):
        time.sleep(0.05)
    return text


def total(client: TestClient) -> int:
    answer = client.get("/v1/search", params={"q": "stripes", "grouped": "false"})
    return int(answer.json()["total"]) if answer.status_code == 200 else 0


def test_an_empty_gallery_offers_to_add_photos_to_its_owner_alone(client: TestClient, empty: ServerSettings) -> None:
    page = client.get("/")
    assert (page.status_code, 'href="/add">Add photos</a>' in page.text) == (200, True)
    with from_afar(empty, TOKENS[Role.READER]) as reader:
        page = reader.get("/")
        assert "no photo yet" in page.text and "/add" not in page.text


def test_a_folder_is_indexed_with_its_failures_and_then_searched(client: TestClient, photos: Path) -> None:
    answer = client.post("/add/folder", data={"path": f" {photos} "}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/add")
    state = finish(client)
    assert "6 photos added" in state and "1 file could not be read" in state
    assert re.search(r"broken\.jpg</span>: [a-z]", state.replace("<wbr>", ""))
    assert total(client) == 6


def test_the_first_photos_are_found_while_the_others_are_added(
    client: TestClient, empty: ServerSettings, tmp_path: Path
) -> None:
    found = []

    def look(what: str, done: int, of_all: int) -> None:
        if what == "embedding":
            found.append((total(client), "no photo yet" in client.get("/").text))

    draw_photos(tmp_path / "photos", 6)
    index_gallery(empty.gallery, tmp_path / "photos", progress=look, shard_rows=2)  # 64 by itself
    assert found == [(0, True), (0, True), (2, False), (2, False), (4, False), (4, False)] and total(client) == 6


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "type the path"),
        ("photos", "no folder"),
        ("/nowhere", "no folder"),
        ("a\0b", "type the path"),
        ("{gallery}", "the gallery itself"),
    ],
)
def test_what_is_no_folder_of_photos_is_told(client: TestClient, empty: ServerSettings, path: str, why: str) -> None:
    given = {"path": path.format(gallery=empty.gallery)}
    answer = client.post("/add/folder", data=given)
    page = client.post("/add/folder", data=given, headers={"Accept": "text/html"})
    assert (answer.status_code, why in answer.json()["detail"]) == (422, True)
    assert (page.status_code, why in page.text.lower(), "Index this folder" in page.text) == (422, True, True)


def test_from_afar_nobody_names_or_lists_a_folder(empty: ServerSettings, photos: Path) -> None:
    with from_afar(empty, TOKENS[Role.OWNER]) as owner:
        answer = owner.post("/add/folder", data={"path": str(photos)})
        assert (answer.status_code, "the machine" in answer.json()["detail"]) == (403, True)
        page = owner.get("/add", params={"under": str(photos)}).text
        assert "A folder of this computer" not in page and str(photos) not in page


def bring(client: TestClient, name: str, data: bytes) -> Any:
    return client.post("/add/photos", files={"photos": (name, data)})


def test_photos_that_are_brought_are_kept_in_the_gallery_and_found(empty: ServerSettings, photos: Path) -> None:
    with from_afar(empty, TOKENS[Role.OWNER]) as owner:
        for seed in range(3):
            assert bring(owner, f"{seed}.jpg", (photos / f"{seed}.jpg").read_bytes()).status_code == 201
        owner.post("/add/uploads")
        finish(owner)
        assert total(owner) == 3
        assert sorted(place.name for place in (empty.gallery / "uploads").iterdir()) == ["0.jpg", "1.jpg", "2.jpg"]


@pytest.mark.parametrize(
    ("name", "filename"),
    [
        ("../../evil.jpg", "evil.jpg"),
        ("..\\..\\evil.png", "evil.png"),
        ("/etc/passwd", "passwd.jpg"),
        (".hidden", "hidden.jpg"),
        ("page.html", "page.jpg"),
        ("a\0b\n.jpg", "a_b_.jpg"),
        ("ü 1.JPG", "ü 1.jpg"),
        ("x" * 300 + ".jpg", "x" * 80 + ".jpg"),
    ],
)
def test_a_name_leads_nowhere_else(tmp_path: Path, name: str, filename: str) -> None:
    data = (draw_photos(tmp_path / "from", 1) / "0.jpg").read_bytes()
    assert write_photo(tmp_path / "to", name, data, 1 << 20) == filename
    assert [place.name for place in (tmp_path / "to").iterdir()] == [filename]


def test_another_photo_of_the_same_name_does_not_replace_the_first(client: TestClient, photos: Path) -> None:
    first, second = ((photos / f"{seed}.jpg").read_bytes() for seed in (0, 1))
    names = [bring(client, "a.jpg", data).json()["added"][0] for data in (first, second, first)]
    assert names[0] == names[2] == "a.jpg" and re.fullmatch(r"a-[0-9a-f]{8}\.jpg", names[1])


def test_what_is_no_picture_or_too_large_is_refused_with_its_name(client: TestClient, empty: ServerSettings) -> None:
    answer = bring(client, "a.jpg", b"<script>alert(1)</script>")
    assert (answer.status_code, answer.json()["detail"].startswith("a.jpg: ")) == (422, True)
    answer = bring(client, "b.jpg", b"x" * ((1 << 20) + 1))
    assert (answer.status_code, "1 MiB" in answer.json()["detail"]) == (422, True)
    assert not (empty.gallery / "uploads").exists()


@pytest.mark.long
def test_a_second_run_waits_and_a_stopped_one_goes_on(client: TestClient, tmp_path: Path) -> None:
    folder = {"path": str(draw_photos(tmp_path / "many", 60))}
    client.post("/add/folder", data=folder, follow_redirects=False)
    answer = client.post("/add/again", follow_redirects=False)
    assert (answer.status_code, "already" in answer.json()["detail"]) == (409, True)
    client.post("/add/stop", follow_redirects=False)
    finish(client)

    client.post("/add/folder", data=folder, follow_redirects=False)
    finish(client)
    assert total(client) == 60


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one folder that is shown, one that is hidden, and one that leads out."""
    home = tmp_path / "home"
    (home / "Pictures" / "2021").mkdir(parents=True)
    (home / ".secret").mkdir()
    (home / "way out").symlink_to(tmp_path)
    (home / "Pictures" / "a.jpg").touch()
    monkeypatch.setenv("HOME", str(home))
    return home


def test_folders_of_the_home_are_listed_with_the_photos_in_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = {"path": str(home / "Pictures"), "name": "Pictures", "photos": 1}
    assert [*list_folders(None).values()] == [{"path": str(home), "name": "home", "photos": 0}, None, [pictures]]
    year = {"path": str(home / "Pictures" / "2021"), "name": "2021", "photos": 0}
    assert [*list_folders(pictures["path"]).values()] == [pictures, str(home), [year]]
    monkeypatch.setenv("HOME", "/")
    assert list_folders(None)["here"]["name"] == "/"


def test_no_folder_outside_the_home_is_listed(client: TestClient, home: Path) -> None:
    page = client.get("/add", params={"under": str(home / "Pictures")}).text
    assert "2021</a>" in page and "‹ up" in page
    for outside in (str(home.parent), "/", str(home / ".."), str(home / "way out"), "a\0b"):
        answer = client.get("/add", params={"under": outside}, headers={"Accept": "text/html"})
        assert (answer.status_code, "your home" in answer.text) == (422, True)


def test_on_a_full_disk_pictures_are_shown_and_what_is_brought_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gallery = make_gallery(tmp_path, 3)
    photo = (tmp_path / "photos" / "1.jpg").read_bytes()

    def fail(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with at_this_machine(ServerSettings(gallery, hosts=None)) as client:
        first = client.get("/v1/search", params={"q": "stripes"}).json()["items"][0]
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            small = client.get(first["thumbnail"])
            refused = client.post("/v1/pictures", files={"picture": ("x.jpg", photo)})
            kept_out = bring(client, "x.jpg", photo)
        kept = client.post("/v1/pictures", files={"picture": ("x.jpg", photo)})
    assert (small.status_code, refused.status_code, kept_out.status_code, kept.status_code) == (200, 507, 422, 201)
    assert all("no space left on device" in answer.json()["detail"] for answer in (refused, kept_out))


@pytest.mark.parametrize("what", ["verdicts", "lists"])
def test_on_a_full_disk_the_ledger_refuses_with_507_and_keeps_what_it_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    settings, connect = ServerSettings(make_gallery(tmp_path, 24), hosts=None), sqlite3.connect

    def connect_small(*given: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **named)
        connection.execute("PRAGMA max_page_count=40")  # SQLite itself has no room beyond
        return connection

    def send(client: TestClient, word: str) -> Any:
        if what == "lists":
            return client.post("/v1/lists", json={"name": word, "items": items})
        marks = [{"item": item, "verdict": "yes"} for item in items]
        return client.post("/v1/judgements/several", json={"q": word, "marks": marks})

    def stored(client: TestClient) -> set[str]:
        if what == "lists":
            return {one["name"] for one in client.get("/v1/lists").json()["lists"]}
        tried = words[: len(answers) + 2]
        return {w for w in tried if len(client.get("/v1/judgements", params={"q": w}).json()["judgements"]) == 24}

    words = [f"word {n}" + "x" * 60 for n in range(500)]
    with monkeypatch.context() as patch, at_this_machine(settings) as client:
        patch.setattr(sqlite3, "connect", connect_small)
        items = [one["id"] for one in client.get("/v1/items").json()["items"]]
        answers = list(takewhile(lambda answer: answer.is_success, (send(client, word) for word in words)))
        refused = send(client, words[len(answers)])
    with at_this_machine(settings) as client:
        assert stored(client) == set(words[: len(answers)]) and answers
        assert (refused.status_code, "make room" in refused.json()["detail"]) == (507, True)
        assert send(client, words[len(answers)]).is_success


def test_photos_of_one_name_that_come_at_once_are_all_kept(tmp_path: Path) -> None:
    photos = [photo.read_bytes() for photo in draw_photos(tmp_path / "from", 8).iterdir()]
    with ThreadPoolExecutor(8) as pool:
        for turn in range(6):
            folder = tmp_path / f"uploads{turn}"
            names = list(pool.map(lambda data, to=folder: write_photo(to, "IMG_1.jpg", data, 1 << 20), photos))
            assert [(folder / name).read_bytes() for name in names] == photos


def test_an_unstorable_photo_keeps_no_other_out(client: TestClient, empty: ServerSettings, photos: Path) -> None:
    here = empty.gallery / "uploads"
    here.mkdir()
    (here / ".1.jpg.part").symlink_to(here / "nowhere" / "1.jpg")  # where it is written there is no folder
    given = [("photos", (f"{seed}.jpg", (photos / f"{seed}.jpg").read_bytes())) for seed in range(3)]
    answer = client.post("/add/photos", files=given)

    assert (answer.status_code, answer.json()["added"]) == (201, ["0.jpg", "2.jpg"])
    assert [one.startswith("1.jpg: there is no folder") for one in answer.json()["failed"]] == [True]


# -- pictures that people bring -----------------------------------------------------------------------------------


def picture(shade: int) -> bytes:
    """A picture of its own for each of 0 to 255."""
    data = io.BytesIO()
    Image.new("RGB", (8, 8), (shade, 0, 0)).save(data, "PNG")
    return data.getvalue()


def uploads_bring(folder: Path, shade: int) -> str:
    return keep(folder, picture(shade), 1 << 20)


def fill(folder: Path, count: int, at: float) -> None:
    for number in range(count):
        place = folder / f"{number % 256:02x}" / f"{number:032x}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"")
        os.utime(place, (at, at))


def uploads_in(folder: Path) -> list[Path]:
    return [place for place in folder.glob("??/*") if not place.suffix]


@pytest.mark.long
def test_many_at_once_are_all_kept_while_others_go(tmp_path: Path) -> None:
    fill(tmp_path, KEPT, at=1000.0)
    with ThreadPoolExecutor(10) as people:
        brought = list(people.map(lambda shade: uploads_bring(tmp_path, shade), range(60)))
    assert [bool(upload_jpeg(tmp_path, digest)) for digest in brought] == [True] * 60
    assert len(uploads_in(tmp_path)) == KEPT


def test_the_same_picture_of_many_people_is_kept_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(10) as people:
        brought = set(people.map(lambda _: uploads_bring(tmp_path, 7), range(60)))
    assert [place.name for place in uploads_in(tmp_path)] == [*brought]


@pytest.mark.parametrize("used", ["looked at", "searched with", "not at all"])
def test_the_longest_unused_goes_first(tmp_path: Path, used: str) -> None:
    digest = uploads_bring(tmp_path, 1)
    os.utime(tmp_path / digest[:2] / digest, (500.0, 500.0))
    fill(tmp_path, KEPT - 1, at=1000.0)
    if used == "looked at":
        upload_jpeg(tmp_path, digest)
    elif used == "searched with":
        query_of(SearchParams(picture=digest), tmp_path)

    uploads_bring(tmp_path, 2)

    assert (tmp_path / digest[:2] / digest).exists() == (used != "not at all")


def test_lost_and_too_large_pictures_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYESPOT_DECODE_MEMORY", "10M")
    long = io.BytesIO()
    Image.new("L", (1, 1_000_000)).save(long, "PNG")  # a kilobyte that would take 21 MB

    with raises(Problem) as gone:
        query_of(SearchParams(picture="0" * 32), tmp_path)
    with raises(Problem) as large:
        keep(tmp_path, long.getvalue(), 1 << 20)

    assert (gone.value.status, large.value.status) == (404, 422)
