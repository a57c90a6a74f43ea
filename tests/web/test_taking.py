"""Photos to take along, of a result and of a list: zip, contact sheet, tables."""

from __future__ import annotations

import asyncio
import csv
import html
import io
import re
import tracemalloc
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from fastapi.testclient import TestClient
from hypothesis import given, strategies as st
from PIL import Image

from eyespot.cli import app
from eyespot.search.contact_sheet import SheetPanel, Tile, as_html, html_pieces
from eyespot.web import Role, ServerSettings
from eyespot.web.connections import DownloadsLast
from eyespot.web.downloads import Format, after, zipped
from tests import worlds
from tests.web.conftest import HOSTILE, TOKENS, at_this_machine, from_afar
from tests.worlds import draw_photos, index_gallery

WORDS = "stripes to take"


@pytest.fixture(scope="module")
def items(here: TestClient) -> list[dict[str, Any]]:
    return list(here.get("/v1/search", params={"q": WORDS, "limit": 100}).json()["items"])


@pytest.fixture(scope="module")
def run(here: TestClient, items: list[dict[str, Any]]) -> str:
    """The result, with a yes on six photos, and on the hostile ones."""
    hostile = [one for one in items if one["title"] in (HOSTILE, "=1+1") or one["path"].count("onerror")]
    for one in [*items[:6], *hostile]:
        body = {"q": WORDS, "item": one["id"], "verdict": "yes", "rank": one["rank"]}
        assert here.post("/v1/judgements", json=body).status_code == 201
    return str(here.get("/v1/search", params={"q": WORDS}).json()["run"])


def unzipped(answer: Any) -> dict[str, bytes]:
    assert answer.status_code == 200, answer.text
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_originals_with_a_yes_come_whole_under_safe_names(here: TestClient, run: str, world: ServerSettings) -> None:
    answer = here.get(f"/v1/runs/{run}", params={"format": "originals", "verdict": "yes"})
    files = unzipped(answer)
    assert answer.headers["content-disposition"].endswith('-originals.zip"')  # beside the zip of small pictures
    photos = {name: data for name, data in files.items() if name.startswith("photos/")}
    on_disk = {file.read_bytes() for file in (world.gallery.parent / "photos").iterdir()}

    assert 6 <= len(photos) <= 9 and set(photos.values()) <= on_disk
    assert all(re.fullmatch(r"photos/[^/\\:*?\"<>|]+\.jpg", name) for name in photos)
    rows = list(csv.DictReader(io.StringIO(files["photos.csv"].decode("utf-8-sig"))))
    assert {row["verdict"] for row in rows} == {"yes"} and "latitude" not in rows[0] and "author" not in rows[0]
    assert {f"photos/{row['file']}" for row in rows} == set(photos)


def test_small_pictures_carry_no_exif_and_no_formula(here: TestClient, run: str) -> None:
    files = unzipped(here.get(f"/v1/runs/{run}", params={"format": "zip", "verdict": "yes"}))
    for name, data in files.items():
        if name.startswith("photos/"):
            with Image.open(io.BytesIO(data)) as picture:
                assert picture.format == "JPEG" and max(picture.size) <= 1600 and not picture.getexif()
    cells = [cell for row in csv.reader(io.StringIO(files["photos.csv"].decode("utf-8-sig"))) for cell in row]
    assert "'=1+1" in cells and not [cell for cell in cells if cell.startswith("=")]


def test_a_lost_and_a_changed_original_are_named_and_the_others_come(tmp_path: Path, settings: ServerSettings) -> None:
    gallery = worlds.make_gallery(tmp_path, 5)
    (tmp_path / "photos" / "1.jpg").unlink()
    (tmp_path / "photos" / "2.jpg").write_bytes((tmp_path / "photos" / "3.jpg").read_bytes())
    with at_this_machine(replace(settings, gallery=gallery, cache=None)) as client:
        found = client.get("/v1/search", params={"q": "discs"}).json()["run"]
        files = unzipped(client.get(f"/v1/runs/{found}", params={"format": "originals", "depth": 100}))

    left_out = files["left_out.txt"].decode().splitlines()
    assert sorted(re.findall(r"(\d+)\.jpg", " ".join(left_out))) == ["1", "2"]
    assert sum(name.startswith("photos/") for name in files) == 3


