"""`eyespot serve --ray` from outside: the answers are those of a server without workers, whatever happens to these."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

pytest.importorskip("ray")
pytest.importorskip("fastapi", reason="the server needs the extra [web]")

import eyespot
from eyespot.cluster.linked import LinkedBackend
from eyespot.types import UsageError
from tests.web.conftest import copy_gallery
from tests.worlds import draw
from tests.worlds.adapters import checkpoint

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
WORDS = ("red stripes", "a blue disc", "photo 7", "heron", "2:disc - stripes", "something green")


class Server(NamedTuple):
    """A server's address and its process."""

    address: str
    pid: int

    def get(self, path: str, **given: object) -> str:
        with urlopen(f"{self.address}{path}?{urlencode(given, doseq=True)}", timeout=120) as answer:
            return str(answer.read().decode())

    def search(self, **given: object) -> Any:
        """The items of a search, and its notes."""
        found = json.loads(self.get("/v1/search", limit=60, **given))
        return [(item["id"], item["score"], item["rank"]) for item in found["items"]], found["exact"]

    def metric(self, name: str) -> int:
        found = re.search(rf"^{name} (\d+)$", self.get("/metrics"), re.M)
        assert found, name
        return int(found[1])


@contextmanager
def serving(gallery: Path, *more: str) -> Iterator[Server]:
    line = [sys.executable, "-m", "eyespot.cli", "serve", "-g", str(gallery), "--port", "0", "--no-history", *more]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = process.stderr.readline()
        found = re.search(r"http://[\d.:]+", told)
        assert found, told
        server = Server(found[0], process.pid)
        try:
            until(lambda: is_ready(server))
            yield server
        finally:
            process.send_signal(signal.SIGTERM)


def is_ready(server: Server) -> bool:
    try:
        return server.get("/readyz").startswith("ready")
    except OSError:
        return False


def until(what: Any, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.2)


def descendants(pid: int) -> dict[int, str]:
    """The processes below a process, by their names."""
    parents = {}
    for one in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            parents[int(one)] = int(fields[1])
        except OSError:
            continue
    found, fresh = dict[int, str](), {pid}
    while fresh:
        fresh = {one for one, parent in parents.items() if parent in fresh} - set(found)
        for one in fresh:
            try:
                found[one] = Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                found[one] = ""
    return found


