"""Kernels with numba and without: both are run here, and give the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.kernels import assigning, assigning_numpy, gaussian, gaussian_numpy, scans, scans_numpy
from eyespot.kernels.codes import Codes, padded, quantise
from tests.examples import examples

SEEDS = st.integers(0, 2**32 - 1)
RUNS = settings(max_examples=examples(60), deadline=None)


# -- vectors ----------------------------------------------------------------------------------------------------


@RUNS
@given(SEEDS, st.integers(1, 30), st.integers(1, 130), st.sampled_from([1.0, 1e-30, 1e30, 0.0]))
def test_codes_are_the_same_and_their_bounds_proven(seed: int, rows: int, dim: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    vectors = (size * rng.standard_normal((rows, dim))).astype(np.float32)
    made = quantise(vectors)
    codes, bounds = np.zeros((rows, padded(dim)), np.int8), np.empty((rows, 4), np.float32)

    scans_numpy.code_rows(vectors, made.centre, codes, bounds)
    plain = Codes(codes, bounds, made.lengths, made.centre, made.match)

    assert np.array_equal(codes, made.codes) and plain.proven(vectors)
    np.testing.assert_allclose(bounds, made.bounds, rtol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_gelu_is_the_same_to_the_last_bit(kind: type) -> None:
    values = np.random.default_rng(0).standard_normal(20_000).astype(kind) * 4

    assert gaussian.gelu(values).tobytes() == gaussian_numpy.gelu(values).tobytes()
    assert gaussian_numpy.gelu(values).dtype == kind


@RUNS
@given(SEEDS, st.integers(1, 40), st.integers(1, 70), st.integers(1, 9))
def test_the_best_centroids_are_kept_alike(seed: int, rows: int, clusters: int, keep: int) -> None:
    """Scores with many equal ones: which are kept is the same wherever a score is no tie with the worst of them."""
    rng = np.random.default_rng(seed)
    dots = rng.integers(0, 9, (rows, clusters)).astype(np.float32)
    halves, bests = np.zeros(clusters, np.float32), []
    for kernels in (assigning, assigning_numpy):
        scores, ids = np.full((rows, keep), -np.inf, np.float32), np.full((rows, keep), -1, np.int32)
        for start in range(0, clusters, 16):
            part = np.ascontiguousarray(dots[:, start : start + 16])
            kernels.keep_best(part, halves[start : start + 16], scores, ids, (0, rows, start))
        real = np.where(ids >= 0, dots[np.arange(rows)[:, None], ids], -np.inf)
        assert np.array_equal(real, scores)
        assert all(len(set(row[row >= 0])) == (row >= 0).sum() == min(keep, clusters) for row in ids)
        bests.append(np.sort(scores, axis=1))

    assert np.array_equal(*bests)


@RUNS
@given(SEEDS, st.integers(1, 60), st.integers(1, 20), st.integers(1, 40), st.integers(1, 3))
def test_sums_of_rows_are_the_same_to_the_last_bit(seed: int, rows: int, clusters: int, dim: int, threads: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, labels = rng.standard_normal((rows, dim)).astype(np.float32), rng.integers(0, clusters, rows)
    sums = [(np.ones((clusters, dim)) / 3, np.zeros(clusters, np.int64)) for _ in range(2)]

    for kernels, (totals, counts) in zip((assigning, assigning_numpy), sums, strict=True):
        for share in range(threads):
            kernels.add_up(vectors, labels.astype(np.int32), (totals, counts), (share, threads))

    assert sums[0][0].tobytes() == sums[1][0].tobytes()
    assert sums[0][1].tolist() == sums[1][1].tolist() == np.bincount(labels, minlength=clusters).tolist()


@RUNS
@given(SEEDS, st.integers(1, 60), st.integers(1, 30))
def test_rows_go_to_the_same_centroid_at_the_same_distance(seed: int, rows: int, dim: int) -> None:
    rng, clusters = np.random.default_rng(seed), 24
    vectors, points = (rng.integers(-9, 9, (n, dim)).astype(np.float32) for n in (rows, clusters))  # exact sums
    halves = np.square(points).sum(axis=1) / 2
    candidates = rng.integers(0, clusters, (rows, 6)).astype(np.int32)
    start = rng.integers(0, clusters, rows).astype(np.int32)
    ends = []
    for kernels in (assigning, assigning_numpy):
        labels, best, away = start.copy(), np.empty(rows, np.float32), np.empty(rows, np.float32)
        for span in ((0, rows // 2), (rows // 2, rows)):
            kernels.move_to_nearest(vectors, candidates, (points, halves), (labels, best), span)
            kernels.measure(vectors, labels, points, away, span)
        ends.append((labels.tolist(), best.tolist(), away.tolist()))

    assert ends[0] == ends[1]


def test_the_twins_have_what_is_asked_of_them() -> None:
    """A kernel that only one of a pair has would be missed where numba is missing."""
    wanted = {
        scans: ["code_rows"],
        gaussian: ["gelu"],
        assigning: ["keep_best", "move_to_nearest", "measure", "add_up"],
    }
    twins = {scans: scans_numpy, gaussian: gaussian_numpy, assigning: assigning_numpy}
    for module, names in wanted.items():
        assert [name for name in names if not (hasattr(module, name) and hasattr(twins[module], name))] == []