def test_a_contact_sheet_is_one_file_that_loads_nothing(here: TestClient, run: str) -> None:
    answer = here.get(f"/v1/runs/{run}", params={"format": "sheet", "verdict": "yes"})
    assert answer.headers["content-disposition"].endswith('.html"')
    assert answer.text.count("data:image/jpeg;base64,") >= 6 and "<h1" in answer.text and "<h2" not in answer.text
    assert HOSTILE not in answer.text and not re.search(r'(src|href)="(?!data:|#)', answer.text)


def test_a_contact_sheet_begins_before_all_its_photos_are_made() -> None:
    made: list[int] = []

    def tiles() -> Iterator[Tile]:
        for rank in range(1, 501):
            made.append(rank)
            yield Tile(None, rank, None, f"photo {rank}", "<b>")

    pieces = html_pieces("<i>herons", tiles())
    first = next(pieces)
    before = len(made)
    whole = first + "".join(pieces)

    assert first.startswith("<!doctype html>") and before < 500
    assert whole == as_html("<i>herons", [SheetPanel("", "", list(tiles()))])


def test_a_label_of_the_name_of_a_verdict_does_not_replace_it(tmp_path: Path, settings: ServerSettings) -> None:
    table = "file_name,verdict,verdicts,file\n0.jpg,label,label,label\n1.jpg,label,label,label\n"
    (draw_photos(tmp_path / "photos", 2) / "metadata.csv").write_text(table)
    index_gallery(tmp_path / "gallery", tmp_path / "photos")
    with at_this_machine(replace(settings, gallery=tmp_path / "gallery", cache=None)) as client:
        first, _ = client.get("/v1/search", params={"q": "discs"}).json()["items"]
        body = {"q": "discs", "item": first["id"], "verdict": "yes"}
        assert client.post("/v1/judgements", json=body).status_code == 201
        run = f"/v1/runs/{client.get('/v1/search', params={'q': 'discs'}).json()['run']}"
        hits = client.get(run).json()["items"]
        files = unzipped(client.get(run, params={"format": "zip"}))
        wanted = {"name": "some", "items": [first["id"]], "query": "q=discs"}
        listed = client.post("/v1/lists", json=wanted).json()["list"]
        sheets = [client.get(place, params={"format": "sheet"}).text for place in (run, f"/v1/lists/{listed}/download")]
    rows = list(csv.DictReader(io.StringIO(files["photos.csv"].decode("utf-8-sig"))))

    assert [hit["verdict"] for hit in hits] == ["yes", None] and "verdicts" not in hits[0]
    assert [row["verdict"] for row in rows] == ["yes", ""]
    assert {f"photos/{row['file']}" for row in rows} == {name for name in files if name.startswith("photos/")}
    assert ">yes<" in sheets[0] and ">visitor: yes<" in sheets[1] and ">label<" not in "".join(sheets)


def test_only_the_owner_takes_originals(world: ServerSettings) -> None:
    with from_afar(world, TOKENS[Role.ANNOTATOR]) as reader:
        place = f"/v1/runs/{reader.get('/v1/search', params={'q': 'discs'}).json()['run']}"
        wanted = [{"format": kind, "depth": 2} for kind in ("zip", "originals", "sheet")]
        codes = [reader.get(place, params=params).status_code for params in wanted]
        assert codes == [200, 403, 200] and "originals" not in formats_on(reader.get("/", params={"q": "discs"}).text)


def formats_on(page: str) -> dict[str, str]:
    select = page.partition('name="format"')[2].partition("</select>")[0]
    return dict(re.findall(r'<option value="([^"]*)"[^>]*>([^<]*)<', select))


