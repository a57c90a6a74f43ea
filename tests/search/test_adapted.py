"""Search in which every query has its own view of the space, against the dense formula over all photos."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import eyespot
from eyespot import rooms
from eyespot.adapters.linear import FILE, Linear, load, save
from eyespot.search.adapted import Adapted, index_under, seen_by
from eyespot.search.collection import Collection
from eyespot.search.embedding import embed
from eyespot.search.linear_adapted import LinearIndex, index_of
from eyespot.search.nearest import Nearest
from eyespot.types import Adapter, Query, UsageError
from tests.command import run_eyespot
from tests.worlds import make_gallery
from tests.worlds.adapters import checkpoint

QUERIES = [Query.words("a windmill", "w"), Query.words("a red tower", "t")]


@pytest.fixture(scope="module")
def adapter(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> Adapter:
    dim = collection.view.space.dim
    loaded: Adapter = rooms.load("adapters", f"quari:{checkpoint(tmp_path_factory.mktemp('quari'), dim, 'starter')}")
    return loaded


def vectors(collection: Collection) -> Any:
    return np.concatenate([np.asarray(block, np.float64) for block in collection.view.blocks])


def dense(collection: Collection, adapter: Adapter, query: Query) -> Any:
    """The score of every row by the formula with the whole matrix, in float64: (rows,)."""
    (view,) = adapter.adapt(embed([query], collection.encoder))
    matrix = view.identity * np.eye(adapter.dim) + view.left.astype(np.float64) @ view.right.T.astype(np.float64)
    mapped = vectors(collection) @ matrix
    return mapped @ view.query / np.linalg.norm(mapped, axis=1)


def ids(collection: Collection, rows: Any) -> list[str]:
    return [facts["id"] for facts in collection.view.facts(np.asarray(rows).tolist())]


def test_a_run_is_reranked_to_a_depth_and_stays_as_it_was_below(collection: Collection, adapter: Adapter) -> None:
    first = Nearest(collection.view, collection.encoder, collection.index, 30, collection.view.live)(QUERIES)

    run = Adapted(collection.view, collection.encoder, adapter, 30, collection.view.live, depth=10)(QUERIES, first)

    for query in QUERIES:
        before, after = [[hit.image for hit in each[query.id]] for each in (first, run)]
        scores = dict(
            zip(ids(collection, range(len(vectors(collection)))), dense(collection, adapter, query), strict=True)
        )
        assert after[:10] == sorted(before[:10], key=lambda image: -scores[image])
        assert after[10:] == before[10:] and [hit.image for hit in run[query.id]] == after
    assert (np.diff(run.score[:30]) <= 0).all()


def test_an_index_to_plain_queries_gives_the_same(collection: Collection, adapter: Adapter) -> None:
    under = index_under(adapter, collection.view.blocks)

    found = under.search(embed(QUERIES, collection.encoder), 5)

    best = [np.argsort(-dense(collection, adapter, query), kind="stable")[:5].tolist() for query in QUERIES]
    assert under.exact and found.rows.tolist() == best


def test_images_are_seen_where_their_cosine_is_their_score(collection: Collection, adapter: Adapter) -> None:
    (view,) = adapter.adapt(embed(QUERIES[:1], collection.encoder))

    seen = seen_by(view, vectors(collection).astype(np.float32))

    assert np.abs(np.linalg.norm(seen, axis=1) - 1).max() < 1e-5
    assert np.abs(seen @ view.query - dense(collection, adapter, QUERIES[0])).max() < 1e-5


@pytest.mark.parametrize(("dim", "encoder", "text"), [(512, "clip-of-others", "eyespot train quari"), (12, None, "12")])
def test_an_adapter_of_another_space_is_refused(
    collection: Collection, tmp_path: Path, dim: int, encoder: str | None, text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        collection.search("a windmill", adapt=checkpoint(tmp_path, dim, encoder))


# -- search under a static adapter --------------------------------------------------------------------------------


def linear_adapted_adapter(dim: int, width: int = 5, seed: int = 0, space: str | None = None) -> Linear:
    rng = np.random.default_rng(seed)
    return Linear(rng.normal(size=(width, dim)).astype(np.float32), rng.normal(size=width).astype(np.float32), space)


@given(seed=st.integers(0, 999), window=st.integers(1, 400), k=st.integers(1, 40), half=st.booleans())
@settings(max_examples=30, deadline=None)
def test_rows_come_in_the_order_of_the_formula(seed: int, window: int, k: int, half: bool) -> None:
    """Blocks, windows that cut them, a mask, and vectors of any length."""
    rng, static = np.random.default_rng(seed), linear_adapted_adapter(6, seed=seed)
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
    save(tmp_path / "ta", linear_adapted_adapter(dim, space="starter"))

    def found(way: Path, *more: object) -> list[str]:
        done = run_eyespot("search", "a ball", "-g", gallery, "--json", "--adapt", f"linear:{way}", *more)
        return [item["id"] for item in json.loads(done.stdout)["items"]]

    ids = found(tmp_path / "ta")
    later = found(tmp_path / "ta", "--adapt-depth", 2, "--neighbours", 1, "--alpha", 2)
    assert ids == found(tmp_path / "ta" / FILE)
    assert ids == list(eyespot.open(gallery).search("a ball", adapt=f"linear:{tmp_path / 'ta'}").run.image)
    assert sorted(later) == sorted(ids) and later != ids


def test_arrays_are_searched_with_it(tmp_path: Path) -> None:
    static, rng = linear_adapted_adapter(6), np.random.default_rng(1)
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
    static = linear_adapted_adapter(6)
    layer = {"layer.weight": torch.from_numpy(static.weight), "layer.bias": torch.from_numpy(static.bias)}
    torch.save(layer, tmp_path / "siglip.pth")
    (tmp_path / "broken.pth").write_bytes(b"nothing")

    read = load(tmp_path / "siglip.pth")

    assert np.array_equal(read.weight, static.weight) and replace(read, space="x").space == "x"
    with pytest.raises(UsageError, match="more than tensors, or is damaged"):
        load(tmp_path / "broken.pth")


def test_an_adapter_that_nobody_uses_frees_its_index(collection: Collection) -> None:
    view = collection.view
    static = linear_adapted_adapter(view.space.dim)
    held = ref(index_of(view, static))

    assert held() is not None and index_of(view, static) is held()
    del static
    gc.collect()
    assert held() is None