def workers_below(server: Server) -> list[int]:
    return [pid for pid, name in descendants(server.pid).items() if name.startswith("ray::RangeActor")]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gallery of 72 photos in three shards, and an adapter of its space."""
    folder = tmp_path_factory.mktemp("served")
    copy_gallery(folder)
    checkpoint(folder / "birds", eyespot.open(folder / "gallery").view.space.dim, "starter")
    return folder


@pytest.fixture(scope="module")
def pair(world: Path) -> Iterator[tuple[Server, Server]]:
    """A server with two workers, and one without, over the same gallery."""
    adapt = ("--adapt", f"birds={world / 'birds'}")
    with (
        serving(world / "gallery", *adapt, "--ray", "local", "--workers", "2", "--cache", str(world / "1")) as there,
        serving(world / "gallery", *adapt, "--cache", str(world / "2")) as here,
    ):
        yield there, here


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"by": "look", "label": "kind=heron"},
        {"by": "look", "where": "latitude > 46.2", "ungrouped": "true"},
        {"adapter": "birds"},
        {"adapter": "birds", "label": "kind=heron"},
        {"by": "words"},
        {"neighbours": 5},
    ],
)
def test_answers_are_those_of_a_server_without_workers(pair: tuple[Server, Server], more: dict[str, Any]) -> None:
    there, here = pair
    words = ("heron", "egret") if more.get("by") == "words" else WORDS
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda text: there.search(q=text, **more), words))
    assert together == [here.search(q=text, **more) for text in words]


def test_photos_that_are_like_others_and_moved_searches_too(pair: tuple[Server, Server]) -> None:
    there, here = pair
    first = here.search(q="stripes")[0]
    drawn = {"q": "stripes", "like": first[3][0], "unlike": first[1][0]}
    assert there.search(**drawn) == here.search(**drawn)


def test_health_and_metrics_tell_of_the_workers(pair: tuple[Server, Server]) -> None:
    there, here = pair
    assert there.get("/readyz") == "ready\n2 of 2 workers on Ray answer\n"
    assert here.get("/readyz") == "ready\n"
    assert (there.metric("eyespot_ray_connected"), there.metric("eyespot_ray_workers")) == (1, 2)
    before = there.metric("eyespot_ray_questions_total")
    there.search(q="a search that nobody made before", by="look")
    assert there.metric("eyespot_ray_questions_total") == before + 1
    assert "eyespot_ray" not in here.get("/metrics")


def test_workers_killed_while_eight_people_search_cost_no_answer(pair: tuple[Server, Server]) -> None:
    there, here = pair
    asked = [f"{text} {number}" for number in range(8) for text in WORDS]
    expected = [here.search(q=text, by="look") for text in asked]
    crew = workers_below(there)
    assert len(crew) == 2
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(there.search, q=text, by="look") for text in asked]
        until(lambda: sum(one.done() for one in answers) > 4)
        os.kill(crew[0], signal.SIGKILL)
        until(lambda: sum(one.done() for one in answers) > 20)
        os.kill(crew[1], signal.SIGKILL)
        assert [one.result() for one in answers] == expected
    until(lambda: there.metric("eyespot_ray_workers") == 2)
    assert there.metric("eyespot_ray_questions_answered_here_total") == 0


def test_photos_that_come_later_are_found_by_the_same_workers(tmp_path: Path) -> None:
    gallery = copy_gallery(tmp_path)
    with serving(gallery, "--ray", "local", "--workers", "2") as server:
        assert len(server.search(q="a disc", ungrouped="true")[0]) == 60
        crew = set(workers_below(server))
        for seed in range(900, 905):
            draw(tmp_path / "photos" / f"new{seed}.jpg", seed)
        subprocess.run(
            [sys.executable, "-m", "eyespot.cli", "index", str(tmp_path / "photos"), "-g", str(gallery)],
            check=True,
            capture_output=True,
        )
        total = json.loads(server.get("/v1/search", q="a disc", ungrouped="true"))["total"]
        with serving(gallery, "--cache", str(tmp_path / "other")) as here:
            assert total == json.loads(here.get("/v1/search", q="a disc", ungrouped="true"))["total"] > 72
            for text in WORDS:
                assert server.search(q=text, by="look") == here.search(q=text, by="look")
        assert set(workers_below(server)) == crew and len(crew) == 2
        assert server.metric("eyespot_ray_questions_answered_here_total") == 0


def test_a_server_outlives_the_head_of_its_cluster(tmp_path: Path) -> None:
    """It searches by itself meanwhile, says so, and connects again; Ray ends a process of its own after a minute."""
    gallery = copy_gallery(tmp_path)
    with serving(gallery, "--ray", "local", "--workers", "2") as server:
        expected = [server.search(q=text, by="look") for text in WORDS]
        (head,) = [pid for pid, name in descendants(server.pid).items() if "gcs_server" in name.split(" ")[0]]
        os.kill(head, signal.SIGKILL)
        until(lambda: not server.metric("eyespot_ray_connected"), 30)
        assert server.get("/readyz").startswith("ready\nthe workers on Ray do not answer")
        told = json.loads(server.get("/v1/search", q="alone", by="look"))
        assert any("this server searches by itself" in note for note in told["notes"])
        assert [server.search(q=text, by="look", encoder="starter") for text in WORDS] == expected
        until(lambda: server.metric("eyespot_ray_workers") == 2)
        assert server.metric("eyespot_ray_connections_total") == 2
        told = json.loads(server.get("/v1/search", q="together", by="look"))
        assert not any("this server searches by itself" in note for note in told["notes"])


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--ray", "127.0.0.1:1"), "no Ray cluster answers at 127.0.0.1:1"),
        (("--ray", "local", "--index", "pq"), "leave out --ray, or --index"),
        (("--index", "pq"), "make one with: eyespot tune"),
    ],
)
def test_what_cannot_be_searched_with_is_said_at_the_start(world: Path, more: tuple[str, ...], sentence: str) -> None:
    line = [sys.executable, "-m", "eyespot.cli", "serve", "-g", str(world / "gallery"), "--port", "0", *more]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode in (1, 2) and sentence in done.stderr and "Traceback" not in done.stderr


def test_parts_of_an_index_are_not_for_a_servers_workers() -> None:
    class Link:
        on_connect = None

    with pytest.raises(UsageError, match="leave out --ray"):
        LinkedBackend(Link()).parts(Path("x"), [1])  # type: ignore[arg-type]
