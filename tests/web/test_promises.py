"""What docs/serve.md promises, seen from outside: the options of `eyespot serve`, what it fetches, what it writes."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eyespot.pipelines.human_review import Case, write_queue
from eyespot.types import UsageError
from eyespot.web.found import results
from tests.pages import ROOT
from tests.web.conftest import copy_gallery
from tests.worlds.servers import Double

pytestmark = pytest.mark.long  # each test starts a server

WATCHED = """
import os, sys
def told(event, given):
    if event == "socket.connect" and isinstance(given[1], tuple) or event == "socket.getaddrinfo":
        os.write(2, f"NETWORK {event} {given[1] if event == 'socket.connect' else given[0]}\\n".encode())
sys.addaudithook(told)
from eyespot.cli import main
main()
"""


class Process:
    """A running `eyespot serve`, which notes on stderr every address that it connects to or looks up."""

    def __init__(self, gallery: Path, log: Path, *words: object, **env: str) -> None:
        line = [sys.executable, "-c", WATCHED, "serve", "-g", str(gallery), "--port", "0", *map(str, words)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("EYESPOT_", "OPENAI_"))}
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(line, env=clean | env, stdout=file, stderr=file)
        while not (found := re.search(r"look at (\S+);.*\n", self.told)):
            assert self.process.poll() is None, self.told
            time.sleep(0.05)
        self.begun = found.end()
        address, _, self.token = found[1].partition("login#token=")
        self.address = address.replace("0.0.0.0", "127.0.0.1")

    @property
    def told(self) -> str:
        """What it wrote on stdout and stderr so far."""
        return self.log.read_text(encoding="utf-8")

    def ask(self, path: str, body: Any = None, token: str = "", **headers: str) -> tuple[int, str]:
        """Status and text of an answer; a body is sent as JSON."""
        auth = {"Authorization": f"Bearer {token}"} if token else {}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if data and not headers else {}
        request = urllib.request.Request(f"{self.address}{path}", data, {**auth, **kind, **headers})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode(errors="replace")
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode(errors="replace")

    def refused(self, token: str) -> tuple[int, str]:
        """The status that a wrong token gets, and how long it is to wait."""
        headers = {"Authorization": f"Bearer {token}"}
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(urllib.request.Request(f"{self.address}v1/items", headers=headers), timeout=60)
        with error.value as refusal:
            return refusal.code, refusal.headers["Retry-After"] or ""

    def search(self, words: str, **more: str) -> Any:
        return json.loads(self.ask("v1/search?" + urllib.parse.urlencode({"q": words, **more}), token=self.token)[1])


@contextmanager
def started(gallery: Path, log: Path, *words: object, **env: str) -> Iterator[Process]:
    server = Process(gallery, log, *words, **env)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_gallery(tmp_path_factory.mktemp("promises"), 12)


@pytest.fixture(scope="module")
def here(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server for this machine."""
    folder = tmp_path_factory.mktemp("here")
    with started(photos, folder / "log", "--cache", folder / "cache", "--rerank", "quick=encoder:starter") as server:
        yield server