def test_the_page_offers_every_format_by_name(here: TestClient, run: str) -> None:
    offered = formats_on(here.get("/", params={"q": WORDS}).text)
    assert [*offered] == [*get_args(Format)]
    first_words = [text.split()[0] for text in offered.values()]
    assert first_words == ["Photos,", "Original", "Contact", "JSON", "CSV", "Ranking"]
    wrong = [{"format": "xml"}, {"format": "zip", "depth": 100_001}]
    assert [here.get(f"/v1/runs/{run}", params=given).status_code for given in wrong] == [422, 422]


@pytest.fixture(scope="module")
def place(here: TestClient, run: str) -> str:
    wanted = {"name": "Taken/../along", "query": "q=" + WORDS.replace(" ", "+"), "verdict": "yes"}
    return f"/v1/lists/{here.post('/v1/lists', json=wanted).json()['list']}"


def test_a_list_is_taken_as_a_table_and_as_photos(here: TestClient, place: str) -> None:
    count = here.get(place).json()["photos"]
    table, none = (
        here.get(f"{place}/download", params={"format": "csv", "verdict": verdict}).content.decode("utf-8-sig")
        for verdict in ("yes", "no")
    )
    rows = list(csv.DictReader(io.StringIO(table)))
    files = unzipped(here.get(f"{place}/download", params={"format": "originals", "verdict": "yes"}))

    assert len(rows) == count and rows[0]["verdicts"] == "visitor: yes" and none.split() == ["id"]
    assert sum(name.startswith("photos/") for name in files) == count
    assert unzipped(here.get(f"{place}/download", params={"verdict": "no"})).keys() == {"photos.csv"}


def test_a_list_becomes_a_query_with_its_verdicts(here: TestClient, place: str, world: ServerSettings) -> None:
    here.cookies.set("eyespot_name", "visitor")
    payload = here.post(f"{place.removeprefix('/v1')}/annotate", follow_redirects=False)
    shown = here.get("/annotate/photos", params={"query": WORDS, "count": 100}).json()["photos"]
    here.cookies.clear()

    assert payload.headers["location"].startswith("/annotate/label?query=")
    marked = {one["image"] for one in shown if one["mark"] == "y"}
    assert marked == {one["id"] for one in here.get(place).json()["items"]}


