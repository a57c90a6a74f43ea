"""The commands with `--ray`: what they print and write is what they print and write without."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")

from eyespot.cluster.ray_index import refuse_impossible
from eyespot.cluster.starting import Cluster, connected, room_for
from eyespot.cluster.workers import Embedder, WorkerPool
from eyespot.extras import install_line
from eyespot.gallery.indexing import Options, Summary, index
from eyespot.types import Encoder, EyespotError, ScanRequest, UsageError
from tests.cluster.conftest import killing, unit
from tests.command import refuses, run_eyespot, run_process
from tests.pages import ROOT, blocks, run_code, run_page
from tests.wording import raises
from tests.worlds import draw, draw_photos
from tests.worlds.galleries import shard_contents, two_roots

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
    assert shard_contents(tmp_path / "gallery") == shard_contents(gallery)


def test_search(gallery: Path) -> None:
    def search(*more: str) -> Any:
        report = json.loads(eyespot("search", "a red disc", "-g", gallery, "--json", *more))
        return {name: value for name, value in report.items() if name != "took_ms"}

    assert search(*RAY) == search()


def test_an_approximate_index_is_searched_by_one_process(gallery: Path) -> None:
    refuses("search", "a disc", "-g", gallery / "none", "--index", "faiss", *RAY)  # before anything is opened


@pytest.mark.parametrize(
    "answer",
    [
        None, [], [([[0]], [[0.5]])] * 2, [([[9]], [[0.5]])], [([[-1]], [[0.5]])], [([[1]], [[0.5]])],
        [([[0]], [[float("nan")]])], [([[0]], [[float("inf")]])], [([[0, 2]], [[0.5]])], [([[0, 0]], [[0.5, 0.5]])],
        [([[0.0]], [[0.5]])], [([["a"]], [[0.5]])], [([[0, 2, 3]], [[0.5, 0.5, 0.5]])], [([0], [0.5])],
    ],
)  # fmt: skip
def test_a_worker_that_lies_is_an_error(answer: Any) -> None:
    """What it finds is among the rows and let through, each once, no more than were wanted, with numbers."""
    request = ScanRequest(np.zeros(4, np.float32), 2, np.arange(6) != 1)
    refuse_impossible([(np.array([[0, 5]]), np.array([[0.5, 0.25]]))], [request], 6)

    with raises(EyespotError):
        refuse_impossible(answer, [request], 6)


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


# -- a gallery that workers on a cluster embed has the bytes of one that this process embeds, killed workers or not


COUNT = 50


@pytest.fixture(scope="module")
def embedding_photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_roots(tmp_path_factory.mktemp("photos"), COUNT)


@pytest.fixture(scope="module")
def plain(embedding_photos: Path, starter: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The gallery as this process makes it, in several shards."""
    gallery = tmp_path_factory.mktemp("plain")
    made(gallery, embedding_photos, starter, Options(shard_rows=20))
    return gallery


@pytest.fixture(scope="module")
def shards(plain: Path) -> list[object]:
    return shard_contents(plain)


def made(gallery: Path, photos: Path, encoder: Encoder, options: Options) -> Summary:
    return index(gallery, [str(root) for root in sorted(photos.iterdir())], [encoder], options)


def test_the_bytes_are_alike(tmp_path: Path, embedding_photos: Path, shards: list[object], starter: Encoder) -> None:
    with WorkerPool(Cluster(3)) as crew:
        summary = made(tmp_path, embedding_photos, starter, Options(shard_rows=20, reader_factory=crew))

    assert (summary.embedded, len(summary.failures)) == (COUNT, 2)
    assert shard_contents(tmp_path) == shards and len(shards) > 2
    with WorkerPool(Cluster(4000)) as crew:  # more than there is room for, if they began
        assert made(tmp_path, embedding_photos, starter, Options(reader_factory=crew)).embedded == 0


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
def test_killed_workers_leave_the_same_gallery(
    tmp_path: Path, embedding_photos: Path, shards: list[object], starter: Encoder, kills: int
) -> None:
    """A job is short and kills are many: it is done from the start again until they have all hit."""
    hit, job = 0, 0
    while hit < kills:
        job += 1
        with WorkerPool(Cluster(2)) as crew, killing(Embedder, kills - hit, 0.5) as dead:
            made(tmp_path / str(job), embedding_photos, starter, Options(shard_rows=20, reader_factory=crew))
        hit += len(dead)

        assert shard_contents(tmp_path / str(job)) == shards


def test_new_photos_join_a_plain_gallery(tmp_path: Path, plain: Path, embedding_photos: Path, starter: Encoder) -> None:
    gallery, more = tmp_path / "gallery", tmp_path / "more"
    shutil.copytree(plain, gallery)
    draw(more / "a" / "new.jpg", 1000)
    with WorkerPool(Cluster(2)) as crew:
        summary = made(gallery, more, starter, Options(reader_factory=crew))

    assert (summary.embedded, summary.pictures) == (1, COUNT + 1)
    with pytest.raises(EyespotError, match="--workers"), WorkerPool(Cluster(4, cpus=2)) as crew:
        made(tmp_path / "none", embedding_photos, starter, Options(reader_factory=crew))  # more than there is room for


# -- the page on clusters says what is so ------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_on_clusters_runs_as_it_stands(tmp_path: Path) -> None:
    page = ROOT / "docs" / "how" / "ray.md"
    run_page(page, tmp_path)
    (code,) = blocks(page, "python")

    assert run_code(code, tmp_path).strip()
    assert (tmp_path / "semipositives.npz").is_file()
