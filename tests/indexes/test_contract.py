"""What every index must do; a new file in the room is tested by existing."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eyespot.indexes
from eyespot.types import Index, UsageError
from tests.wording import raises
from tests.worlds.vectors import clustered

NAMES = sorted(m.name for m in pkgutil.iter_modules(eyespot.indexes.__path__) if not m.name.startswith("_"))
NEEDS = {"faiss": "faiss"}
# So small that the rough pass does its work on two thousand rows too.
FAISS = ("pq", "ivf", "rabitq", "hnsw")
WAYS: dict[str, list[dict[str, Any]]] = {"faiss": [{"kind": kind, "depth": 200} for kind in FAISS]}
ALL = [(name, way) for name in NAMES for way in WAYS.get(name, [{}])]
Load = Callable[..., Index]


def loading(name: str, way: dict[str, Any]) -> Load:
    """What `load` of a member does with these options; skips where its package is not installed."""
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    made: Load = import_module(f"eyespot.indexes.{name}").load
    return lambda blocks, **options: made(blocks, **way, **options)


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    return clustered(2000, centres=20)


@pytest.fixture(scope="module", params=ALL, ids=lambda one: "-".join([one[0], one[1].get("kind", "")]).strip("-"))
def load(request: pytest.FixtureRequest) -> Load:
    return loading(*request.param)


@pytest.fixture(scope="module")
def index(load: Load, vectors: np.ndarray) -> Index:
    return load(vectors)


def best(vectors: np.ndarray, query: np.ndarray, k: int, mask: np.ndarray) -> list[int]:
    scores = np.where(mask, vectors.astype(np.float64) @ query.astype(np.float64), -np.inf)
    return np.argsort(-scores, kind="stable")[:k].tolist()


def some(count: int, of: int = 2000) -> np.ndarray:
    """A mask of so many rows, the same for the same number."""
    mask = np.zeros(of, np.bool_)
    mask[np.random.default_rng(count).choice(of, count, replace=False)] = True
    return mask


def test_every_index_is_tested() -> None:
    assert {"exact", "faiss"} <= set(NAMES)
    assert pytest.importorskip("eyespot.indexes.faiss", reason="needs faiss-cpu").KINDS == FAISS


def test_shapes_order_and_scores(index: Index, vectors: np.ndarray) -> None:
    found = index.search(vectors[:7], 30)
    assert found.rows.shape == found.scores.shape == (7, 30)
    assert found.rows.dtype == np.int64 and found.scores.dtype == np.float32
    assert (np.diff(found.scores, axis=1) <= 0).all()
    assert all(len(set(rows)) == 30 for rows in found.rows.tolist())
    assert np.allclose(found.scores, np.einsum("md,mkd->mk", vectors[:7], vectors[found.rows]), atol=1e-5)
    assert found.exact == index.exact and index.search(vectors[:2], 10, some(30)).exact
    more = index.search(vectors[:2], 5000)  # than there is
    assert more.rows.shape == (2, 2000) and sorted(more.rows[0].tolist()) == list(range(2000))


@pytest.mark.parametrize("left", [2000, 1999, 1300])
def test_nearest_are_found(index: Index, vectors: np.ndarray, left: int) -> None:
    mask = some(left)
    found = index.search(vectors[100:150], 10, mask)
    right = [
        len(set(rows.tolist()) & set(best(vectors, q, 10, mask)))
        for rows, q in zip(found.rows, vectors[100:150], strict=True)
    ]
    assert sum(right) >= (500 if index.exact else 450)


@pytest.mark.parametrize("count", [0, 1, 3, 40, 1300, 1999])
def test_a_mask_hides_rows_but_never_costs_answers(index: Index, vectors: np.ndarray, count: int) -> None:
    mask = some(count)
    found = index.search(vectors[:3], 20, mask)
    assert found.rows.shape == (3, min(20, count)) and mask[found.rows].all()


@pytest.mark.parametrize("count", [1, 2, 20])  # of 2000: one row, 0.1 %, 1 %
def test_under_a_narrow_filter_every_answer_is_the_right_one(index: Index, vectors: np.ndarray, count: int) -> None:
    mask = some(count)
    found = index.search(vectors[:5], 50, mask)
    assert found.rows.tolist() == [best(vectors, query, count, mask) for query in vectors[:5]]


def test_copies_of_a_row_are_all_there(load: Load, vectors: np.ndarray) -> None:
    twins = vectors.copy()
    twins[300:900] = vectors[7]
    found = load(twins).search(vectors[7:8], 30)
    assert np.allclose(found.scores, 1, atol=1e-6) and len(set(found.rows[0].tolist())) == 30


@pytest.mark.parametrize("blocks", [[], [np.empty((0, 32), np.float32)]])
def test_nothing_to_find_and_nothing_asked(load: Load, index: Index, blocks: list[np.ndarray]) -> None:
    assert load(blocks).search(np.ones((2, 32), np.float32), 5).rows.shape == (2, 0)
    assert len(index.search(np.empty((0, 32), np.float32), 5).rows) == 0


@pytest.mark.parametrize(
    ("k", "dim", "value", "mask"),
    [
        *((k, 32, 1, None) for k in (0, -1)),
        (5, 31, 1, None),
        *((5, 32, value, None) for value in (np.nan, np.inf)),
        *((5, 32, 1, mask) for mask in (np.ones(1999, np.bool_), np.ones(2000, np.int64))),
    ],
)
def test_wrong_requests_are_refused(index: Index, k: int, dim: int, value: Any, mask: np.ndarray | None) -> None:
    with pytest.raises(UsageError):
        index.search(np.full((1, dim), value, np.float32), k, mask)


KEPT = [(name, way) for name, way in ALL if name in WAYS]


@pytest.fixture(params=KEPT, ids=lambda one: "-".join([one[0], one[1].get("kind", "")]).strip("-"))
def keep(request: pytest.FixtureRequest) -> Load:
    return loading(*request.param)


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_new_rows_are_found_and_gone_ones_not(keep: Load, vectors: np.ndarray, tmp_path: Path, first: bool) -> None:
    """Built of all but a hundred rows, whose block stands before or after the others since."""
    later, known = vectors[:100], vectors[100:]
    keep([known], folder=tmp_path / "index")
    blocks, covered, start = ([later, known], (1,), 0) if first else ([known, later], (0,), 1900)
    alive = np.ones(2000, np.bool_)
    alive[start + 5] = False
    grown = keep(blocks, folder=tmp_path / "index", covered=covered, live=alive)
    everything = np.concatenate(blocks)
    found = grown.search(later[:20], 10, alive)

    assert start + 5 not in found.rows and not found.exact
    mine = [at for at in range(20) if at != 5]
    assert found.rows[mine, 0].tolist() == [start + at for at in mine]
    right = [len({*rows} & {*best(everything, q, 10, alive)}) for rows, q in zip(found.rows, later[:20], strict=True)]
    assert sum(right) >= 180


def test_opened_again_it_answers_as_it_did(keep: Load, vectors: np.ndarray, tmp_path: Path) -> None:
    built = keep([vectors], folder=tmp_path / "index").search(vectors[:9], 20)
    again = keep([vectors], folder=tmp_path / "index", recall=0.9).search(vectors[:9], 20)
    assert again.rows.tolist() == built.rows.tolist()
    assert again.recall is not None and 0.8 < again.recall <= 1


def test_an_index_of_other_rows_is_refused(keep: Load, vectors: np.ndarray, tmp_path: Path) -> None:
    keep([vectors], folder=tmp_path / "index")
    for others in (vectors[:1500], vectors[::-1].copy()):
        with raises(UsageError):
            keep([others], folder=tmp_path / "index")
    with raises(UsageError):
        keep([vectors], lits=3)  # no such setting


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(WAYS))
def test_killed_while_it_is_built_it_is_built_again(name: str, vectors: np.ndarray, tmp_path: Path) -> None:
    load, folder = loading(name, WAYS[name][0]), tmp_path / "index"
    np.save(tmp_path / "v.npy", np.tile(vectors, (10, 1)))
    setup = f"import numpy as np; from eyespot.indexes.{name} import load; v = np.load({str(tmp_path / 'v.npy')!r})"
    child = subprocess.Popen([sys.executable, "-c", f"{setup}; load([v], folder={str(folder)!r})"])
    while child.poll() is None and not (folder.is_dir() and any(folder.iterdir())):
        time.sleep(0.001)
    child.kill()
    child.wait()

    found = load([np.load(tmp_path / "v.npy")], folder=folder).search(vectors[:60], 10)
    assert found.rows.shape == (60, 10)
    assert (found.scores > 0.9999).mean() > 0.6  # each has ten copies; some are missed by what is approximate
