"""The commands with `--ray`: what they print and write is what they print and write without."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.worlds import draw_photos

pytest.importorskip("ray")

from eyespot.cluster.starting import connected, room_for
from eyespot.extras import install_line
from eyespot.types import UsageError
from tests.cluster.conftest import unit
from tests.command import refuses, run_eyespot, run_process
from tests.gallery.test_killed import contents
from tests.wording import raises
from tests.worlds.vectors import drawn, take

RAY = ("--ray", "local", "--workers", "2")


def eyespot(*words: object) -> str:
    done = run_eyespot(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_photos(tmp_path_factory.mktemp("photos"), 24)


@pytest.fixture(scope="module")
def gallery(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made") / "gallery"
    eyespot("index", photos, "-g", place)
    return place


def test_index(photos: Path, gallery: Path, tmp_path: Path) -> None:
    report = json.loads(eyespot("index", photos, "-g", tmp_path / "gallery", *RAY, "--json"))

    assert report["embedded"] == 24
    assert contents(tmp_path / "gallery") == contents(gallery)


def test_search(gallery: Path) -> None:
    def search(*more: str) -> Any:
        report = json.loads(eyespot("search", "a red disc", "-g", gallery, "--json", *more))
        return {name: value for name, value in report.items() if name != "took_ms"}

    assert search(*RAY) == search()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four thousand vectors, so many that an index is made of them."""
    place = tmp_path_factory.mktemp("large") / "gallery"
    take(place, drawn(4000, 0))
    return place


def test_search_with_an_approximate_index(large: Path) -> None:
    pytest.importorskip("faiss")
    eyespot("tune", "-g", large, "--recall", "0.5", "--kind", "pq")
    words = ["search", "a disc", "-g", str(large), "--index", "faiss", "--json"]
    here, there = json.loads(eyespot(*words)), json.loads(eyespot(*words, *RAY))

    assert not there["exact"] and there["recall"] == here["recall"]
    assert there["items"] == here["items"]


def test_mine_semipositives(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", unit(300, 16))
    eyespot("mine", "semipositives", tmp_path / "vectors.npy", "--out", tmp_path / "here.npz")
    eyespot("mine", "semipositives", tmp_path / "vectors.npy", "--out", tmp_path / "there.npz", *RAY)

    with np.load(tmp_path / "here.npz") as here, np.load(tmp_path / "there.npz") as there:
        assert here["rows"].tolist() == there["rows"].tolist()
        assert here["weights"].tobytes() == there["weights"].tobytes()


def test_eval(gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.csv").write_text("query_id,text\nq1,a red disc\nq2,stripes\n")
    (tmp_path / "qrels.txt").write_text("q1 0 3 1\nq2 0 5 1\n")

    def measures(*more: str) -> Any:
        report = json.loads(eyespot("eval", "own", "--data", tmp_path, "-g", gallery, "--json", *more))
        return [task["measures"] for task in report["tasks"]]

    found = measures(*RAY)
    assert found == measures() and found[0]["RR@50"]["mean"] > 0


@pytest.mark.parametrize(
    ("machines", "workers", "each"),
    [([3, 3], 3, 1), ([5, 5, 5], 4, 2), ([8, 3], 5, 2), ([8, 1], 4, 1), ([6], 0, 1), ([2.5, 2.5], 0, 1), ([16], 3, 5)],
)
def test_all_workers_find_room_on_the_machines_there_are(machines: list[float], workers: int, each: int) -> None:
    """A worker lies on one machine: three with two processors each have no room on two machines of three."""
    shared = room_for([{"Alive": True, "Resources": {"CPU": cpus}} for cpus in machines], workers)

    assert (shared.workers, shared.cpus) == (workers or sum(map(int, machines)), each)
    assert sum(int(cpus) // shared.cpus for cpus in machines) >= shared.workers


def test_a_program_that_uses_ray_already_stays_in_its_own() -> None:
    import ray

    with connected("nowhere:1", 3) as cluster:
        assert cluster.workers == 3
    assert ray.is_initialized()


def test_more_workers_than_the_cluster_has_processors_are_refused() -> None:
    with raises(UsageError), connected("auto", 7):
        pass


def test_a_cluster_that_does_not_answer_is_one_sentence(gallery: Path) -> None:
    done = run_process("search", "a disc", "-g", gallery, "--ray", "127.0.0.1:1")

    assert (done.returncode, done.stdout) == (1, "")
    assert "127.0.0.1:1" in done.stderr and len(done.stderr.splitlines()) == 1


def test_without_ray_its_extra_is_named(gallery: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)

    assert install_line("ray") in refuses("search", "a disc", "-g", gallery, "--ray", "local", code=1)
