"""Kernels with numba and without: both are run here, and give the same."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.kernels import assigning, assigning_numpy, gaussian, gaussian_numpy, scans, scans_numpy
from eyespot.kernels.codes import Codes, padded, quantise
from eyespot.metrics import _kernels, _kernels_numpy
from tests.examples import examples

SEEDS = st.integers(0, 2**32 - 1)
RUNS = settings(max_examples=examples(60), deadline=None)


class Rankings(NamedTuple):
    """Rankings of some queries, few of them empty, with grades, equal scores, and more relevant images than found."""

    offsets: np.ndarray  # (q + 1,)
    grades: np.ndarray  # (hits,)
    scores: np.ndarray  # (hits,)
    ideal_offsets: np.ndarray  # (q + 1,)
    ideal: np.ndarray  # (relevant,)

    @classmethod
    def drawn(cls, seed: int, queries: int, distinct: int) -> Rankings:
        rng = np.random.default_rng(seed)
        offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 40, queries))])
        grades = rng.choice([-1, 0, 1, 2, 5, 31], offsets[-1], p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05]).astype(np.int32)
        pieces = [-np.sort(-rng.integers(0, distinct, n)) for n in np.diff(offsets)]
        best = [-np.sort(-np.append(part[part > 0], rng.integers(1, 4, rng.integers(0, 4))))
                for part in np.split(grades, offsets[1:-1])]  # fmt: skip
        ideal_offsets = np.concatenate([[0], np.cumsum([len(part) for part in best])])
        ideal = np.concatenate([*best, []]).astype(np.int32)
        return cls(offsets, grades, np.concatenate([*pieces, []]).astype(float), ideal_offsets, ideal)

    def found(self, kernels: ModuleType) -> tuple[np.ndarray, ...]:
        sizes = (len(self.offsets), *[len(self.ideal)] * 4)
        kinds = (np.int64, np.int64, np.int32, np.int64, np.int64)
        made = [np.zeros(size, kind) for size, kind in zip(sizes, kinds, strict=True)]
        assert kernels.find((self.offsets, self.grades, self.scores), np.diff(self.ideal_offsets), tuple(made)) == -1
        offsets, *columns = made
        return (offsets, *(column[: offsets[-1]] for column in columns))


RANKINGS = st.builds(Rankings.drawn, SEEDS, st.integers(1, 12), st.sampled_from([1, 3, 20, 10**6]))
BOTH = (_kernels, _kernels_numpy)
SUMS = ("hits_within", "precision_sum", "precision_sum_of_groups", "first_reciprocal", "expected_first_reciprocal")
GAINS = ("discounted_gain", "discounted_gain_of_groups")


def both(name: str, count: int, *given: Any) -> list[bytes]:
    """What a kernel of each module makes of the same, to the bit."""
    outs = [np.full(count, np.nan) for _ in BOTH]
    for kernels, out in zip(BOTH, outs, strict=True):
        getattr(kernels, name)(*given, out)
    assert np.isfinite(outs[0]).all()
    return [out.tobytes() for out in outs]


@RUNS
@given(RANKINGS)
def test_relevant_hits_are_found_alike(rankings: Rankings) -> None:
    compiled, plain = (rankings.found(kernels) for kernels in BOTH)

    assert [column.tolist() for column in compiled] == [column.tolist() for column in plain]


@RUNS
@given(RANKINGS, st.sampled_from([1, 2, 10, 1 << 40]))
def test_every_sum_of_a_measure_is_the_same_to_the_last_bit(rankings: Rankings, depth: int) -> None:
    found, count = rankings.found(_kernels), len(rankings.offsets) - 1
    cut = np.full(count, depth, np.int64)

    for name in SUMS:
        for rel in (1, 2):
            compiled, plain = both(name, count, found, cut, rel)
            assert compiled == plain, name
    for kind in (_kernels.LINEAR, _kernels.EXPONENTIAL, _kernels.BINARY):
        for name in GAINS:
            compiled, plain = both(name, count, found, cut, kind)
            assert compiled == plain, name
        compiled, plain = both("ideal_gain", count, (rankings.ideal_offsets, rankings.ideal), cut, kind)
        assert compiled == plain
    compiled, plain = both("judged_share", count, rankings.offsets, rankings.grades, depth)
    assert compiled == plain


def test_long_rankings_are_summed_alike_as_well() -> None:
    """Thousands of terms, where another order of summation, or another logarithm, shows."""
    rng = np.random.default_rng(0)
    offsets = np.array([0, 40_000, 90_000])
    grades = rng.integers(0, 4, 90_000).astype(np.int32)
    scores = np.repeat(-np.arange(45_000.0), 2)
    best = [-np.sort(-part[part > 0]) for part in np.split(grades, offsets[1:-1])]
    rankings = Rankings(offsets, grades, scores, np.cumsum([0, *map(len, best)]), np.concatenate(best))
    found, cut = rankings.found(_kernels), np.full(2, 1 << 40, np.int64)

    for name in (*SUMS, *GAINS):
        compiled, plain = both(name, 2, found, cut, 1)
        assert compiled == plain, name


def test_a_ranking_with_too_many_relevant_hits_is_named_by_both() -> None:
    rankings = np.array([0, 2, 4]), np.array([1, 0, 1, 1], np.int32), np.array([2.0, 1.0, 2.0, 1.0])
    for kernels in BOTH:
        made = tuple(np.zeros(9, kind) for kind in (np.int64, np.int64, np.int32, np.int64, np.int64))
        assert kernels.find(rankings, np.array([1, 1]), (made[0][:3], *made[1:])) == 1


@RUNS
@given(SEEDS, st.integers(1, 8))
def test_rankings_are_joined_with_grades_alike(seed: int, queries: int) -> None:
    rng, images = np.random.default_rng(seed), 90
    ranked = [rng.permutation(images)[: rng.integers(0, 30)] for _ in range(queries)]
    judged = [rng.permutation(images)[: rng.integers(0, 30)] for _ in range(queries)]
    stops, ends = (np.cumsum([len(part) for part in parts]) for parts in (ranked, judged))
    codes, theirs = (np.concatenate([*parts, []]).astype(np.int32) for parts in (ranked, judged))
    grades = rng.integers(-1, 3, len(theirs)).astype(np.int32)
    order = rng.permutation(queries)
    run = (stops - [len(part) for part in ranked])[order], stops[order], codes
    qrels = (ends - [len(part) for part in judged])[order], ends[order], theirs, grades
    outs = [np.full(len(codes), 9, np.int32) for _ in BOTH]

    for kernels, out in zip(BOTH, outs, strict=True):
        kernels.join(run, qrels, images, out)

    assert outs[0].tolist() == outs[1].tolist()


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
        _kernels: ["join", "find", "judged_share", "ideal_gain", *SUMS, *GAINS, "LINEAR", "EXPONENTIAL", "BINARY"],
    }
    twins = {scans: scans_numpy, gaussian: gaussian_numpy, assigning: assigning_numpy, _kernels: _kernels_numpy}
    for module, names in wanted.items():
        assert [name for name in names if not (hasattr(module, name) and hasattr(twins[module], name))] == []
