"""A gallery of drawn photos with dates, places, labels and names that mean harm, served to clients and browsers."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server needs the extra [web]")
pytest.importorskip("python_multipart")

import uvicorn
from fastapi.testclient import TestClient

from eyespot.curate.annotate.annotation_store import AnnotationStore, mark_of
from eyespot.curate.annotate.candidates import list_nearest
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.search.collection import Collection
from eyespot.web import Access, Role, ServerSettings, application
from eyespot.web.connections import server_config
from tests.made_once import made_once
from tests.worlds import annotation, draw, index_gallery

PHOTOS, TEAM_PHOTOS = 72, 160
DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
FACTS = dict.fromkeys(("visible", "feasible", "of_interest"), "yes")
HOSTILE = '"><img src=x onerror=alert(1)>'
TOKENS = {role: f"{role.name.lower()}-token-0123456789" for role in Role}
ACCESS = tuple(Access.by(token, role.name.lower(), role) for role, token in TOKENS.items())
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
    index_gallery(folder / "gallery", folder / "photos", shard_rows=25)
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
    return ServerSettings(gallery, access=ACCESS, hosts=None, cache=tmp_path_factory.mktemp("cache"))


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


# -- browsers ---------------------------------------------------------------------------------------------------


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


@contextmanager
def opened(browser: Any, address: str, who: str = "", **how: Any) -> Iterator[Any]:
    """A page of a fresh visitor, of this name; every error of a script and every alert fails the test."""
    context = browser.new_context(base_url=address, permissions=["clipboard-read", "clipboard-write"], **how)
    wrong: list[str] = []
    try:
        if who:
            context.request.post(f"{address}/name", form={"name": who, "next": "/login"}, headers={"Origin": address})
        page = context.new_page()
        page.set_default_timeout(60_000)  # a busy machine is no error
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("console", lambda entry: wrong.append(entry.text) if "Content Security" in entry.text else None)
        yield page
    finally:
        context.close()
    assert wrong == []


@pytest.fixture(scope="session")
def served(settings: ServerSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real server; tests may judge and make lists there, each with words and names of its own."""
    gallery = copy_gallery(tmp_path_factory.mktemp("served"))
    with serving(replace(settings, gallery=gallery, cache=None)) as address:
        yield address


@pytest.fixture
def page(browser: Any, served: str) -> Iterator[Any]:
    """A page of a fresh visitor, in which the last photos of a search lie far below."""
    with opened(browser, served, viewport={"width": 1280, "height": 720}) as page:
        yield page


class Team:
    """A gallery to annotate, whose first ten photos lie near to the words `a heron`, and the address of its server."""

    def __init__(self, gallery: Path, address: str) -> None:
        self.gallery, self.address = gallery, address
        self.store, self.collection = AnnotationStore(gallery / "ledger.sqlite"), Collection(gallery)

    def close(self) -> None:
        self.store.close()

    def take_in(self, *queries: tuple[str, str], photos: int = 0) -> None:
        """Queries by their id and words, each with a list of so many photos."""
        self.store.take_in([AnnotationQuery(id, text, dict(FACTS)) for id, text in queries])
        for id, _ in queries if photos else ():
            list_nearest(self.store, id, self.collection, photos)

    def marks(self, query: str, who: str) -> list[str]:
        marks = {image: mark_of(one) for image, one in self.store.last_judgements(query, who).items()}
        return [marks[photo.image] for photo in self.store.candidates(query) if photo.image in marks]


def copy_team_gallery(folder: Path, photos: int = TEAM_PHOTOS) -> Path:
    """A gallery to annotate; its photos stay where they were made."""
    made = made_once(f"web-team-{photos}", lambda place: annotation.gallery(place, photos, 10))
    return Path(shutil.copytree(made / "gallery", folder / "gallery"))


@contextmanager
def team_of(gallery: Path) -> Iterator[Team]:
    with serving(ServerSettings(gallery)) as address, closing(Team(gallery, address)) as team:
        yield team


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """160 photos to annotate; each test does so under queries of its own."""
    with team_of(copy_team_gallery(tmp_path_factory.mktemp("team"))) as made:
        yield made


@contextmanager
def labelling(browser: Any, team: Team, who: str, query: str, what: str = "list", **how: Any) -> Iterator[Any]:
    """A page of somebody who labels this query."""
    with opened(browser, team.address, who, viewport={"width": 1100, "height": 800}, **how) as page:
        page.goto(f"/annotate/label?query={query}&what={what}")
        page.wait_for_selector(".shot.here")
        yield page


def press(page: Any, keys: Iterable[str]) -> None:
    for key in keys:
        page.keyboard.press(key)


def verdicts(page: Any) -> list[str | None]:
    return [one.get_attribute("data-verdict") for one in page.locator(".tile").all()]


def saved(page: Any) -> None:
    page.get_by_text("All saved", exact=True).wait_for()


def rewrite_script(page: Any, script: str, before: str, after: str) -> None:
    """Serve a script of the page with one constant changed: few photos are many then."""

    def answer(route: Any) -> None:
        found = route.fetch()
        assert before in found.text()
        route.fulfill(response=found, body=found.text().replace(before, after))

    page.route(f"**/{script}*", answer)


def slow_down(page: Any) -> None:
    """A line on which every answer takes 0.3 s longer."""
    slow = {"offline": False, "latency": 300, "downloadThroughput": -1, "uploadThroughput": -1}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", slow)
