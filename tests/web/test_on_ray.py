"""`eyespot serve --ray` from outside: the answers are those of a server without workers, whatever happens to these."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("ray")

import eyespot
from tests.command import refuses
from tests.web.conftest import copy_gallery
from tests.web.server_process import ServerProcess, started, until
from tests.worlds import draw, index_gallery
from tests.worlds.adapters import checkpoint

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
WORDS = ("red stripes", "a blue disc", "photo 7", "heron", "2:disc - stripes", "something green")


class Pair(NamedTuple):
    there: ServerProcess
    here: ServerProcess
    gallery: Path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    copy_gallery(folder)
    checkpoint(folder / "birds", eyespot.open(folder / "gallery").view.space.dim, "starter")
    return folder


@pytest.fixture(scope="module")
def pair(world: Path) -> Iterator[Pair]:
    """One cluster for all tests: each leaves it with two workers."""
    words = ("--adapt", f"birds={world / 'birds'}", "--cache")
    gallery, ray = world / "gallery", ("--ray", "local", "--workers", "2")
    with (
        started(gallery, world / "log1", *words, world / "1", *ray) as there,
        started(gallery, world / "log2", *words, world / "2") as here,
    ):
        yield Pair(there, here, gallery)


def found(server: ServerProcess, words: str, **more: object) -> Any:
    answer = server.search(words, limit=60, **more)
    return [(item["id"], item["score"], item["rank"]) for item in answer["items"]], answer["exact"]


def descendants(pid: int) -> dict[int, str]:
    parents, names = dict[int, int](), dict[int, str]()
    for one in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            parents[one] = int(Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[1])
            names[one] = Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    below, fresh = dict[int, str](), {pid}
    while fresh:
        fresh = {one for one, parent in parents.items() if parent in fresh} - set(below)
        below |= {one: names.get(one, "") for one in fresh}
    return below


def workers_below(server: ServerProcess) -> list[int]:
    return [pid for pid, name in descendants(server.process.pid).items() if name.startswith("ray::RangeActor")]


def test_answers_are_those_of_one_process_and_health_counts_the_workers(pair: Pair) -> None:
    there, here, _ = pair
    with ThreadPoolExecutor(8) as pool:
        for way in (
            {},
            {"by": "look", "label": "kind=heron"},
            {"by": "look", "where": "latitude > 46.2", "grouped": "false"},
            {"adapt": "birds"},
            {"adapt": "birds", "label": "kind=heron"},
            {"by": "words"},
            {"neighbours": 5},
        ):
            words = ("heron", "egret") if way.get("by") == "words" else WORDS
            together = list(pool.map(lambda text, way=way: found(there, text, **way), words))
            assert together == [found(here, text, **way) for text in words], way
    first = found(here, "stripes")[0]
    moved = {"like": first[3][0], "unlike": first[1][0]}
    assert found(there, "stripes", **moved) == found(here, "stripes", **moved)

    assert [one.readiness.count("2 of 2 workers") for one in (there, here)] == [1, 0]


def test_photos_that_come_later_are_found_by_the_same_workers(pair: Pair) -> None:
    there, here, gallery = pair
    there.search("a disc")
    crew, before = set(workers_below(there)), here.search("a disc", grouped="false")["total"]
    for seed in range(900, 905):
        draw(gallery.parent / "photos" / f"new{seed}.jpg", seed)
    index_gallery(gallery, gallery.parent / "photos")

    assert there.search("a disc", grouped="false")["total"] == before + 5
    assert [found(there, text, by="look") for text in WORDS] == [found(here, text, by="look") for text in WORDS]
    assert set(workers_below(there)) == crew and len(crew) == 2


def test_a_server_outlives_the_head_of_its_cluster(pair: Pair) -> None:
    """It searches by itself meanwhile, says so, and connects again; Ray ends a process of its own after a minute."""
    there, here, _ = pair
    (head,) = [pid for pid, name in descendants(there.process.pid).items() if "gcs_server" in name.split(" ")[0]]
    os.kill(head, signal.SIGKILL)
    until(lambda: there.readiness.startswith("ready\nthe workers on Ray do not answer"))
    assert any("searches alone" in note for note in there.search("alone", by="look")["notes"])
    assert found(there, "a lone disc", by="look") == found(here, "a lone disc", by="look")
    until(lambda: "2 of 2 workers" in there.readiness)
    assert not any("searches alone" in note for note in there.search("together", by="look")["notes"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--ray", "127.0.0.1:1"), 1),
        (("--ray", "local", "--index", "pq"), 2),
        (("--index", "pq"), 2),
    ],
)
def test_what_cannot_be_searched_with_is_said_at_the_start(world: Path, words: tuple[str, ...], code: int) -> None:
    refuses("serve", "-g", world / "gallery", "--port", "0", *words, code=code)
