"""k-means equals Lloyd's algorithm done plainly, whatever is spared, and a seed always gives the same clusters."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from eyespot.kernels import kmeans
from eyespot.kernels.kmeans import Clusters, KMeans, cluster, drawn_from_each, sample_rows
from eyespot.types import UsageError
from tests.examples import examples
from tests.wording import raises


def blobs(rows: int, dim: int = 8, centres: int = 12, seed: int = 0) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    middles = rng.standard_normal((centres, dim))
    return (middles[rng.integers(0, centres, rows)] + 0.5 * rng.standard_normal((rows, dim))).astype(np.float32)


def squared(vectors: NDArray[np.float32], centroids: NDArray[np.float32]) -> NDArray[np.float64]:
    """All squared distances, (rows, clusters)."""
    apart = vectors.astype(np.float64)[:, None] - centroids.astype(np.float64)
    return np.asarray(np.square(apart).sum(axis=2))


def plain_lloyd(vectors: NDArray[np.float32], clusters: int, iterations: int) -> NDArray[np.float64]:
    """Centroids by the textbook, from the same first ones."""
    centroids = vectors[sample_rows(len(vectors), clusters)].astype(np.float64)
    for _ in range(iterations):
        labels = squared(vectors, centroids).argmin(axis=1)
        centroids = np.stack([vectors[labels == one].astype(np.float64).mean(axis=0) for one in range(clusters)])
    return centroids


def same(first: Clusters, second: Clusters) -> bool:
    arrays = (np.array_equal(getattr(first, n), getattr(second, n)) for n in ("centroids", "labels", "distances"))
    return all(arrays) and first.history == second.history


@pytest.mark.parametrize("candidates", [0, 16])
def test_it_is_lloyds_algorithm(candidates: int) -> None:
    vectors = blobs(600)
    found = cluster(vectors, KMeans(40, iterations=9, candidates=candidates))
    assert np.allclose(found.centroids, plain_lloyd(vectors, 40, 9), atol=1e-5)


def test_four_points_by_hand() -> None:
    vectors = np.array([[0, 0], [0, 2], [10, 0], [10, 2]], np.float32)
    found = cluster(vectors, KMeans(2, seeding="++"))
    assert sorted(found.centroids.tolist()) == [[0, 1], [10, 1]]
    assert (found.inertia, found.distances.tolist()) == (4, [1, 1, 1, 1])


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(1, 60), st.integers(1, 9), st.integers(0, 20), st.integers(0, 8), st.sampled_from(["sampled", "++"]))
def test_inertia_falls_and_is_that_of_the_labels(rows: int, dim: int, iterations: int, keep: int, seeding: str) -> None:
    vectors = blobs(rows, dim, seed=rows)
    clusters = 1 + rows // 4
    found = cluster(vectors, KMeans(clusters, iterations, seed=dim, seeding=seeding, candidates=keep))
    distances = squared(vectors, found.centroids)
    assert found.distances == pytest.approx(distances[np.arange(rows), found.labels], abs=1e-4)
    assert found.inertia == pytest.approx(float(found.distances.sum()), abs=1e-3)
    falling = [*found.history, found.inertia]
    assert all(after <= before * (1 + 1e-6) for before, after in pairwise(falling))
    if keep == 0:
        assert found.distances == pytest.approx(distances.min(axis=1), abs=1e-4)


@pytest.mark.parametrize("offset", [0.0, 3000.0])
def test_vectors_far_from_the_origin_cluster_as_those_around_it(offset: float) -> None:
    vectors = np.round(blobs(400) * 64) / 64  # so that adding the offset rounds nothing off
    near, far = (cluster(one.astype(np.float32), KMeans(20)) for one in (vectors, vectors + offset))
    assert np.array_equal(near.labels, far.labels)
    assert far.inertia == pytest.approx(near.inertia, rel=1e-4)


def test_unit_centroids_are_of_unit_length_and_each_row_has_the_one_of_the_largest_cosine() -> None:
    vectors = blobs(500)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = cluster(vectors, KMeans(25, unit=True, candidates=0))
    cosines = vectors @ found.centroids.T
    assert np.linalg.norm(found.centroids, axis=1) == pytest.approx(np.ones(25), abs=1e-6)
    assert cosines[np.arange(500), found.labels] == pytest.approx(cosines.max(axis=1), abs=1e-6)


def test_a_seed_gives_the_same_bits_whatever_the_threads() -> None:
    vectors = blobs(900)
    once, again, threaded = (cluster(vectors, KMeans(60, threads=threads)) for threads in (1, 1, 3))
    assert same(once, again) and same(once, threaded)
    assert not same(once, cluster(vectors, KMeans(60, seed=1)))


def test_a_memory_mapped_file_of_half_precision_gives_what_its_values_give(tmp_path: Path) -> None:
    halves = blobs(700).astype(np.float16)
    np.save(tmp_path / "vectors.npy", halves)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    assert same(cluster(mapped, KMeans(30)), cluster(halves.astype(np.float32), KMeans(30)))


def test_centroids_learned_from_a_sample_label_all_rows() -> None:
    vectors = blobs(2000)
    found = cluster(vectors, KMeans(12, sample=400, iterations=5))
    some = sample_rows(2000, 400)
    assert np.allclose(found.centroids, cluster(vectors[some], KMeans(12, iterations=5)).centroids)
    assert found.labels.tolist() == squared(vectors, found.centroids).argmin(axis=1).tolist()
    assert len(found.history) == 5


def test_progress_counts_every_row_of_every_pass() -> None:
    events: list[tuple[str, int, int]] = []
    cluster(blobs(300), KMeans(10, iterations=2), lambda *one: events.append(one))
    assert events == [("clustering", 300 * done, 900) for done in (1, 2, 3)]


def test_a_cluster_that_loses_its_rows_is_given_a_far_one() -> None:
    vectors = np.zeros((40, 2), np.float32)
    vectors[30:] = [[100 + row, 0] for row in range(10)]
    found = cluster(vectors, KMeans(8, iterations=6, seed=0))
    assert found.reseeded > 0
    assert len(set(found.labels.tolist())) == 8


def test_fewer_distinct_rows_than_clusters_leave_clusters_empty() -> None:
    found = cluster(np.repeat(np.eye(3, dtype=np.float32), 10, axis=0), KMeans(7))
    assert found.inertia == 0
    assert len(set(found.labels.tolist())) == 3


def test_as_many_clusters_as_rows_leave_nothing_over() -> None:
    found = cluster(blobs(50), KMeans(50))
    assert found.inertia == 0 and sorted(found.labels.tolist()) == list(range(50))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("row", [0, 17])
def test_numbers_that_are_not_finite_are_refused(value: float, row: int) -> None:
    vectors = blobs(100)
    vectors[row, 3] = value
    with raises(UsageError):
        cluster(vectors, KMeans(20))


@pytest.mark.parametrize(
    "wrong", [{"clusters": 0}, {"clusters": 5, "sample": 4}, {"clusters": 5, "seeding": "best"}, {"clusters": 101}]
)
def test_what_cannot_be_done_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        cluster(blobs(100), KMeans(**wrong))  # type: ignore[arg-type]


@given(st.lists(st.integers(-1, 5), max_size=60), st.integers(0, 6), st.integers(0, 99))
def test_each_label_gives_what_is_asked_or_all_it_has(labels: list[int], count: int, seed: int) -> None:
    rows = drawn_from_each(np.array(labels, np.int32), count, seed)
    assert rows.tolist() == sorted(set(rows.tolist()))
    for label in set(labels):
        assert sum(labels[row] == label for row in rows) == min(count, labels.count(label))


def test_every_row_has_the_same_chance() -> None:
    labels = np.repeat([0, 1], 10)
    times = np.bincount(np.concatenate([drawn_from_each(labels, 3, seed) for seed in range(2000)]), minlength=20)
    # 600 expected of each, standard deviation 20.5
    assert abs(times - 600).max() < 5 * 20.5


def test_a_draw_is_the_same_in_every_release() -> None:
    assert sample_rows(1000, 5, seed=7).tolist() == sample_rows(1000, 5, seed=7).tolist()
    # the first outputs of splitmix64 from the state 1234567, as published with it
    assert [int(lot) for lot in kmeans._lots(3, 1234567)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]
