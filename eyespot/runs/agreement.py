"""How far people, or judges, agree beyond chance: Cohen's kappa of two, Krippendorff's alpha, with intervals.

1 is full agreement, 0 what chance would give, below 0 is less than that. Alpha is for any number of raters, with gaps.
Neither is known (NaN) where all ratings are of one category.

An abstention is a rating like any other, so that agreeing to abstain is agreeing; `Ratings.without` leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.types import UsageError

Reals = NDArray[np.float64]
Rating = tuple[str, str, Any]  # item, rater, value; None is a gap
SAMPLES = 2000  # of the bootstrap
NAN = float("nan")
_AT_ONCE = 1 << 22  # numbers
_MIDDLE = 2.5, 97.5  # percentiles


@dataclass(frozen=True, eq=False)
class Ratings:
    """Who gave what: `codes` (items, raters) are places in `values`, -1 for a gap; `values` are in their order."""

    items: list[str]
    raters: list[str]
    values: list[Any]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Iterable[Rating]) -> Ratings:
        """From (item, rater, value) in any order; `UsageError` if a rater gave an item two values."""
        given = [row for row in rows if row[2] is not None]
        items, raters = (list(dict.fromkeys(row[place] for row in given)) for place in (0, 1))
        # Numbers by size, then all others by their text
        values = sorted(
            {row[2] for row in given},
            key=lambda one: (0, one, "") if isinstance(one, int | float) else (1, 0, str(one)),
        )
        codes = np.full((len(items), len(raters)), -1, np.int64)
        of_item, of_rater, of_value = ({one: at for at, one in enumerate(each)} for each in (items, raters, values))
        for item, rater, value in given:
            place = of_item[item], of_rater[rater]
            if codes[place] not in (-1, of_value[value]):
                raise UsageError(f"{rater!r} gave {item!r} two values; keep one of the two")
            codes[place] = of_value[value]
        return cls(items, raters, values, codes)

    def without(self, value: Any) -> Ratings:
        """The same with gaps where this value stood, such as an abstention."""
        values = [one for one in self.values if one != value]
        at = {one: place for place, one in enumerate(values)}
        places = np.array([*(at.get(one, -1) for one in self.values), -1], np.int64)  # the last for gaps
        return Ratings(self.items, self.raters, values, places[self.codes])

    @property
    def counts(self) -> Reals:
        """How often each item was given each value, (items, values)."""
        return np.asarray((self.codes[:, :, None] == np.arange(len(self.values))).sum(axis=1), np.float64)


@dataclass(frozen=True, slots=True)
class Agreement:
    """A coefficient and its 95% bootstrap interval over items; NaN where it is not defined.

    `observed` and `expected` are the share of agreeing pairs and what chance would give. `items` and `ratings` are
    those that counted: an item with one rating says nothing of agreement.
    """

    value: float
    low: float
    high: float
    observed: float
    expected: float
    items: int
    ratings: int


def cohen_kappa(ratings: Ratings) -> Agreement:
    """Agreement of two raters on the items that both rated (Cohen 1960); `UsageError` for more or fewer raters."""
    if len(ratings.raters) != 2:
        raise UsageError(f"Cohen's kappa is for two raters, and there are {len(ratings.raters)}; take alpha for others")
    both = ratings.codes[(ratings.codes >= 0).all(axis=1)]  # (items, 2)
    values = np.arange(len(ratings.values))
    table = (both[:, :1, None] == values[:, None]) & (both[:, 1:, None] == values)  # (items, values, values)
    return _with_interval(table.astype(np.float64), _kappa, both.size)


def krippendorff_alpha(ratings: Ratings) -> Agreement:
    """Agreement of any raters with any gaps, on categories (Krippendorff 2011, Alpha-Reliability)."""
    counts = ratings.counts
    counts = counts[counts.sum(axis=1) >= 2]
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])
    coincidences = pairs / np.maximum(counts.sum(axis=1) - 1, 1)[:, None, None]  # (items, values, values)
    return _with_interval(coincidences, _alpha, int(counts.sum()))


# -- coefficients of summed tables (..., values, values) --------------------------------------------------------


def _kappa(table: Reals) -> Reals:
    share = table / table.sum(axis=(-1, -2), keepdims=True)
    return _beyond_chance(np.trace(share, axis1=-2, axis2=-1), (share.sum(axis=-1) * share.sum(axis=-2)).sum(axis=-1))


def _alpha(coincidences: Reals) -> Reals:
    marginals = coincidences.sum(axis=-1)  # (..., values)
    total = marginals.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = np.trace(coincidences, axis1=-2, axis2=-1) / total
        expected = (marginals * (marginals - 1)).sum(axis=-1) / (total * (total - 1))
    return _beyond_chance(observed, expected)


def _beyond_chance(observed: Reals, expected: Reals) -> Reals:
    """The coefficient, and the two shares that it is made of, (..., 3)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(expected < 1 - 1e-12, (observed - expected) / (1 - expected), np.nan)
    return np.stack([value, observed, expected], axis=-1)


# -- tables and intervals -----------------------------------------------------------------------------------------


def _with_interval(tables: Reals, coefficient: Callable[[Reals], Reals], ratings: int) -> Agreement:
    """The coefficient of all items, and the interval of those drawn with replacement."""
    if not len(tables):
        return Agreement(NAN, NAN, NAN, NAN, NAN, 0, 0)
    value, observed, expected = coefficient(tables.sum(axis=0)).tolist()
    rng, drawn = np.random.default_rng(0), []
    flat = tables.reshape(len(tables), -1)
    step = max(1, _AT_ONCE // max(flat.shape))
    for start in range(0, SAMPLES, step):
        size = min(step, SAMPLES - start)
        chosen = rng.integers(0, len(tables), (size, len(tables))) + len(tables) * np.arange(size)[:, None]
        times = np.bincount(chosen.ravel(), minlength=size * len(tables)).reshape(size, -1)  # how often each was drawn
        drawn.append(coefficient((times @ flat).reshape(size, *tables.shape[1:]))[:, 0])
    known = np.concatenate(drawn)
    known = known[~np.isnan(known)]
    low, high = np.percentile(known, _MIDDLE).tolist() if len(known) else [NAN, NAN]
    return Agreement(value, low, high, observed, expected, len(tables), ratings)
