"""What docs/how/server.md promises, seen from outside: the options of `eyespot serve`, what it fetches and writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eyespot.pipelines.human_review import Case, write_queue
from eyespot.web import _searches
from tests.command import refuses, run_eyespot
from tests.pages import ROOT
from tests.web.conftest import copy_gallery
from tests.web.server_process import ServerProcess, started, until
from tests.worlds import draw, index_gallery, make_gallery
from tests.worlds.servers import Double

pytestmark = pytest.mark.long  # servers are started

WATCHED = """
import os, sys
def told(event, given):
    if event == "socket.connect" and isinstance(given[1], tuple) or event == "socket.getaddrinfo":
        os.write(2, f"NETWORK {event} {given[1] if event == 'socket.connect' else given[0]}\\n".encode())
sys.addaudithook(told)
from eyespot.cli import main
main()
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_gallery(tmp_path_factory.mktemp("promises"), 12)


@pytest.fixture(scope="module")
def here(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server for this machine, which notes every address that it connects to or looks up."""
    folder = tmp_path_factory.mktemp("here")
    with started(photos, folder / "log", "--cache", folder / "cache", script=WATCHED) as server:
        yield server


@pytest.fixture(scope="module")
def afar(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that lets nobody in without its token."""
    folder = tmp_path_factory.mktemp("afar")
    words = ("--host", "0.0.0.0", "--always-token", "--cache", folder / "cache")
    with started(photos, folder / "log", *words) as server:
        yield server


def test_the_options_of_the_verb_become_those_of_the_server(photos: Path, here: ServerProcess, tmp_path: Path) -> None:
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
        assert server.ask("v1/search?q=a+N%C3%BAclear%20%20plant")[0] == 422
        assert server.ask("v1/search?q=a+plant")[0] == 200
        head = b'--edge\r\nContent-Disposition: form-data; name="picture"; filename="a.bmp"\r\n\r\n'
        bodies = [head + bytes(size) + b"\r\n--edge--\r\n" for size in (30_000, 1_400_000)]
        kind = {"Content-Type": "multipart/form-data; boundary=edge"}
        codes = [server.ask("v1/pictures", body, **kind)[0] for body in bodies]  # neither is a picture
        assert codes[0] != 413 and codes[1] == 413
        assert ['href="/review"' in one.ask("")[1] for one in (server, here)] == [True, False]
        place = f"v1/runs/{server.search('red stripes')['run']}/rerank"
        cost = json.loads(server.ask(f"{place}?judge=dear")[1])
        server.ask(place, {"judge": "dear"})
        until(lambda: json.loads(server.ask(f"{place}?judge=dear")[1])["state"] != "running")
        stands = json.loads(server.ask(f"{place}?judge=dear")[1])

    assert "Warning" not in (tmp_path / "log").read_text()
    assert (cost["photos"], cost["cost"]["calls"]) == (5, 5) and cost["cost"]["money"] > 0
    assert len(model.seen) == 2 and "2 calls" in " ".join(stands["notes"])


@pytest.mark.parametrize(
    "words",
    [
        ("--rerank", "dear=openai:tiny", "--budget-money", 1),
        ("--adapt", "bad=nowhere"),
        ("--refuse", "nowhere.txt"),
        ("--review", "nowhere.jsonl"),
        ("--prices", "nowhere.toml"),
    ],
)
def test_what_cannot_be_served_is_said_before_it_listens(photos: Path, words: tuple[object, ...]) -> None:
    refuses("serve", "-g", photos, "--port", 0, *words, OPENAI_API_KEY="k")


def written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_what_people_search_for_is_not_written_down(afar: ServerProcess, photos: Path) -> None:
    """Words, and the words of a search that fails: neither on a stream nor in a file of gallery or cache."""
    found = afar.search("a marmalade zeppelin")
    afar.search("a marmalade zeppelin", where="marmalade zeppelin !")
    afar.ask("v1/search?q=marmalade+zeppelin&limit=nonsense", token=afar.token)
    afar.ask("?q=marmalade+zeppelin", token=afar.token)
    afar.ask("v1/search?q=marmalade+zeppelin", token="marmalade-zeppelin-is-no-token")

    output = afar.told[afar.begun :]
    assert found["items"] and "marmalade" not in output and afar.token not in output
    for folder in (photos, afar.log.parent / "cache"):
        assert b"marmalade" not in written(folder) and afar.token.encode() not in written(folder)


def test_a_verdict_is_written_down_with_its_words(here: ServerProcess, photos: Path) -> None:
    """The other way round: the test above would see words if they were written."""
    first = here.search("a quince airship")["items"][0]
    body = {"q": "a quince airship", "item": first["id"], "verdict": "yes", "by": "ada"}
    assert here.ask("v1/judgements", body)[0] == 201
    assert b"quince airship" in written(photos)


def test_neither_server_nor_pages_fetch_anything_from_the_network(browser: Any, here: ServerProcess) -> None:
    page, urls = browser.new_page(), list[str]()
    page.on("request", lambda request: urls.append(request.url))
    for path in ("", "docs", "login", "review", "annotate", "v1/items", "?q=http://example.com/a", "?q=red+stripes"):
        page.goto(f"{here.address}/{path}", wait_until="networkidle")
    on_screen = page.get_by_role("searchbox").is_visible(), page.locator(".tile img").count()
    page.emulate_media(media="print")  # on paper there are photos and no controls
    on_paper = page.get_by_role("searchbox").is_visible(), page.locator(".tile img").first.is_visible()
    page.emulate_media(media="screen")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_load_state("networkidle")
    page.close()

    own = (f"{here.address}/", "data:", "blob:")
    assert len(urls) > 20 and [url for url in urls if not url.startswith(own)] == []
    assert "NETWORK" not in here.told
    assert (on_screen, on_paper) == ((True, 12), (False, True))


def test_results_take_as_much_memory_as_the_page_says() -> None:
    page = (ROOT / "docs" / "how" / "server.md").read_text(encoding="utf-8")

    assert f"stored results {_searches.KEPT >> 20} MiB" in " ".join(page.split())


# -- a gallery of more files than the server may open ------------------------------------------------------------------


FEW, LIMIT = 95, 130  # too few for 30 shards; and enough for them, but not for 31 more beside them


def limited(limit: int) -> list[str]:
    return ["/bin/sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"]


def count(server: ServerProcess, words: str = "a disc") -> int:
    return len(server.search(words, grouped="false", limit=500)["items"])


def test_too_many_shards_are_one_sentence_whose_ways_out_work_and_an_open_snapshot_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="ulimit is of Unix")
    gallery = make_gallery(tmp_path, 30, shard_rows=1, codes=True)
    assert len(list((gallery / "shards").iterdir())) == 30
    log = tmp_path / "log"
    with started(gallery, log, before=limited(FEW)) as server:
        told = server.readiness
        assert "30 shards take 60 open files" in told
        assert "30 shards take 60 open files" in server.ask("v1/search?q=disc")[1]
        assert int(re.findall(r"ulimit -n (\d+)", told)[0]) > LIMIT
    with started(gallery, log, before=limited(LIMIT)) as server:
        assert server.readiness == "ready\n" and count(server) == 30
        draw(tmp_path / "photos" / "new.jpg", 99)
        index_gallery(gallery, tmp_path / "photos", shard_rows=1, codes=True)
        found = server.search("stripes", grouped="false", limit=500)
        assert len(found["items"]) == 30
        assert any("31 shards take 62 open files" in str(note) for note in found["notes"])
    assert run_eyespot("compact", "-g", gallery).returncode == 0
    with started(gallery, log, before=limited(FEW)) as server:
        assert server.readiness == "ready\n" and count(server) == 31
