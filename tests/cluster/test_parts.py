"""An approximate index whose parts workers hold: what one process finds, under masks, and when workers are killed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray")
pytest.importorskip("faiss")

from eyespot.cluster.ray_index import RayBackend
from eyespot.cluster.starting import Cluster
from eyespot.indexes import faiss
from eyespot.indexes.faiss import load
from eyespot.types import EyespotError, UsageError
from tests.cluster.conftest import unit
from tests.cluster.test_holding import assert_same

DIM, ROWS = 24, 12_000
KINDS = {"pq": {}, "ivf": {"lists": 32, "probes": 8}, "rabitq": {"bits": 2}, "hnsw": {"probes": 100}}


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    return unit(ROWS, DIM)


@pytest.fixture
def holding() -> Iterator[RayBackend]:
    with RayBackend(Cluster(2)) as holding:
        yield holding


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
    return [None, late, rng.random(ROWS) < 0.01]


def test_the_answers_are_those_of_one_process(built: Path, vectors: np.ndarray, holding: RayBackend) -> None:
    queries = unit(8, DIM, 1)
    here = load([vectors], folder=built, depth=100, recall=0.9)
    there = load([vectors], folder=built, held=holding.parts, depth=100, recall=0.9)
    for mask in masks():
        for k in (1, 20):
            found, expected = there.search(queries, k, mask), here.search(queries, k, mask)
            assert_same(found, expected)
            assert found.recall == expected.recall


def move_away(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))


def put_another(place: Path) -> None:
    """Of as many rows and parts: another machine's copy of the gallery, or one that was tuned again meanwhile."""
    shutil.rmtree(place)
    load([np.ascontiguousarray(unit(ROWS, DIM)[::-1])], folder=place, kind="pq")


def damage(place: Path) -> None:
    (place / "part-00000.faiss").write_bytes(b"nothing of faiss")


@pytest.mark.parametrize(
    ("change", "why"), [(move_away, "is not there"), (put_another, "another index"), (damage, "is damaged")]
)
def test_an_index_that_is_not_the_one_that_was_opened_is_said_and_never_searched(
    change: Callable[[Path], object], why: str, vectors: np.ndarray, holding: RayBackend, tmp_path: Path
) -> None:
    place = tmp_path / "index"
    load([vectors], folder=place, kind="pq")
    there = load([vectors], folder=place, held=holding.parts)
    change(place)

    with pytest.raises(EyespotError, match=why):
        there.search(unit(1, DIM), 3)
    with pytest.raises(UsageError, match="--ray"):  # workers that hold parts hold no rows beside them
        holding.scan([vectors])
