"""`eyespot serve` as a process: it says where to look, answers, and ends when asked."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from eyespot.cli.serve import begin_gallery, listening
from eyespot.ledger.judgements import Judgements, query_digest
from eyespot.types import Query
from tests.cli.conftest import serving
from tests.command import environment, refuses
from tests.lazy_import import requires
from tests.worlds import copy_of_sample_gallery
from tests.worlds.servers import HANG, Double

pytestmark = requires("fastapi")  # the extra [web]


@pytest.mark.long
def test_it_answers_at_the_address_it_tells_and_ends_with_ctrl_c(sample_gallery: Path, tmp_path: Path) -> None:
    with serving(sample_gallery, "--cache", tmp_path / "cache") as (process, address):
        with urllib.request.urlopen(f"{address}healthz", timeout=60) as answer:
            assert answer.read() == b"ok\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)

    assert (process.returncode, out) == (130, "")


@pytest.mark.long
def test_it_ends_while_judges_and_slow_clients_hold_it(tmp_path: Path) -> None:
    """Twenty rounds wait for an endpoint that never answers; downloads are not read, and uploads do not end."""
    gallery = copy_of_sample_gallery(tmp_path / "gallery")
    with Double(then=HANG) as endpoint, ExitStack() as opened:
        words = ("--rerank", "slow=openai:m", "--depth", 8, "--cache", tmp_path / "cache")
        process, address = opened.enter_context(serving(gallery, *words, OPENAI_BASE_URL=endpoint.url))

        def exchange(path: str, **body: object) -> Any:
            data = json.dumps(body).encode() if body else None
            request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)

        for number in range(20):
            found = exchange(f"v1/search?q=thing+{number}&limit=50")
            exchange(f"v1/runs/{found['run']}/rerank", judge="slow")
        for head in (f"GET /v1/runs/{found['run']}?format=originals&depth=50", "POST /v1/pictures") * 10:
            client = opened.enter_context(connected(address))
            client.sendall(f"{head} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf".encode())
        exchange("v1/judgements", q="a heron", item=found["items"][0]["id"], verdict="yes")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)

    with closing(Judgements(gallery / "ledger.sqlite")) as ledger:
        assert ledger.people(query_digest(Query.words("a heron")), None)
    assert (process.returncode, errors) == (143, "") and endpoint.seen


NEVER = """
import signal, socket, sys, threading
from eyespot.web.connections import Server, server_config
from fastapi import FastAPI

signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # as the command line has it
app, began = FastAPI(), threading.Event()
app.get("/")(lambda: (began.set(), threading.Event().wait()))
with socket.create_server(("127.0.0.1", 0)) as listener:
    client = socket.create_connection(listener.getsockname())
    client.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
    threading.Thread(target=lambda: (began.wait(), signal.raise_signal(signal.SIGTERM)), daemon=True).start()
    Server(server_config(app, 30)).run(sockets=[listener])
