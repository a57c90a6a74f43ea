"""dis(t) is the entropy that ReCoS defines, its band is the paper's, and raw cosines say nothing at temperature 1."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.curate.recos.captions import (
    FINE,
    OVER_DETAILED,
    UNDER_DETAILED,
    Discriminability,
    entropies,
    histogram,
)
from eyespot.types import UsageError
from tests.wording import raises

cosines = st.lists(st.floats(-1, 1), min_size=2, max_size=12)
temperatures = st.floats(1e-3, 10)


def test_by_hand() -> None:
    # cosines ln 3 and 0 at temperature 1: shares 3/4 and 1/4; equal ones: log 2
    by_hand = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert entropies(np.array([[math.log(3), 0.0], [0.2, 0.2]]), 1.0) == pytest.approx([by_hand, math.log(2)])


@given(cosines, temperatures)
def test_it_is_the_entropy_of_the_softmax(row: list[float], temperature: float) -> None:
    top = max(row)
    weights = [math.exp((one - top) / temperature) for one in row]
    shares = [weight / sum(weights) for weight in weights]
    expected = -sum(share * math.log(share) for share in shares if share > 0)
    assert entropies(np.array([row]), temperature)[0] == pytest.approx(expected, abs=1e-9)


@given(cosines, temperatures)
def test_cosines_that_lie_close_together_leave_it_near_log_k(row: list[float], temperature: float) -> None:
    (value,) = entropies(np.array([row]), temperature)
    spread = (max(row) - min(row)) / temperature
    assert math.log(len(row)) - spread**2 / 8 - 1e-9 <= value <= math.log(len(row)) + 1e-9


def test_at_temperature_1_no_caption_passes_the_band_and_at_a_lower_one_they_part() -> None:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((300, 64)).astype(np.float32)
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    nearest = np.sort(images @ images.T, axis=1)[:, -11:-1]  # an image's own caption is left out
    raw, sharp = (entropies(nearest, temperature) for temperature in (1.0, 0.03))

    criterion = Discriminability(10, eta=0.9)
    assert {criterion.verdict(value) for value in raw} == {UNDER_DETAILED}
    assert {criterion.verdict(value) for value in sharp} >= {FINE, UNDER_DETAILED}


def test_the_band_is_the_papers_and_holds_its_ends() -> None:
    how = Discriminability(k=4, eta=0.5)
    low, high = how.band
    assert (low, high) == pytest.approx((math.log(4) / 4, 3 * math.log(4) / 4))
    verdicts = [how.verdict(value) for value in (0.0, low, 0.7, high, math.log(4))]
    assert verdicts == [OVER_DETAILED, FINE, FINE, FINE, UNDER_DETAILED]


@given(st.lists(st.floats(0, math.log(10)), max_size=50))
def test_the_histogram_loses_no_caption(values: list[float]) -> None:
    rows = histogram(values, values[:3], Discriminability(k=10)).rows
    assert [sum(row[at] for row in rows) for at in (1, 2)] == [len(values), len(values[:3])]


def test_what_cannot_be_compared_is_refused() -> None:
    with raises(UsageError):
        entropies(np.array([[0.5, np.nan]]), 1.0)
    for wrong in ({"k": 1}, {"temperature": 0.0}, {"eta": 0.0}, {"eta": 1.5}):
        with pytest.raises(UsageError):
            Discriminability(**wrong)
