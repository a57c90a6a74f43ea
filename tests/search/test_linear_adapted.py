"""Search under a static adapter: the order of its formula, whatever part of the gallery fits into memory."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from pathlib import Path
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eyespot
from eyespot.adapters.linear import FILE, Linear, load, save
from eyespot.search.collection import Collection
from eyespot.search.linear_adapted import LinearIndex, index_of
from eyespot.types import UsageError
from tests.command import run_eyespot
from tests.wording import raises
from tests.worlds import make_gallery


def adapter(dim: int, width: int = 5, seed: int = 0, space: str | None = None) -> Linear:
    rng = np.random.default_rng(seed)
    return Linear(rng.normal(size=(width, dim)).astype(np.float32), rng.normal(size=width).astype(np.float32), space)


@given(seed=st.integers(0, 999), window=st.integers(1, 400), k=st.integers(1, 40), half=st.booleans())
@settings(max_examples=30, deadline=None)
def test_rows_come_in_the_order_of_the_formula(seed: int, window: int, k: int, half: bool) -> None:
    """Blocks, windows that cut them, a mask, and vectors of any length."""
    rng, static = np.random.default_rng(seed), adapter(6, seed=seed)
    blocks = [rng.normal(size=(rows, 6)).astype(np.float16 if half else np.float32) for rows in (17, 1, 30)]
    queries, mask = rng.normal(size=(3, 6)).astype(np.float32), rng.random(48) < 0.7
    whole = LinearIndex(static, blocks, window)

    found = whole.search(queries, k, mask)

    rows = np.concatenate(blocks).astype(np.float64)
    seen, probes = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (rows, queries.astype(np.float64)))
    seen, probes = (x @ static.weight.T.astype(np.float64) + static.bias for x in (seen, probes))
    scores = probes @ seen.T / np.linalg.norm(probes, axis=1)[:, None] / np.linalg.norm(seen, axis=1)
    scores[:, ~mask] = -9
    assert found.rows.shape == (3, min(k, int(mask.sum()))) and mask[found.rows].all()
    expected = -np.sort(-scores, axis=1)[:, : found.rows.shape[1]]
    assert found.scores == pytest.approx(expected, abs=1e-5)
    assert whole.rescore(queries[1], [3, 40, 5]) == pytest.approx(
        np.where(mask[[3, 40, 5]], scores[1, [3, 40, 5]], whole.rescore(queries[1], [3, 40, 5])), abs=1e-5
    )


@pytest.mark.long
def test_a_search_finds_the_same_by_folder_and_by_file(tmp_path: Path) -> None:
    gallery = make_gallery(tmp_path, 6)
    dim = eyespot.open(gallery).view.space.dim
    save(tmp_path / "ta", adapter(dim, space="starter"))

    def found(way: Path, *more: object) -> list[str]:
        done = run_eyespot("search", "a ball", "-g", gallery, "--json", "--adapt", f"linear:{way}", *more)
        return [item["id"] for item in json.loads(done.stdout)["items"]]

    ids = found(tmp_path / "ta")
    later = found(tmp_path / "ta", "--adapt-depth", 2, "--neighbours", 1, "--alpha", 2)
    assert ids == found(tmp_path / "ta" / FILE)
    assert ids == list(eyespot.open(gallery).search("a ball", adapt=f"linear:{tmp_path / 'ta'}").image)
    assert sorted(later) == sorted(ids) and later != ids


def test_one_of_another_encoder_is_refused(collection: Collection, tmp_path: Path) -> None:
    dim = collection.view.space.dim
    for name, one in (("space", adapter(dim, space="hf:other")), ("dim", adapter(dim + 1, space="starter"))):
        save(tmp_path / name, one)
        with raises(UsageError):
            collection.search("a castle", adapt=f"linear:{tmp_path / name}")


def test_arrays_are_searched_with_it(tmp_path: Path) -> None:
    static, rng = adapter(6), np.random.default_rng(1)
    save(tmp_path / "ta", static)
    np.save(tmp_path / "q.npy", rng.normal(size=(2, 6)).astype(np.float32))
    np.save(tmp_path / "g.npy", rng.normal(size=(30, 6)).astype(np.float32))
    arrays = ("--queries", tmp_path / "q.npy", "--gallery", tmp_path / "g.npy", "-k", 3, "--out", tmp_path / "o.npz")

    ran = run_eyespot("adapt", f"linear:{tmp_path / 'ta'}", *arrays)

    assert ran.returncode == 0, ran.stderr
    with np.load(tmp_path / "o.npz") as found:
        seen = static.apply(np.load(tmp_path / "g.npy")) @ static.apply(np.load(tmp_path / "q.npy")).T
        assert np.array_equal(found["ids"], np.argsort(-seen.T, axis=1)[:, :3])
        assert found["refined_query"].shape == (2, 5)


def test_a_layer_that_ilias_publishes_is_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    static = adapter(6)
    layer = {"layer.weight": torch.from_numpy(static.weight), "layer.bias": torch.from_numpy(static.bias)}
    torch.save(layer, tmp_path / "siglip.pth")
    (tmp_path / "broken.pth").write_bytes(b"nothing")

    read = load(tmp_path / "siglip.pth")

    assert np.array_equal(read.weight, static.weight) and replace(read, space="x").space == "x"
    with pytest.raises(UsageError, match="no linear layer"):
        load(tmp_path / "broken.pth")


def test_an_adapter_that_nobody_uses_frees_its_index(collection: Collection) -> None:
    view = collection.view
    static = adapter(view.space.dim)
    held = ref(index_of(view, static))

    assert held() is not None and index_of(view, static) is held()
    del static
    gc.collect()
    assert held() is None
