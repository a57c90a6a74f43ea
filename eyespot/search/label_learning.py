"""What words look like, learned from the photos that bear them and mixed into the query.

The look is the direction that tells these photos from the gallery: their mean less the gallery's, with the directions
in which all photos differ anyway counting less (linear discriminant analysis, with a shrunken covariance).

How much the labels count is decided for each query: fully where the photos agree with each other better than the
encoder's own vector of the words knows them, less where it knows them well or where the photos have little in common.
What few photos have in common is held against what photos of one label have, on average, in the same column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.types import Vectors, quantity

MOST = 256  # labelled photos that are looked at
EVEN = 0.5  # the share of the gallery above which any photo is placed on average
FEW = 10  # photos that say little alone of what they have in common
FEWEST = 5  # labels of two photos and more that say what a label of their column shows
LEAST = 0.05  # a smaller weight is none
SMOOTHING = 0.01
SHRINKAGE = 10.0  # times the mean variance, added to the variance in every direction
OTHERS = 0.2  # what photos that are not it count beside those that are
WORDS = 0.5  # what the words' own spread of scores is beside the labels', where the labels count fully


@dataclass(frozen=True, slots=True)
class Teaching:
    """What the labelled photos did for a query: how many there were, and the weight of their look, at most 1.

    `known` and `agreed` say how well the words' own vector, and other photos of a label, place a labelled photo: the
    share of the gallery that scores lower; 0.5 is chance.
    """

    photos: int
    weight: float
    known: float
    agreed: float

    @property
    def sentence(self) -> str:
        """What the user should know."""
        they, them = quantity(self.photos, "photo has", "photos have"), "it" if self.photos == 1 else "them"
        return f"{they} these words in a label or name, and photos that look like {them} move up"


class Contrast:
    """A sample of the gallery (m, dim) of unit length, against which labelled photos stand out, and its facts."""

    def __init__(self, sample: Vectors, facts: Callable[[], Sequence[Mapping[str, Any]]] = tuple) -> None:
        self.sample, self._facts, self._by_column = sample, facts, dict[str, float]()

    def agreed(self, column: str) -> float:
        """How well a photo places another with the same label of a column, over all labels; 0.5 where few have two."""
        if column not in self._by_column:
            rows = defaultdict[Any, list[int]](list)
            for row, facts in enumerate(self._facts()):
                rows[facts.get(column)].append(row)
            pairs = np.array([some[:2] for label, some in rows.items() if label is not None and len(some) > 1])
            self._by_column[column] = EVEN
            if len(pairs) >= FEWEST:
                first, second = self.sample[pairs.T]  # (labels, dim) each
                below = self.sample @ first.T < np.einsum("nd,nd->n", first, second)
                self._by_column[column] = float(below.mean())
        return self._by_column[column]

    @cached_property
    def _covariance(self) -> NDArray[np.float64]:
        """The shrunken covariance, (dim, dim)."""
        centred = self.sample - self.sample.mean(axis=0)
        covariance = (centred.T @ centred).astype(np.float64) / max(1, len(centred))
        variance = np.trace(covariance) / len(covariance)
        shrunken: NDArray[np.float64] = covariance + (SHRINKAGE * variance + 1e-9) * np.eye(len(covariance))
        return shrunken

    def direction(self, labelled: Vectors, others: Vectors | None = None) -> NDArray[np.float64]:
        """The direction (dim,) that tells these photos (n, dim) from the sample, and a little from others (m, dim)."""
        centre = self.sample.mean(axis=0, dtype=np.float64)
        apart = labelled.mean(axis=0, dtype=np.float64) - centre if len(labelled) else np.zeros_like(centre)
        if others is not None and len(others):
            apart = apart - OTHERS * (others.mean(axis=0, dtype=np.float64) - centre)
        solved: NDArray[np.float64] = np.linalg.solve(self._covariance, apart)
        return solved

    def spread(self, direction: NDArray[np.floating]) -> float:
        """The standard deviation of the sample's scores."""
        return max(float((self.sample @ direction).std()), 1e-9)


def learned(query: Vectors, labelled: Vectors, contrast: Contrast, usual: float = EVEN) -> tuple[Vectors, Teaching]:
    """The query (dim,) with the look of the labelled photos (n, dim) in it, of unit length.

    usual: how well photos of labels like this place each other; beside few it counts as one more, for one alone.
    """
    background = contrast.sample
    places = np.searchsorted(np.sort(background @ query), labelled @ query) / max(1, len(background))  # (n,)
    known, agreed = places.mean(), usual
    if len(labelled) > 1:  # how well the mean of the others places each labelled photo, on average
        others = labelled.sum(axis=0) - labelled  # (n, dim)
        scores = np.einsum("nd,nd->n", others, labelled)
        alike = float((background @ others.T < scores).mean()) if len(background) else 0.0
        agreed = alike if len(labelled) > FEW else (len(labelled) * alike + usual) / (len(labelled) + 1)
    doubts = 1 - known + SMOOTHING, 1 - agreed + SMOOTHING
    weight = min(1.0, 2 * doubts[0] / sum(doubts))
    # Photos that have no more in common than any others teach nothing
    weight *= min(1.0, max(0.0, 4 * (agreed - 0.5)))
    direction = None if weight < LEAST else contrast.direction(labelled)
    weight = 0.0 if direction is None or float(np.linalg.norm(direction)) < 1e-6 else float(weight)
    teaching = Teaching(len(labelled), weight, float(known), float(agreed))
    return query if direction is None else mixed(query, direction, weight, contrast), teaching


def mixed(query: Vectors, direction: NDArray[np.float64], weight: float, contrast: Contrast) -> Vectors:
    """The query (dim,) with a direction (dim,) in it that counts with this weight, of unit length.

    A direction without a length leaves the query as it is.
    """
    if float(np.linalg.norm(direction)) < 1e-6:
        return query
    words = (1 - weight * (1 - WORDS)) * query / contrast.spread(query)
    made = (words + weight * direction / contrast.spread(direction)).astype(np.float32)
    length = float(np.linalg.norm(made))
    return query if length < 1e-6 else made / length
