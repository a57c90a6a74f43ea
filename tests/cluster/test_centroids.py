"""k-means by workers is that of one process, bit for bit, whatever their number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")

from eyespot.cluster.centroids import Assigner, Clustering
from eyespot.cluster.starting import Cluster
from eyespot.kernels.kmeans import Clusters, KMeans, cluster
from eyespot.types import UsageError
from tests.cluster.conftest import killing, mapped, unit

ROWS, DIM = 2500, 16
HOW: dict[str, Any] = {"clusters": 40, "iterations": 6, "candidates": 4, "at_once": 512 * DIM}  # five pieces


def assert_same(found: Clusters, expected: Clusters) -> None:
    assert found.labels.tolist() == expected.labels.tolist()
    assert found.centroids.tobytes() == expected.centroids.tobytes()
    assert found.distances.tobytes() == expected.distances.tobytes()
    assert found[3:] == expected[3:]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_clusters_are_those_of_one_process(tmp_path: Path, workers: int) -> None:
    vectors, how = mapped(tmp_path / "v.npy", unit(ROWS, DIM)), KMeans(**HOW, unit=True)
    assert_same(Clustering(Cluster(workers))(vectors, how), cluster(vectors, how))


def test_so_are_those_that_are_learned_from_a_sample(tmp_path: Path) -> None:
    vectors, how = mapped(tmp_path / "v.npy", unit(ROWS, DIM).astype(np.float16)), KMeans(**HOW, sample=1100)
    assert_same(Clustering(Cluster(2))(vectors, how), cluster(vectors, how))


def test_so_are_those_of_rows_far_from_the_origin_that_lie_in_no_file() -> None:
    vectors, how = unit(ROWS, DIM) + np.float32(50), KMeans(**HOW)
    assert_same(Clustering(Cluster(2))(vectors, how), cluster(vectors, how))


def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    vectors, how = mapped(tmp_path / "v.npy", unit(ROWS, DIM)), KMeans(**HOW)
    hit, expected = 0, cluster(vectors, how)
    while not hit:
        with killing(Assigner, 1, 0.05) as dead:
            assert_same(Clustering(Cluster(2))(vectors, how), expected)
        hit = len(dead)


def test_numbers_that_are_not_finite_are_refused_as_ever() -> None:
    vectors = unit(ROWS, DIM)
    vectors[700, 3] = np.nan
    with pytest.raises(UsageError, match="NaN or infinity"):
        Clustering(Cluster(2))(vectors, KMeans(**HOW))