"""


@pytest.mark.long
def test_it_ends_while_a_thread_computes_for_ever() -> None:
    done = subprocess.run([sys.executable, "-c", NEVER], env=environment(), timeout=60)
    assert done.returncode == 143


@pytest.mark.long
def test_a_gallery_begins_without_photos_and_one_that_is_there_stays(tmp_path: Path) -> None:
    begin_gallery(tmp_path / "new")
    header = (tmp_path / "new" / "gallery.toml").read_bytes()
    begin_gallery(tmp_path / "new")

    assert (tmp_path / "new" / "gallery.toml").read_bytes() == header
    with serving(tmp_path / "new") as (_, address), urllib.request.urlopen(f"{address}", timeout=60) as answer:
        assert "Add photos" in answer.read().decode()


@pytest.mark.long
@pytest.mark.parametrize("words", ["--always-token", "--host 0.0.0.0 --always-token --allow-host photos.example"])
def test_the_printed_address_lets_its_token_in(sample_gallery: Path, tmp_path: Path, words: str) -> None:
    with serving(sample_gallery, "--cache", tmp_path / "cache", *words.split()) as (_, address):
        place, _, token = address.partition("login#token=")
        place = place.replace("0.0.0.0", "127.0.0.1")
        request = urllib.request.Request(f"{place}v1/items", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{place}v1/items", timeout=60)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--port 1 --host 192.0.2.1", 1),
        ("-e nothing", 2),
        ("--tokens nowhere", 2),
        ("--originals everybody", 2),
        ("-g nowhere", 2),
        ("--allow everything", 2),
    ],
)
def test_what_cannot_be_served_is_refused(words: str, code: int, sample_gallery: Path, tmp_path: Path) -> None:
    refuses("serve", "-g", sample_gallery, *words.split(), code=code, cwd=tmp_path)


HALF_A_HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
HALF_AN_UPLOAD = b"POST /v1/pictures HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\nhalf"


def connected(address: str) -> socket.socket:
    parts = urlsplit(address)
    return socket.create_connection((parts.hostname, parts.port), timeout=20)


def test_small_answers_do_not_wait_for_acknowledgements() -> None:
    """What is accepted from the listener has TCP_NODELAY, as asyncio sets it on sockets of a named protocol."""
    options = []

    async def accept_one(listener: socket.socket) -> None:
        def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            options.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(note, sock=listener):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            await reader.read()
            writer.close()

    with listening("127.0.0.1", 0) as listener:
        asyncio.run(accept_one(listener))

    assert [bool(one) for one in options] == [True]


def problem_of(client: socket.socket) -> tuple[int, str | None, int]:
    answer = HTTPResponse(client)
    answer.begin()
    return answer.status, answer.headers["content-type"], json.loads(answer.read())["status"]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    begin_gallery(gallery := tmp_path_factory.mktemp("begun") / "gallery")
    return gallery


@pytest.fixture(scope="module")
def address(begun: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(begun, "--cache", tmp_path_factory.mktemp("cache")) as (_, told):
        yield told


@pytest.fixture(scope="module")
def impatient(begun: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(begun, "--timeout", 1, "--cache", tmp_path_factory.mktemp("cache")) as (_, told):
        yield told


@pytest.mark.long
@pytest.mark.parametrize("way", ["stops", "drips", "second"])
@pytest.mark.parametrize("sent", [HALF_A_HEAD, HALF_AN_UPLOAD], ids=["head", "upload"])
def test_what_is_half_sent_is_closed(impatient: str, sent: bytes, way: str) -> None:
    """Pytest's own time-out ends a wait in vain."""
    with connected(impatient) as client:
        if way == "second":
            client.sendall(HALF_A_HEAD + b"\r\n")
            assert client.recv(10_000).startswith(b"HTTP/1.1 ")  # 503 on a machine that takes a second
        client.sendall(sent)
        client.settimeout(0.2 if way == "drips" else None)
        closed = False
        while not closed:
            try:
                closed = not client.recv(10_000)
            except TimeoutError:
                with suppress(ConnectionResetError, BrokenPipeError):
                    client.sendall(b"x")
            except (ConnectionResetError, BrokenPipeError):
                closed = True


@pytest.mark.parametrize("pieces", [1, 60])
def test_a_head_that_is_too_long_is_refused(address: str, pieces: int) -> None:
    head = HALF_A_HEAD + b"X-Long: " + b"x" * 60_000 + b"\r\n\r\n"
    size = -(-len(head) // pieces)
    with connected(address) as client:
        for start in range(0, len(head), size):
            with suppress(ConnectionResetError, BrokenPipeError):  # closed before all of it was sent
                client.sendall(head[start : start + size])
        assert problem_of(client) == (431, "application/problem+json", 431)


def test_what_is_no_http_is_refused_with_a_problem(address: str) -> None:
    with connected(address) as client:
        client.sendall(b"\x16\x03\x01 a greeting of TLS\r\n\r\n")
        assert problem_of(client) == (400, "application/problem+json", 400)


@pytest.mark.long
def test_six_hundred_half_sent_heads_keep_nobody_out(address: str) -> None:
    with ExitStack() as opened:
        clients = [opened.enter_context(connected(address)) for _ in range(600)]
        for client in clients:
            with suppress(ConnectionResetError, BrokenPipeError):
                client.sendall(HALF_A_HEAD)
        with urllib.request.urlopen(f"{address}healthz", timeout=60) as answer:
            assert answer.read() == b"ok\n"
        closed = sum(is_closed(client) for client in clients)

    assert closed >= 100


def is_closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
