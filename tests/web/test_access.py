"""Who may come in, and what is turned away: tokens, roles, other sites' requests, false names, floods and bombs."""

from __future__ import annotations

import asyncio
import io
import re
import struct
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from eyespot.photos.places import Root
from eyespot.types import UsageError
from eyespot.web import Access, Role, ServerSettings, read_access
from eyespot.web._problems import Problem
from eyespot.web._security import LoginThrottle, answer_within
from eyespot.web.found.snapshot import PicturePlace
from eyespot.web.pictures import bytes_of
from tests.web.conftest import TOKENS, at_this_machine, from_afar
from tests.wording import raises
from tests.worlds import draw_photos, index_gallery, make_gallery


def test_a_person_without_a_token_is_shown_the_form_and_comes_back_where_they_were(settings: ServerSettings) -> None:
    client = from_afar(settings)
    sent = client.get("/?q=a+heron", headers={"Accept": "text/html"})
    assert sent.headers["location"] == "/login?next=%2F%3Fq%3Da%2Bheron"

    form = {"token": TOKENS[Role.READER], "next": "/?q=a+heron"}
    login = client.post("/login", data=form, headers={"Origin": "http://photos.example"})

    assert (login.status_code, login.headers["location"]) == (303, "/?q=a+heron")
    cookie = login.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert client.get("/v1/items").status_code == 200


def test_an_error_names_no_folder_of_the_server_but_to_its_owner(settings: ServerSettings) -> None:
    place = str(settings.gallery.parent)
    for role in Role:
        answer = from_afar(settings, TOKENS[role]).get("/v1/items", params={"encoder": "hf:x"})
        assert answer.status_code == 422 and "hf:x" in answer.json()["detail"]
        assert (place in answer.text) == (role is Role.OWNER)


@pytest.mark.parametrize(
    "next", ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", "/\n/x"]
)
def test_signing_in_leads_to_no_other_site(settings: ServerSettings, next: str) -> None:
    login = from_afar(settings).post("/login", data={"token": TOKENS[Role.READER], "next": next})
    assert login.headers["location"] == "/"


def test_who_guesses_tokens_waits_and_locks_out_nobody_else(settings: ServerSettings) -> None:
    client = from_afar(settings)
    guessed = [client.get("/v1/items", headers={"Authorization": f"Bearer guess-{n}"}) for n in range(12)]

    right = client.get("/v1/items", headers={"Authorization": f"Bearer {TOKENS[Role.OWNER]}"})

    assert [answer.status_code for answer in guessed] == [401] * 10 + [429] * 2
    assert guessed[-1].headers["retry-after"].isdigit()
    assert right.status_code == 200


def test_after_five_minutes_an_address_may_guess_again_and_an_old_cookie_is_one_guess() -> None:
    now = [1000.0]
    guesses = LoginThrottle(most=2, clock=lambda: now[-1])
    for _ in range(5):
        guesses.count("10.0.0.7", b"old")
    assert guesses.wait("10.0.0.7") == 0
    now.append(1100)
    guesses.count("10.0.0.7", b"new")

    waits = []
    for second in (1100, 1299, 1300.5, 1399.5, 1401):  # the first guess is forgotten after 1300, the second after 1400
        now.append(second)
        waits.append(guesses.wait("10.0.0.7"))

    assert waits == [201, 2, 0, 0, 0] and guesses.wait("10.0.0.8") == 0
    guesses.count("10.0.0.7", b"newer")
    assert guesses.wait("10.0.0.7") == 0
    guesses.count("10.0.0.7", b"newest")
    assert guesses.wait("10.0.0.7") == 301


def test_guesses_of_many_addresses_take_bounded_memory() -> None:
    guesses = LoginThrottle(most=1, addresses=50)
    for number in range(500):
        guesses.count(str(number), b"x")
    assert [number for number in range(500) if guesses.wait(str(number))] == list(range(450, 500))