@pytest.fixture(scope="module")
def afar(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server that lets nobody in without its token."""
    folder = tmp_path_factory.mktemp("afar")
    with started(
        photos, folder / "log", "--host", "0.0.0.0", "--always-token", "--no-history", "--cache", folder / "cache"
    ) as server:
        yield server


def part(data: bytes) -> tuple[bytes, str]:
    """A form with one file as `picture`, and its content type."""
    edge = uuid.uuid4().hex
    head = f'--{edge}\r\nContent-Disposition: form-data; name="picture"; filename="a.bmp"\r\n\r\n'
    return head.encode() + data + f"\r\n--{edge}--\r\n".encode(), f"multipart/form-data; boundary={edge}"


def bitmap(side: int) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (side, side), (90, 30, 30)).save(data, "BMP")
    return data.getvalue()


def test_the_options_of_the_verb_become_those_of_the_server(photos: Path, here: Process, tmp_path: Path) -> None:
    """Words that are refused, uploads that are too large, a queue, judges of a depth with one budget of calls."""
    pytest.importorskip("openai")
    (tmp_path / "refused.txt").write_text("nuclear plant\nface of\n")
    (tmp_path / "prices.toml").write_text('["tiny"]\ninput = 1000.0\noutput = 0.0\n')
    write_queue(tmp_path / "queue.jsonl", [Case("c", "Is this true of it?", (), {"text": "a cup"})])
    words = (
        *("--refuse", tmp_path / "refused.txt", "--max-upload", 1, "--review", tmp_path / "queue.jsonl"),
        *("--rerank", "quick=encoder:starter", "--rerank", "dear=openai:tiny", "--depth", 5),
        *("--budget-calls", 2, "--budget-money", 100, "--prices", tmp_path / "prices.toml", "--cache", tmp_path / "c"),
    )
    with (
        Double() as model,
        started(photos, tmp_path / "log", *words, OPENAI_BASE_URL=model.url, OPENAI_API_KEY="k") as server,
    ):
        refused = server.ask("v1/search?q=a+N%C3%BAclear%20%20plant")[0], server.ask("v1/search?q=a+plant")[0]
        sizes = []
        for side in (100, 700):  # 30 kB, 1.4 MB
            data, kind = part(bitmap(side))
            sizes.append(server.ask("v1/pictures", data, **{"Content-Type": kind})[0])
        links = ['href="/review"' in one.ask("")[1] for one in (server, here)]
        place = f"v1/runs/{server.search('red stripes')['run']}/rerank"
        cost = json.loads(server.ask(f"{place}?judge=dear")[1])
        server.ask(place, {"judge": "dear"})
        while (stands := json.loads(server.ask(f"{place}?judge=dear")[1]))["state"] == "running":
            time.sleep(0.02)
        calls = len(model.seen)

    assert refused == (422, 200)
    assert sizes[0] == 201 and sizes[1] == 413
    assert links == [True, False]
    assert (cost["photos"], cost["cost"]["calls"]) == (5, 5) and cost["cost"]["money"] > 0
    assert calls == 2 and "2 calls" in " ".join(stands["notes"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--rerank", "dear=openai:tiny", "--budget-money", 1), "name the price in a file of yours"),
        (("--adapt", "bad=nowhere"), "nowhere"),
        (("--refuse", "nowhere.txt"), "nowhere.txt"),
        (("--review", "nowhere.jsonl"), "nowhere.jsonl"),
        (("--prices", "nowhere.toml"), "nowhere.toml"),
    ],
)
def test_what_cannot_be_served_is_said_before_it_listens(
    photos: Path, words: tuple[object, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from eyespot.cli import app

    monkeypatch.setenv("OPENAI_API_KEY", "k")
    refused = CliRunner().invoke(app, ["serve", "-g", str(photos), "--port", "0", *map(str, words)]).exception

    assert isinstance(refused, UsageError) and sentence in str(refused)


# -- what is written down -----------------------------------------------------------------------------------------


def written(folder: Path) -> bytes:
    """All bytes of all files, and of databases with what lies in their logs."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_what_people_search_for_is_not_written_down(afar: Process, photos: Path) -> None:
    """Words, and the words of a search that fails: neither on a stream nor in a file of gallery or cache.

    Without `--no-history` a person's own history holds them, and nothing else does.
    """
    found = afar.search("a marmalade zeppelin")
    afar.search("a marmalade zeppelin", where="marmalade zeppelin !")
    afar.ask("v1/search?q=marmalade+zeppelin&limit=nonsense", token=afar.token)
    afar.ask("?q=marmalade+zeppelin", token=afar.token)
    afar.ask("v1/search?q=marmalade+zeppelin", token="marmalade-zeppelin-is-no-token")

    output = afar.told[afar.begun :]
    assert found["items"] and "marmalade" not in output and afar.token not in output
    for folder in (photos, afar.log.parent / "cache"):
        assert b"marmalade" not in written(folder) and afar.token.encode() not in written(folder)


def test_a_verdict_is_written_down_with_its_words(here: Process, photos: Path) -> None:
    """The other way round: the test above would see words if they were written."""
    (first, *_) = here.search("a quince airship")["items"]
    body = {"q": "a quince airship", "item": first["id"], "verdict": "yes", "by": "ada"}

    assert here.ask("v1/judgements", body)[0] == 201
    assert b"quince airship" in written(photos)


def test_a_search_on_the_page_is_in_the_history_alone(here: Process, photos: Path) -> None:
    here.ask("?q=a+medlar+balloon")

    deadline = time.monotonic() + 20
    while b"medlar" not in b"".join(path.read_bytes() for path in photos.glob("history.sqlite*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    others = [path for path in photos.rglob("*") if path.is_file() and not path.name.startswith("history.sqlite")]
    assert not any(b"medlar" in path.read_bytes() for path in others)
    assert "medlar" not in here.told[here.begun :]


# -- what is fetched ----------------------------------------------------------------------------------------------


def test_neither_server_nor_pages_fetch_anything_from_the_network(browser: Any, here: Process) -> None:
    page, urls = browser.new_page(), list[str]()
    page.on("request", lambda request: urls.append(request.url))
    for path in ("", "docs", "login", "review", "annotate", "v1/items", "?q=http://example.com/a", "?q=red+stripes"):
        page.goto(here.address + path, wait_until="networkidle")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_load_state("networkidle")
    page.close()

    own = (here.address, "data:", "blob:")
    assert len(urls) > 20 and [url for url in urls if not url.startswith(own)] == []
    assert "NETWORK" not in here.told


def test_on_paper_there_are_photos_and_no_controls(browser: Any, here: Process) -> None:
    page = browser.new_page()
    page.goto(f"{here.address}?q=red+stripes", wait_until="networkidle")
    on_screen = page.get_by_role("searchbox").is_visible(), page.locator(".tile img").count()
    page.emulate_media(media="print")
    on_paper = page.get_by_role("searchbox").is_visible(), page.locator(".tile img").first.is_visible()
    page.close()

    assert (on_screen, on_paper) == ((True, 12), (False, True))


# -- numbers of the page ------------------------------------------------------------------------------------------


def test_an_address_is_told_to_wait_the_minutes_that_the_page_says(
    afar: Process,
) -> None:
    begun = time.monotonic()
    answers = [afar.refused(f"{at:020}") for at in range(12)]
    took = time.monotonic() - begun

    locked = [(code, wait) for code, wait in answers if code != 401]
    assert len(answers) > len(locked) > 0 and {code for code, _ in locked} == {429}
    # The five minutes begin with the first wrong token, which may be that of a test before
    assert 240 - took <= int(locked[0][1]) <= 300
    assert afar.ask("v1/items", token=afar.token)[0] == 200


def test_results_take_as_much_memory_as_the_page_says() -> None:
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")

    assert f"stored results {results.KEPT >> 20} MiB" in " ".join(page.split())
