"""An answer's recall, estimated from its own scores, against the share that it holds of drawn scores."""

from __future__ import annotations

import numpy as np
import pytest

from eyespot.indexes._approximate import estimate_recall


def drawn(noise: float, named: int, k: int, seed: int) -> tuple[float, float]:
    """The estimate and the true share: 50,000 scores, and rough ones that err by a normal deviate."""
    rng = np.random.default_rng(seed)
    exact = rng.standard_normal(50_000)
    rough = 2 * (exact + noise * rng.standard_normal(50_000)) + 7  # in another unit, as some rough scores are
    first = np.argsort(-rough)[:named]
    last = float(np.sort(exact[first])[-k])
    true = float((exact[first] >= np.sort(exact)[-k]).sum() / k)
    return estimate_recall(rough[first], exact[first], last, k, 50_000), true


@pytest.mark.parametrize(("noise", "named", "k"), [(0.05, 100, 10), (0.1, 400, 50), (0.2, 1600, 10), (0.3, 1600, 50)])
def test_what_is_missed_is_estimated_without_being_seen(noise: float, named: int, k: int) -> None:
    estimates, true = np.array([drawn(noise, named, k, seed) for seed in range(20)]).T

    assert true.mean() > 0.8
    assert estimates.mean() - true.mean() < 0.02
    assert true.mean() - estimates.mean() < 0.08


def test_an_answer_that_holds_little_is_not_called_good() -> None:
    estimates, true = np.array([drawn(2.0, 200, 50, seed) for seed in range(20)]).T

    assert true.mean() < 0.3 and estimates.mean() < true.mean() + 0.05


def test_where_all_rows_were_named_or_rough_scores_have_no_error_nothing_is_missed() -> None:
    scores, many = np.arange(30.0), np.linspace(0, 1, 200)

    assert estimate_recall(scores, scores, 20.0, 10, 30) == 1.0
    assert estimate_recall(many, many, 0.9, 20, 10_000) > 0.999


@pytest.mark.parametrize(
    ("rough", "exact"),
    [
        (np.ones(30), np.arange(30.0)),  # the rough scores say nothing
        (np.arange(30.0), -np.arange(30.0)),  # or the contrary
        (np.r_[np.zeros(20), np.ones(10)], np.arange(30.0)),  # or not how many rows lie below the cut
        (np.arange(5.0), np.arange(5.0)),  # too few to see how far they are off
    ],
)
def test_where_nothing_can_be_concluded_nothing_is_stated(rough: np.ndarray, exact: np.ndarray) -> None:
    assert estimate_recall(rough, exact, float(np.sort(exact)[-3]), 3, 1000) == 0.0