# -- this machine, and who only seems to be ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "host", "headers", "status"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000", {}, 200),
        ("127.0.0.1", "http://localhost:8000", {}, 200),
        ("::1", "http://[::1]:8000", {}, 200),
        ("::ffff:127.0.0.1", "http://localhost", {}, 200),
        ("127.0.0.1", "http://evil.example:8000", {}, 421),  # its name points here: DNS rebinding
        ("127.0.0.1", "http://localhost.evil.example", {}, 421),
        ("127.0.0.1", "http://localhost", {"X-Forwarded-For": "127.0.0.1"}, 401),
        ("10.0.0.7", "http://localhost", {}, 401),
        ("10.0.0.7", "http://localhost", {"X-Forwarded-For": "127.0.0.1"}, 401),
        ("10.0.0.7", "http://photos.example", {}, 421),
    ],
)
def test_only_this_machine_comes_in_without_a_token(
    settings: ServerSettings, address: str, host: str, headers: dict[str, str], status: int
) -> None:
    here = replace(settings, hosts=())
    client = from_afar(here, base_url=host, client=(address, 4000))
    assert client.get("/v1/items", headers=headers).status_code == status


@pytest.mark.parametrize("names", [(), ("photos.example",)])
@pytest.mark.parametrize("name", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"])
def test_behind_a_proxy_all_need_a_token(settings: ServerSettings, names: tuple[str, ...], name: str) -> None:
    behind = replace(settings, hosts=names, trust_loopback=False)
    here = {"base_url": f"http://{name}", "client": ("127.0.0.1", 1)}
    with_token = [from_afar(behind, TOKENS[Role.READER], **here).get(path) for path in ("/healthz", "/v1/items")]
    assert [answer.status_code for answer in with_token] == [200, 200]
    assert from_afar(behind, **here).get("/v1/items", headers={"Accept": "*/*"}).status_code == 401


def test_programs_and_its_own_pages_act_here(client: TestClient) -> None:
    for headers in ({}, {"Origin": "http://127.0.0.1"}, {"Sec-Fetch-Site": "same-origin"}):
        answer = client.post("/v1/pictures", files={"picture": ("a.png", png(8, 8), "image/png")}, headers=headers)
        assert answer.status_code == 201, headers


def test_every_answer_forbids_scripts_frames_and_sniffing(client: TestClient) -> None:
    for path in ("/", "/v1/items", "/nothing", "/static/style.css", "/v1/search"):
        headers = client.get(path, headers={"Accept": "text/html"}).headers
        policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
        rules = [policy[name] for name in ("default-src", "script-src", "frame-ancestors")]
        assert rules == ["'none'", "'self'", "'none'"]
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "same-origin")
        assert "access-control-allow-origin" not in headers


def png(width: int, height: int) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(data, "PNG")
    return data.getvalue()