def test_a_zip_of_any_size_holds_one_photo_in_memory() -> None:
    tracemalloc.start()
    sent = sum(len(piece) for piece in zipped((f"photos/{number}.jpg", bytes(1 << 20)) for number in range(40)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sent > 40 << 20 and peak < 8 << 20
    assert len(list(zipped((f"{number}.jpg", bytes(20_000)) for number in range(100)))) == 2


@pytest.mark.parametrize("size", [8 << 20, 1], ids=["until they are answered", "at its pace"])
def test_a_download_gives_way_to_whoever_waits_and_goes_on(size: int) -> None:
    order: list[str] = []
    release = asyncio.Event()

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "page":
            await release.wait()
            await send({"type": "http.response.body", "body": b""})
            return
        for number in (1, 2):
            await send({"type": "http.response.body", "body": bytes(size), "more_body": number == 1})

    async def both() -> None:
        app = DownloadsLast(answer)

        async def ask(path: str) -> None:
            async def send(message: Any) -> None:
                order.append(path)
                if path == "download" and size > 1:
                    asyncio.get_running_loop().call_soon(release.set)

            await app({"type": "http", "path": path}, None, send)  # type: ignore[arg-type]

        page = asyncio.create_task(ask("page"))
        await asyncio.sleep(0)  # it waits now
        await ask("download")
        release.set()
        await page

    asyncio.run(both())
    one, page = "download", "page"
    assert order == ([one, page, one] if size > 1 else [one, one, page])


# -- a download that was cut --------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=9)), st.integers(0, 50))
def test_what_comes_after_a_cut_is_the_rest(pieces: list[bytes], start: int) -> None:
    assert b"".join(after(iter(pieces), start)) == b"".join(pieces)[start:]


@pytest.mark.parametrize("door", ["run", "list", "shared"])
@pytest.mark.parametrize("kind", ["zip", "originals"])
def test_a_cut_download_goes_on(here: TestClient, run: str, place: str, door: str, kind: str) -> None:
    where = f"{place}/download?format={kind}" if door == "list" else f"/v1/runs/{run}?verdict=yes&format={kind}"
    if door == "shared":
        where = here.post(f"{place}/link", json={"download": True}).json()["link"] + "/photos.zip"
    whole = here.get(where)
    tag, data = whole.headers["etag"], whole.content
    half, last = len(data) // 2, len(data) - 1

    def part(stretch: str, same: str = tag) -> Any:
        return here.get(where, headers={"Range": f"bytes={stretch}", "If-Range": same})

    rest = part(f"{half}-")
    assert (rest.status_code, rest.headers["etag"], rest.content) == (206, tag, data[half:])
    assert rest.headers["content-range"] == f"bytes {half}-{last}/{len(data)}"
    assert part(f"{len(data)}-").headers["content-range"] == f"bytes */{len(data)}"
    for other in (part("5-", '"another"'), part("0-"), part("-7"), part("0-1,4-5"), part("x-")):
        assert (other.status_code, other.content) == (200, data)


def test_another_verdict_and_another_file_are_another_zip(tmp_path: Path, settings: ServerSettings) -> None:
    gallery = worlds.make_gallery(tmp_path, 3)
    with at_this_machine(replace(settings, gallery=gallery, cache=None)) as client:
        found = client.get("/v1/search", params={"q": "discs"}).json()
        place = f"/v1/runs/{found['run']}?format=originals"
        tags = [client.get(place).headers["etag"] for _ in range(2)]
        body = {"q": "discs", "item": found["items"][0]["id"], "verdict": "yes"}
        assert client.post("/v1/judgements", json=body).status_code == 201
        tags.append(client.get(place).headers["etag"])
        (tmp_path / "photos" / "1.jpg").unlink()
        tags.append(client.get(place).headers["etag"])
    assert len(set(tags)) == 3 and tags[0] == tags[1]


# -- the page on the server names every option, every address of the API and every key ----------------------------


PAGE = Path(__file__).resolve().parents[2] / "docs" / "how" / "server.md"


def test_every_option_is_on_the_page() -> None:
    options = typer.main.get_command(app).commands["serve"].params  # type: ignore[attr-defined]
    names = [option.opts[-1] for option in options]
    assert [name for name in names if f"`{name}" not in PAGE.read_text(encoding="utf-8")] == []


def test_every_address_of_the_api_is_on_the_page(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    text = PAGE.read_text(encoding="utf-8")
    assert [path for path in paths if path.replace(":path", "") not in text] == []


def test_the_tables_of_the_api_page_have_names_of_their_own(client: TestClient) -> None:
    names = re.findall('role="region" aria-label="(.*?)"', client.get("/docs", headers={"Accept": "text/html"}).text)
    assert len(names) == len(set(names)) > 10


def test_the_api_page_begins_with_a_search_and_its_example_works(client: TestClient) -> None:
    text = client.get("/docs", headers={"Accept": "text/html"}).text
    example = re.findall('curl "(.*?)"', text)
    assert re.findall('aria-label="Parameters of (.*?)"', text)[0] == "GET /v1/search"
    assert len(client.get(html.unescape(example[0])).json()["items"]) == 3


@pytest.mark.parametrize("role", list(Role))
def test_every_role_is_on_the_page(role: Role) -> None:
    assert f"`{role.name.lower()}`" in PAGE.read_text(encoding="utf-8")


def test_the_keys_of_the_page_are_those_of_the_help(client: TestClient) -> None:
    shown = set(re.findall(r"<dt>(.*?)</dt>", client.get("/", headers={"Accept": "text/html"}).text))
    keys = {key for one in shown for key in re.findall(r"<kbd>(\w|/)</kbd>", one)}
    assert keys == {"/", "f", "m", "x", "y", "n", "d", "u", "w", "z", "0", "1"}
    assert all(f"`{key}`" in (PAGE.parents[1] / "use" / "browser.md").read_text(encoding="utf-8") for key in keys)
