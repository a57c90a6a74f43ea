"""What words look like, learned from the photos that bear them: their mean vector, mixed into the query.

How much the labels count is decided for each query: fully where the photos agree with each other better than the
encoder's own vector of the words knows them, less where it knows them well or where the photos have little in common.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.types import Vectors

MOST = 256  # labelled photos that are looked at
ONE_PHOTO = 0.9  # how well one photo is taken to know what others of its kind look like
LEAST = 0.05  # a smaller weight is none
SMOOTHING = 0.01


class Teaching(NamedTuple):
    """What the labelled photos did for a query: how many there were, and the weight of their mean, at most 1.

    `known` and `agreed` say how well the words' own vector, and the other labelled photos, place a labelled photo: the
    share of the gallery that scores lower; 0.5 is chance.
    """

    photos: int
    weight: float
    known: float
    agreed: float

    @property
    def sentence(self) -> str:
        """What the user should know."""
        photos = "1 photo bears these words" if self.photos == 1 else f"{self.photos:,} photos bear these words"
        return (
            f"{photos}, and what they look like counts {self.weight:.2f} times as much as the words themselves; leave"
            " it out with --no-teach"
        )


def taught(query: Vectors, labelled: Vectors, background: Vectors) -> tuple[Vectors, Teaching]:
    """The query (dim,) with the look of the labelled photos (n, dim) in it, of unit length.

    `background` (m, dim) is a sample of the gallery; all vectors have unit length.
    """
    known = _places(labelled @ query, background @ query).mean()
    agreed = _agreement(labelled, background) if len(labelled) > 1 else ONE_PHOTO
    doubts = 1 - known + SMOOTHING, 1 - agreed + SMOOTHING
    weight = min(1.0, 2 * doubts[0] / sum(doubts))
    # Photos that have no more in common than any others teach nothing
    weight *= min(1.0, max(0.0, 4 * (agreed - 0.5)))
    mean = labelled.mean(axis=0)
    length = float(np.linalg.norm(mean))
    if weight < LEAST or length < 1e-6:
        return query, Teaching(len(labelled), 0.0, float(known), float(agreed))
    mixed = query + np.float32(weight / length) * mean
    return mixed / np.linalg.norm(mixed), Teaching(len(labelled), float(weight), float(known), float(agreed))


def _agreement(labelled: Vectors, background: Vectors) -> float:
    """How well the mean of the others places each labelled photo, on average."""
    others = labelled.sum(axis=0) - labelled  # (n, dim)
    own = np.einsum("nd,nd->n", others, labelled)
    return float(np.mean([_places(own[[at]], background @ others[at]) for at in range(len(labelled))]))


def _places(scores: NDArray[np.floating], background: NDArray[np.floating]) -> NDArray[np.float64]:
    """The share of the background below each score, (n,)."""
    places: NDArray[np.float64] = np.searchsorted(np.sort(background), scores) / max(1, len(background))
    return places