def bomb() -> bytes:
    """A PNG of a few kilobytes that promises 100,000 x 100,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(1 << 16))) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (bomb(), "over the limit"),
        (b"", "empty"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "not a picture"),
        (b"<html><script>alert(1)</script>", "not a picture"),
        (png(40, 40)[:60], "truncated"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n", "not a picture"),
    ],
    ids=["bomb", "empty", "svg", "html", "cut", "eps"],
)
def test_what_is_no_whole_picture_is_refused(client: TestClient, data: bytes, says: str) -> None:
    answer = client.post("/v1/pictures", files={"picture": ("../../a.png", data, "image/png")})
    assert answer.status_code == 422
    assert says in answer.json()["detail"]


def test_too_large_an_upload_is_refused_by_its_promise_and_by_its_bytes(settings: ServerSettings) -> None:
    small = replace(settings, upload_bytes=10_000)
    with at_this_machine(small) as client:
        promised = client.post("/v1/pictures", files={"picture": ("a", bytes(2_000_000), "image/png")})
        streamed = client.post(
            "/v1/pictures",
            content=(b"x" * 100_000 for _ in range(30)),
            headers={"Content-Type": "multipart/form-data; boundary=x"},
        )
        over = client.post("/v1/pictures", files={"picture": ("a", bytes(20_000), "image/png")})
        body = client.post("/v1/judgements", content=b" " * 2_000_000, headers={"Content-Type": "application/json"})

    assert [one.status_code for one in (promised, streamed, over, body)] == [413, 413, 413, 413]


def test_a_request_that_takes_too_long_is_given_up() -> None:
    """The work goes on in its thread; who waits is told at once."""
    let_go = threading.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.to_thread(let_go.wait)

    async def ask() -> None:
        try:
            with raises(Problem) as error:
                await answer_within(0.05, slow, {}, None, None)  # type: ignore[arg-type]
            assert error.value.status == 503
        finally:
            let_go.set()

    with ThreadPoolExecutor(1) as own:  # a browser of other tests may have a loop in this thread
        own.submit(lambda: asyncio.run(ask())).result()


def test_links_that_lead_out_of_an_imported_root_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    Image.new("RGB", (9, 9)).save(tmp_path / "secret.png")
    (tmp_path / "root" / "link.png").symlink_to(tmp_path / "secret.png")
    root = Root(str(tmp_path / "root"), "import")
    for place in (tmp_path / "root" / "link.png", tmp_path / "root" / ".." / "secret.png", "http://127.0.0.1/x.png"):
        with pytest.raises(OSError, match="outside"):
            bytes_of("key:1", PicturePlace(str(place), root))


def test_tokens_are_read_from_a_file_and_only_digests_are_kept(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("# who\nannotator ada 0123456789abcdef\n\nreader all abcdef0123456789 # guests\n")
    read = read_access(tmp_path / "tokens")
    assert [(one.name, one.role) for one in read] == [("ada", Role.ANNOTATOR), ("all", Role.READER)]
    assert "0123456789abcdef" not in repr(read)


@pytest.mark.parametrize(
    ("line", "told"),
    [("ada 0123456789abcdef", "tokens:1"), ("king ada 0123456789abcdef", "'king'"), ("owner ada short", "16")],
)
def test_a_bad_line_of_tokens_is_named(tmp_path: Path, line: str, told: str) -> None:
    (tmp_path / "tokens").write_text(line + "\n")
    with pytest.raises(UsageError, match=told):
        read_access(tmp_path / "tokens")


def test_a_token_gives_its_own_role_at_this_machine_too(settings: ServerSettings) -> None:
    client = at_this_machine(replace(settings, access=(Access.by("0123456789abcdef", "eve", Role.READER),)))
    assert client.get("/add", headers={"Authorization": "Bearer 0123456789abcdef"}).status_code == 403
    assert client.get("/add").status_code == 200


def first_item(client: TestClient, **params: Any) -> dict[str, Any]:
    item: dict[str, Any] = client.get("/v1/search", params={"q": "stripes", **params}).json()["items"][0]
    return item


def test_the_file_is_sent_as_it_was_indexed_and_a_cut_download_goes_on(client: TestClient, gallery: Path) -> None:
    item = first_item(client)
    address, data = f"/v1/originals/{item['id']}", (gallery.parent / "photos" / Path(item["path"]).name).read_bytes()
    whole = client.get(address)
    rest = client.get(address, headers={"Range": "bytes=100-", "If-Range": whole.headers["etag"]})
    changed = client.get(address, headers={"Range": "bytes=100-", "If-Range": '"of another file"'})

    assert (whole.status_code, whole.content, whole.headers["content-type"]) == (200, data, "image/jpeg")
    assert whole.headers["accept-ranges"] == "bytes"
    assert whole.headers["content-disposition"].startswith("inline; filename=")
    assert (rest.status_code, whole.content[:100] + rest.content) == (206, data)
    assert rest.headers["content-range"] == f"bytes 100-{len(data) - 1}/{len(data)}"
    assert (changed.status_code, changed.content) == (200, data)
    assert client.get(address, headers={"Range": f"bytes={len(data)}-"}).status_code == 416
    assert all("sandbox" in answer.headers["content-security-policy"] for answer in (whole, rest))


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
    assert "It looks like the query" in page and " of 1" not in page
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
