"""Statistics of judgements: how many queries, images and pairs there are, and how many matches a query has.

INQUIRE's table 1 and section 3.2 compare data sets by these: queries, judged pairs, relevant pairs, matches per query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.types import Qrels


@dataclass(frozen=True)
class Distribution:
    """How numbers lie; quartiles are interpolated between neighbours. NaN of no numbers."""

    mean: float
    median: float
    lower: float  # quartile
    upper: float
    least: float
    most: float

    @classmethod
    def of(cls, values: NDArray[Any]) -> Distribution:
        """Of some numbers, (n,)."""
        if not len(values):
            return cls(*[float("nan")] * 6)
        lower, median, upper = np.percentile(values, (25, 50, 75)).tolist()
        return cls(float(values.mean()), median, lower, upper, float(values.min()), float(values.max()))


@dataclass(frozen=True)
class MatchCountBin:
    """How many queries have at least `least` and at most `most` matches."""

    least: int
    most: int
    queries: int


@dataclass(frozen=True)
class Statistics:
    """What judgements hold. A pair is a query with an image; relevant is a grade of 1 and more.

    `judged` leaves out grades below 0 (pooled and not judged). `matches` spreads the relevant images per query, 0 for
    the queries of `without_relevant`, which have none. `pool` is None where no file lists the images to be searched.
    """

    queries: int
    judged: int
    relevant: int
    images_judged: int
    images_relevant: int
    pool: int | None
    matches: Distribution
    without_relevant: list[str]
    grades: dict[int, int]
    histogram: list[MatchCountBin]


def statistics(qrels: Qrels, queries: Sequence[str] | None = None, pool: int | None = None) -> Statistics:
    """Statistics of these queries, by default of all that the judgements name; one without judgements has 0 matches."""
    ids = list(qrels if queries is None else queries)
    wanted = np.isin(np.array(qrels.queries, dtype=object), np.array(ids, dtype=object))  # (queries,)
    of_asked = np.repeat(wanted, np.diff(qrels.offsets))  # (judged,)
    grade, image = qrels.grade[of_asked], qrels.codes[of_asked]
    counts = matches(qrels, ids)
    return Statistics(
        *(len(ids), int((grade >= 0).sum()), int((grade >= 1).sum())),
        *(len(np.unique(image[grade >= 0])), len(np.unique(image[grade >= 1])), pool),
        matches=Distribution.of(counts),
        without_relevant=[query for query, count in zip(ids, counts.tolist(), strict=True) if not count],
        grades=dict(zip(*(column.tolist() for column in np.unique(grade, return_counts=True)), strict=True)),
        histogram=histogram(counts),
    )


def matches(qrels: Qrels, queries: Iterable[str]) -> NDArray[np.int64]:
    """How many images are relevant to each query, (queries,)."""
    before = np.concatenate([[0], np.cumsum(qrels.grade >= 1)])[qrels.offsets]  # (queries + 1,)
    counts: Mapping[str, int] = dict(zip(qrels.queries, np.diff(before).tolist(), strict=True))
    return np.array([counts.get(query, 0) for query in queries], np.int64)


def histogram(counts: NDArray[np.integer[Any]]) -> list[MatchCountBin]:
    """Bins that double: 0, 1, 2 to 3, 4 to 7, 8 to 15, … from the lowest to the highest that holds a query."""
    if not len(counts):
        return []
    lengths = [int(count).bit_length() for count in counts]
    filled = np.bincount(lengths)
    return [MatchCountBin(2**bits // 2, 2**bits - 1, int(filled[bits])) for bits in range(min(lengths), len(filled))]
