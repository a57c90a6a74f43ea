"""k-means equals Lloyd's algorithm done plainly, with faiss and without, and a seed always gives the same clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from eyespot.kernels import kmeans
from eyespot.kernels.kmeans import Clusters, KMeans, cluster, drawn_from_each, sample_rows
from eyespot.types import UsageError
from tests.wording import raises
from tests.worlds.vectors import clustered


@pytest.fixture(params=["faiss", "numpy"], autouse=True)
def nearest_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """By whom the nearest centroids are found."""
    if request.param == "faiss":
        pytest.importorskip("faiss")
    else:
        monkeypatch.setattr(kmeans, "find_spec", lambda _: None)
    yield


def plain_lloyd(vectors: NDArray[np.float32], clusters: int, iterations: int) -> NDArray[np.float64]:
    """Centroids by the textbook, from the same first ones."""
    centroids = vectors[sample_rows(len(vectors), clusters)].astype(np.float64)
    for _ in range(iterations):
        labels = (vectors @ centroids.T).argmax(axis=1)
        centroids = np.stack([vectors[labels == one].astype(np.float64).sum(axis=0) for one in range(clusters)])
        centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    return centroids


def same(first: Clusters, second: Clusters) -> bool:
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in vars(first))


def test_it_is_lloyds_algorithm_on_the_sphere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kmeans, "_AT_ONCE", 1000)  # several blocks
    vectors = clustered(600, 8, 12)
    found = cluster(vectors, KMeans(40, iterations=9))
    assert np.allclose(found.centroids, plain_lloyd(vectors, 40, 9), atol=1e-5)
    cosines = vectors @ found.centroids.T
    assert cosines[np.arange(600), found.labels] == pytest.approx(cosines.max(axis=1), abs=1e-6)
    assert found.distances == pytest.approx(2 - 2 * cosines.max(axis=1), abs=1e-5)
    assert found.inertia == pytest.approx(float(found.distances.sum()), rel=1e-6)


def test_a_seed_gives_the_same_bits_again_and_from_a_mapped_file_of_half_precision(tmp_path: Path) -> None:
    halves = clustered(700, 8, 12).astype(np.float16)
    np.save(tmp_path / "vectors.npy", halves)
    once, again = (cluster(halves.astype(np.float32), KMeans(60)) for _ in range(2))
    assert same(once, again)
    assert same(once, cluster(np.load(tmp_path / "vectors.npy", mmap_mode="r"), KMeans(60)))
    assert not same(once, cluster(halves, KMeans(60, seed=1)))


def test_centroids_learned_from_a_sample_label_all_rows() -> None:
    vectors, events = clustered(2000, 8, 12), list[tuple[str, int, int]]()
    found = cluster(vectors, KMeans(12, sample=400, iterations=5), lambda *one: events.append(one))
    some = sample_rows(2000, 400)
    assert np.allclose(found.centroids, cluster(vectors[some], KMeans(12, iterations=5)).centroids)
    assert found.labels.tolist() == (vectors @ found.centroids.T).argmax(axis=1).tolist()
    assert events == [("clustering", done, 4400) for done in (400, 800, 1200, 1600, 2000, 2400, 4400)]


@pytest.mark.parametrize(("distinct", "clusters"), [(3, 7), (50, 50)])
def test_copies_leave_clusters_empty_and_as_many_clusters_as_rows_nothing_over(distinct: int, clusters: int) -> None:
    found = cluster(np.repeat(np.eye(distinct, dtype=np.float32), 10 if distinct == 3 else 1, axis=0), KMeans(clusters))
    assert found.inertia == 0
    assert len(set(found.labels.tolist())) == distinct


def test_a_cluster_that_loses_its_rows_begins_again_at_a_far_one() -> None:
    angles = np.concatenate([np.zeros(30), np.linspace(1, 2, 10)])
    found = cluster(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32), KMeans(8, iterations=8))
    assert len(set(found.labels.tolist())) == 8


@pytest.mark.parametrize(
    ("row", "value", "how"),
    [
        *((row, value, {}) for row in (0, 17) for value in (np.nan, np.inf)),
        *((0, 1.0, wrong) for wrong in ({"clusters": 0}, {"clusters": 5, "sample": 4}, {"clusters": 101})),
    ],
)
def test_what_cannot_be_clustered_is_refused(row: int, value: float, how: dict[str, int]) -> None:
    vectors = clustered(100, 8, 12)
    vectors[row, 3] = value
    with raises(UsageError):
        cluster(vectors, KMeans(**{"clusters": 20, **how}))


@given(st.lists(st.integers(-1, 5), max_size=60), st.integers(0, 6), st.integers(0, 99))
def test_each_label_gives_what_is_asked_or_all_it_has(labels: list[int], count: int, seed: int) -> None:
    rows = drawn_from_each(np.array(labels, np.int32), count, seed)
    assert rows.tolist() == sorted(set(rows.tolist()))
    for label in set(labels):
        assert sum(labels[row] == label for row in rows) == min(count, labels.count(label))


def test_a_draw_is_the_same_in_every_release() -> None:
    assert sample_rows(1000, 5, seed=7).tolist() == sample_rows(1000, 5, seed=7).tolist()
    # the first outputs of splitmix64 from the state 1234567, as published with it
    assert [int(lot) for lot in kmeans._lots(3, 1234567)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]
