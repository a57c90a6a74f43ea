"""What every index must do; a new file in the room is tested by existing."""

import pkgutil
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import eyespot.indexes
from eyespot.types import Index, UsageError

NAMES = sorted(m.name for m in pkgutil.iter_modules(eyespot.indexes.__path__) if not m.name.startswith("_"))


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20, 32))[rng.integers(0, 20, 2000)] + 0.5 * rng.standard_normal((2000, 32))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(params=NAMES)
def index(request: pytest.FixtureRequest, vectors: np.ndarray) -> Index:
    opened: Index = import_module(f"eyespot.indexes.{request.param}").load(vectors)
    return opened


def best(vectors: np.ndarray, query: np.ndarray, k: int, mask: np.ndarray) -> list[int]:
    scores = np.where(mask, vectors.astype(np.float64) @ query.astype(np.float64), -np.inf)
    return np.argsort(-scores, kind="stable")[:k].tolist()


def test_there_are_indexes() -> None:
    assert "exact" in NAMES


def test_shapes_order_and_scores(index: Index, vectors: np.ndarray) -> None:
    found = index.search(vectors[:7], 30)
    assert found.rows.shape == found.scores.shape == (7, 30)
    assert found.rows.dtype == np.int64 and found.scores.dtype == np.float32
    assert (np.diff(found.scores, axis=1) <= 0).all()
    assert all(len(set(rows)) == 30 for rows in found.rows.tolist())
    assert np.allclose(found.scores, np.einsum("md,mkd->mk", vectors[:7], vectors[found.rows]), atol=1e-5)


def test_nearest_are_found(index: Index, vectors: np.ndarray) -> None:
    everything = np.ones(len(vectors), np.bool_)
    found = index.search(vectors[100:150], 10)
    right = [
        len(set(rows.tolist()) & set(best(vectors, q, 10, everything)))
        for rows, q in zip(found.rows, vectors[100:150], strict=True)
    ]
    assert sum(right) >= (500 if index.exact else 450)


@pytest.mark.parametrize("count", [0, 1, 3, 40, 1999])
def test_a_mask_hides_rows_but_never_costs_answers(index: Index, vectors: np.ndarray, count: int) -> None:
    mask = np.zeros(len(vectors), np.bool_)
    mask[np.random.default_rng(count).choice(len(vectors), count, replace=False)] = True
    found = index.search(vectors[:3], 20, mask)
    assert found.rows.shape == (3, min(20, count)) and mask[found.rows].all()


def test_more_than_there_is(index: Index, vectors: np.ndarray) -> None:
    found = index.search(vectors[:2], 5000)
    assert found.rows.shape == (2, 2000) and sorted(found.rows[0].tolist()) == list(range(2000))


@pytest.mark.parametrize(("k", "dim", "value"), [(0, 32, 1), (-1, 32, 1), (5, 31, 1), (5, 32, np.nan), (5, 32, np.inf)])
def test_wrong_requests_are_refused(index: Index, k: int, dim: int, value: Any) -> None:
    with pytest.raises(UsageError):
        index.search(np.full((1, dim), value, np.float32), k)
