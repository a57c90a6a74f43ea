"""How far people, or judges, agree beyond chance: Cohen's and Fleiss's kappa, Krippendorff's alpha, with intervals.

1 is full agreement, 0 what chance would give, below 0 is less than that. Cohen's kappa is for two raters; Fleiss's for
any number, each item rated equally often; alpha for any number with gaps, and for grades as well as for categories.
Values of all three are close where all three apply; none can be told (NaN) where all ratings are of one category.

An abstention is a rating like any other, so that agreeing to abstain is agreeing; `Ratings.without` leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.types import UsageError

Reals = NDArray[np.float64]
Rating = tuple[str, str, Any]  # item, rater, value; None is a gap
LEVELS = ("nominal", "ordinal", "interval")
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


class Agreement(NamedTuple):
    """A coefficient and its 95% bootstrap interval over items; NaN where it is not defined.

    `observed` and `expected` are the share of agreeing pairs and what chance would give; for alpha of grades they are
    one less the mean distances, in units of the expected one, so that expected is 0. `items` and `ratings` are those
    that counted: an item with one rating says nothing of agreement.
    """

    value: float
    low: float
    high: float
    observed: float
    expected: float
    items: int
    ratings: int


def cohen_kappa(ratings: Ratings, *, samples: int = 2000, seed: int = 0) -> Agreement:
    """Agreement of two raters on the items that both rated (Cohen 1960); `UsageError` for more or fewer raters."""
    if len(ratings.raters) != 2:
        raise UsageError(f"Cohen's kappa is for two raters, and there are {len(ratings.raters)}; take alpha for others")
    both = ratings.codes[(ratings.codes >= 0).all(axis=1)]  # (items, 2)
    values = np.arange(len(ratings.values))
    table = (both[:, :1, None] == values[:, None]) & (both[:, 1:, None] == values)  # (items, values, values)

    def chance(share: Reals) -> Reals:
        return np.asarray((share.sum(axis=-1) * share.sum(axis=-2)).sum(axis=-1))

    return _with_interval(table.astype(np.float64), _kappa(chance), both.size, samples, seed)


def fleiss_kappa(ratings: Ratings, *, samples: int = 2000, seed: int = 0) -> Agreement:
    """Agreement of several raters, each item rated equally often, by whomever (Fleiss 1971).

    `UsageError` if items were rated a different number of times, or once: then alpha is the one to take.
    """
    counts = ratings.counts
    times = counts.sum(axis=1)
    if len(times) and (times.min() != times.max() or times[0] < 2):
        span = f"from {times.min():.0f} to {times.max():.0f} times"
        raise UsageError(
            f"Fleiss's kappa needs every item rated equally often, 2 times or more, not {span}; take alpha"
        )

    def chance(share: Reals) -> Reals:
        return np.asarray(np.square(share.sum(axis=-1)).sum(axis=-1))

    return _with_interval(_pairs(counts) / times[:1, None, None], _kappa(chance), int(times.sum()), samples, seed)


def krippendorff_alpha(ratings: Ratings, level: str = "nominal", *, samples: int = 2000, seed: int = 0) -> Agreement:
    """Agreement of any raters with any gaps (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability).

    `level` is one of `LEVELS`: categories are the same or not (nominal); grades are as far apart as there are ratings
    between them (ordinal), or by their squared difference (interval). `UsageError` for grades that are not numbers.
    """
    if level not in LEVELS:
        raise UsageError(f"the level is one of {', '.join(LEVELS)}, not {level!r}")
    counts = ratings.counts
    counts = counts[counts.sum(axis=1) >= 2]
    if level == "nominal":
        grades = np.arange(len(ratings.values), dtype=np.float64)
    else:
        strange = next((one for one in ratings.values if not isinstance(one, int | float)), None)
        if strange is not None:
            raise UsageError(f"{strange!r} has no place among {level} grades; leave it out, or take the level nominal")
        grades = np.array(ratings.values, np.float64)
    coincidences = _pairs(counts) / np.maximum(counts.sum(axis=1) - 1, 1)[:, None, None]
    alpha = partial(_alpha, grades=grades, level=level)
    return _with_interval(coincidences, alpha, int(counts.sum()), samples, seed)


# -- coefficients of summed tables (..., values, values) --------------------------------------------------------


def _kappa(chance: Callable[[Reals], Reals]) -> Callable[[Reals], Reals]:
    """The coefficient of tables, by what chance gives of their shares."""

    def coefficient(table: Reals) -> Reals:
        share = table / table.sum(axis=(-1, -2), keepdims=True)
        observed, expected = np.trace(share, axis1=-2, axis2=-1), chance(share)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = np.where(expected < 1 - 1e-12, (observed - expected) / (1 - expected), np.nan)
        return np.stack([value, observed, expected], axis=-1)  # (..., 3)

    return coefficient


def _alpha(coincidences: Reals, grades: Reals, level: str) -> Reals:
    marginals = coincidences.sum(axis=-1)  # (..., values)
    total = marginals.sum(axis=-1)
    apart = 1 - np.eye(len(grades))  # distances, (..., values, values)
    if level == "ordinal":
        middle = np.cumsum(marginals, axis=-1) - marginals / 2  # of each value's own ratings, (..., values)
        apart = np.square(middle[..., :, None] - middle[..., None, :])
    elif level == "interval":
        apart = np.square(grades[:, None] - grades)
    chance = marginals[..., :, None] * marginals[..., None, :] - marginals[..., None] * np.eye(len(grades))
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = (coincidences * apart).sum(axis=(-1, -2)) / total
        expected = (chance * apart).sum(axis=(-1, -2)) / (total * (total - 1))
        value = np.where(expected > 0, 1 - observed / expected, np.nan)
    if level == "nominal":
        return np.stack([value, 1 - observed, 1 - expected], axis=-1)
    return np.stack([value, value, np.zeros_like(value)], axis=-1)


# -- tables and intervals -----------------------------------------------------------------------------------------


def _pairs(counts: Reals) -> Reals:
    """How many ordered pairs of ratings of each item are of two values, (items, values, values)."""
    return counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])


def _with_interval(
    tables: Reals, coefficient: Callable[[Reals], Reals], ratings: int, samples: int, seed: int
) -> Agreement:
    """The coefficient of all items, and the interval of those drawn with replacement `samples` times."""
    if not len(tables):
        return Agreement(NAN, NAN, NAN, NAN, NAN, 0, 0)
    value, observed, expected = coefficient(tables.sum(axis=0)).tolist()
    rng, drawn = np.random.default_rng(seed), []
    flat = tables.reshape(len(tables), -1)
    step = max(1, _AT_ONCE // max(flat.shape))
    for start in range(0, samples, step):
        size = min(step, samples - start)
        chosen = rng.integers(0, len(tables), (size, len(tables))) + len(tables) * np.arange(size)[:, None]
        times = np.bincount(chosen.ravel(), minlength=size * len(tables)).reshape(size, -1)  # how often each was drawn
        drawn.append(coefficient((times @ flat).reshape(size, *tables.shape[1:]))[:, 0])
    known = np.concatenate(drawn)
    known = known[~np.isnan(known)]
    low, high = np.percentile(known, _MIDDLE).tolist() if len(known) else [NAN, NAN]
    return Agreement(value, low, high, observed, expected, len(tables), ratings)
