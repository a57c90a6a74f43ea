"""A gallery of drawn photos with dates, places, labels and names that mean harm, served to clients and browsers."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server needs the extra [web]")
pytest.importorskip("python_multipart")

import uvicorn
from fastapi.testclient import TestClient

from eyespot import rooms
from eyespot.gallery.indexing import Options, index
from eyespot.web import Access, Role, ServerSettings, application
from eyespot.web.connections import server_config
from tests.made_once import made_once
from tests.worlds import draw

PHOTOS = 72
HOSTILE = '"><img src=x onerror=alert(1)>'
TOKENS = {role: f"{role.name.lower()}-token-0123456789" for role in Role}
BO = "annotator-token-of-bo-0123456789"
Ask = Callable[..., Any]


def make_gallery(folder: Path, photos: int = PHOTOS) -> Path:
    """Photos 000 to 071; the title of 001 and the name of 002 hold HTML, and every third is a heron."""
    rows = []
    for seed in range(photos):
        name = f"{HOSTILE}.jpg".replace("/", "") if seed == 2 else f"{seed:03d}.jpg"
        draw(folder / "photos" / name, seed)
        title = HOSTILE if seed == 1 else "=1+1" if seed == 3 else f"photo {seed}"
        kind = "heron" if seed % 3 == 0 else "egret"
        place = f"{46 + seed / 100},{7 + seed / 100}" if seed % 2 == 0 else ","
        rows.append(f'"{name.replace(chr(34), chr(34) * 2)}","{title.replace(chr(34), chr(34) * 2)}",{kind},Ada,')
        rows[-1] += f"{2020 + seed % 3}-{1 + seed % 12:02d}-05T10:00:00,{place}"
    table = "\n".join(["file_name,title,kind,author,taken,latitude,longitude", *rows]) + "\n"
    (folder / "photos" / "metadata.csv").write_text(table)
    index(folder / "gallery", [str(folder / "photos")], [rooms.load("encoders", "starter")], Options(shard_rows=25))
    return folder / "gallery"


def copy_gallery(folder: Path, photos: int = PHOTOS) -> Path:
    """The same, embedded once: the gallery may be changed, its photos may not."""
    made = made_once(f"web-{photos}", lambda place: make_gallery(place, photos))
    shutil.copytree(made / "photos", folder / "photos")
    return Path(shutil.copytree(made / "gallery", folder / "gallery"))


@pytest.fixture(scope="session")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """72 photos in three shards; nobody may change it."""
    return copy_gallery(tmp_path_factory.mktemp("web"))


@pytest.fixture(scope="session")
def settings(gallery: Path, tmp_path_factory: pytest.TempPathFactory) -> ServerSettings:
    """A server for this machine, with tokens for everybody else."""
    access = tuple(Access.by(token, role.name.lower(), role) for role, token in TOKENS.items())
    return ServerSettings(gallery, access=access, hosts=None, cache=tmp_path_factory.mktemp("cache"))


def patient(settings: ServerSettings) -> ServerSettings:
    """The same without giving up on answers: a busy machine is no error."""
    return replace(settings, seconds=600)


def at_this_machine(settings: ServerSettings) -> TestClient:
    """Whoever sits at the machine that serves."""
    return TestClient(application(patient(settings)), base_url="http://127.0.0.1", client=("127.0.0.1", 4000))


def from_afar(settings: ServerSettings, token: str | None = None, **how: Any) -> TestClient:
    """Somebody in the network, with or without a token; who does not follow where they are sent."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    place = {"base_url": "http://photos.example", "client": ("10.0.0.7", 4000)}
    return TestClient(application(patient(settings)), headers=headers, follow_redirects=False, **place | how)


@pytest.fixture(scope="session")
def client(settings: ServerSettings) -> Iterator[TestClient]:
    """Whoever sits at the machine that serves."""
    with at_this_machine(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, settings: ServerSettings) -> ServerSettings:
    """A gallery of the module's own, for verdicts and lists; and a second annotator."""
    access = (*settings.access, Access.by(BO, "bo", Role.ANNOTATOR))
    return replace(settings, gallery=copy_gallery(tmp_path_factory.mktemp("world")), access=access, cache=None)


@pytest.fixture(scope="module")
def here(world: ServerSettings) -> Iterator[TestClient]:
    """Whoever sits at the machine that serves the module's own gallery."""
    with at_this_machine(world) as opened:
        yield opened


@pytest.fixture
def search(client: TestClient) -> Ask:
    """`/v1/search` with these parameters, giving what it told."""

    def ask(**given: Any) -> Any:
        answer = client.get("/v1/search", params=given)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


@contextmanager
def serving(settings: ServerSettings) -> Iterator[str]:
    """The server of `eyespot serve` in a thread, and its address."""
    settings = patient(settings)
    server = uvicorn.Server(server_config(application(settings), settings.seconds))
    server.config.port, server.config.log_level = 0, "critical"
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="session")
def served(settings: ServerSettings) -> Iterator[str]:
    """The address of a real server for this machine."""
    with serving(settings) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A real chromium; skips where there is none."""
    if not Path("/usr/bin/chromium").exists():
        pytest.skip("needs /usr/bin/chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    playwright.expect.set_options(timeout=60_000)  # a busy machine is no error
    with playwright.sync_playwright() as opened:
        chromium = opened.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield chromium
        chromium.close()
