"""k-means by workers is that of one process, bit for bit, whatever their number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")

from eyespot.cluster.centroids import Clustering
from eyespot.cluster.starting import Cluster
from eyespot.kernels.kmeans import Clusters, KMeans, cluster
from tests.cluster.conftest import mapped, unit

ROWS, DIM = 2500, 16
HOW: dict[str, Any] = {"clusters": 40, "iterations": 6, "candidates": 4, "at_once": 512 * DIM}  # five pieces


def assert_same(found: Clusters, expected: Clusters) -> None:
    assert found.labels.tolist() == expected.labels.tolist()
    assert found.centroids.tobytes() == expected.centroids.tobytes()
    assert found.distances.tobytes() == expected.distances.tobytes()
    assert found[3:] == expected[3:]


@pytest.mark.parametrize(
    ("workers", "how", "kind", "in_file"),
    [(3, {"unit": True}, np.float32, True), (2, {"sample": 1100}, np.float16, True), (2, {}, np.float32, False)],
)
def test_the_clusters_are_those_of_one_process(
    workers: int, how: dict[str, Any], kind: type, in_file: bool, tmp_path: Path
) -> None:
    vectors = unit(ROWS, DIM).astype(kind)
    if in_file:
        vectors = mapped(tmp_path / "v.npy", vectors)
    else:
        vectors += np.float32(50)  # rows far from the origin
    settings = KMeans(**HOW, **how)
    assert_same(Clustering(Cluster(workers))(vectors, settings), cluster(vectors, settings))
