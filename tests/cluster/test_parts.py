"""An approximate index whose parts workers hold: what one process finds, under masks, and when workers are killed."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray")
pytest.importorskip("faiss")

from eyespot.cluster.parts import ShardActor
from eyespot.cluster.ray_index import RayBackend
from eyespot.cluster.starting import Cluster
from eyespot.indexes import faiss
from eyespot.indexes.faiss import load
from eyespot.types import EyespotError, UsageError
from tests.cluster.conftest import killing, unit
from tests.cluster.test_holding import assert_same

DIM, ROWS = 24, 12_000
KINDS = {"pq": {}, "ivf": {"lists": 32, "probes": 8}, "rabitq": {"bits": 2}, "hnsw": {"probes": 100}}


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    return unit(ROWS, DIM)


@pytest.fixture(scope="module", params=KINDS)
def built(request: pytest.FixtureRequest, vectors: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of five parts, in a folder of its kind's name."""
    place = tmp_path_factory.mktemp("indexes") / request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faiss, "_PART", ROWS // 4 - 1)
        load([vectors], folder=place, kind=request.param, **KINDS[request.param])
    assert len(list(place.glob("part-*.faiss"))) == 5
    return place


def masks() -> list[np.ndarray | None]:
    rng = np.random.default_rng(3)
    late = np.arange(ROWS) >= ROWS // 2  # some workers have no row to find
    return [None, rng.random(ROWS) < 0.5, late, rng.random(ROWS) < 0.01, np.arange(ROWS) == 7]


@pytest.mark.parametrize("workers", [1, 2, 6])
def test_the_answers_are_those_of_one_process(built: Path, vectors: np.ndarray, workers: int) -> None:
    queries = unit(8, DIM, 1)
    here = load([vectors], folder=built, depth=100, recall=0.9)
    with RayBackend(Cluster(workers)) as holding:
        there = load([vectors], folder=built, held=holding.parts, depth=100, recall=0.9)
        for mask in masks():
            for k in (1, 20):
                found, expected = there.search(queries, k, mask), here.search(queries, k, mask)
                assert_same(found, expected)
                assert found.recall == expected.recall


@pytest.mark.parametrize(("kills", "every"), [(2, 0.4), pytest.param(20, 1.0, marks=pytest.mark.slow)])
def test_a_killed_worker_costs_a_retry_and_no_answer(
    built: Path, vectors: np.ndarray, kills: int, every: float
) -> None:
    queries, answers = unit(5, DIM, 2), []
    expected = load([vectors], folder=built, depth=100).search(queries, 9)
    with killing(ShardActor, kills, every) as dead, RayBackend(Cluster(2)) as holding:
        there = load([vectors], folder=built, held=holding.parts, depth=100)
        while len(dead) < kills or len(answers) < 3:
            answers.append(there.search(queries, 9))
        answers.append(there.search(queries, 9))

    assert len(dead) == kills
    for found in answers:
        assert_same(found, expected)


def test_a_folder_that_a_machine_does_not_see_is_named(vectors: np.ndarray, tmp_path: Path) -> None:
    load([vectors], folder=tmp_path / "index", kind="pq")
    with RayBackend(Cluster(1)) as holding:
        there = load([vectors], folder=tmp_path / "index", held=holding.parts)
        shutil.move(tmp_path / "index", tmp_path / "elsewhere")
        with pytest.raises(EyespotError, match=r"index is not there on .*; keep the gallery on a disk that all"):
            there.search(unit(1, DIM), 3)


def test_another_index_in_its_place_is_said_and_never_searched(vectors: np.ndarray, tmp_path: Path) -> None:
    """Of as many rows and parts: another machine's copy of the gallery, or one that was tuned again meanwhile."""
    place, other = tmp_path / "index", tmp_path / "other"
    load([vectors], folder=place, kind="pq")
    load([np.ascontiguousarray(vectors[::-1])], folder=other, kind="pq")
    with RayBackend(Cluster(1)) as holding:
        there = load([vectors], folder=place, held=holding.parts)
        shutil.rmtree(place)
        other.rename(place)
        with pytest.raises(EyespotError, match="holds another index than the one that was opened; run the same line"):
            there.search(unit(1, DIM), 3)


def test_workers_that_hold_parts_hold_no_rows_beside_them(vectors: np.ndarray, tmp_path: Path) -> None:
    load([vectors], folder=tmp_path, kind="pq")
    with RayBackend(Cluster(1)) as holding:
        load([vectors], folder=tmp_path, held=holding.parts)
        with pytest.raises(UsageError, match="leave out --ray, or --index"):
            holding.scan([vectors])


def test_a_damaged_part_is_said(vectors: np.ndarray, tmp_path: Path) -> None:
    load([vectors], folder=tmp_path, kind="pq")
    (tmp_path / "part-00000.faiss").write_bytes(b"nothing of faiss")
    with RayBackend(Cluster(1)) as holding:
        there = load([vectors], folder=tmp_path, held=holding.parts)
        with pytest.raises(EyespotError, match=r"is damaged .*; build it again with: eyespot tune"):
            there.search(unit(1, DIM), 3)
