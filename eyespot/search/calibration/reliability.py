"""Whether probabilities come true: of the hits that are said to be relevant with 0.7, seven in ten should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.types import UsageError

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability diagram in bins of equal width; bins without hits are left out.

    `low` is where each bin begins, `hits` how many probabilities fell into it, `predicted` their mean and `observed`
    the share that is relevant, all (bins,). `error` is the expected calibration error: the mean over hits of
    |observed - predicted| of their bin.
    """

    low: Reals
    hits: Ints
    predicted: Reals
    observed: Reals

    @property
    def error(self) -> float:
        """The expected calibration error (ECE), 0 to 1."""
        return float(np.average(np.abs(self.observed - self.predicted), weights=self.hits))


def reliability(probability: Any, relevant: Any, bins: int = 10) -> Reliability:
    """Probabilities (n,) against labels (n,) that the calibration did not see: 1 relevant, 0 not.

    Raises `UsageError` where the two do not fit, for no hits, and for fewer than one bin.
    """
    probability = np.asarray(probability, dtype=np.float64).reshape(-1)
    relevant = np.asarray(relevant, dtype=np.float64).reshape(-1)
    if len(probability) != len(relevant) or not len(relevant) or bins < 1:
        raise UsageError("reliability needs one label for each probability, at least one of them, and at least one bin")
    if not ((probability >= 0) & (probability <= 1)).all() or not np.isin(relevant, (0, 1)).all():
        raise UsageError("probabilities lie between 0 and 1, and labels are 0 or 1")
    which = np.minimum((probability * bins).astype(np.int64), bins - 1)  # (n,)
    used, at, hits = np.unique(which, return_inverse=True, return_counts=True)
    predicted = np.bincount(at, weights=probability) / hits
    return Reliability(used / bins, hits, predicted, np.bincount(at, weights=relevant) / hits)
