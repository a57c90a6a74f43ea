"""Whether an adapter finds more than the vectors as they are: the paired test that a training is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot.adapters.quari.card import Significance
from eyespot.metrics import bootstrap, sign_flips

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLES = 10_000


def paired_gain(before: NDArray[Any], after: NDArray[Any]) -> Significance:
    """Of the values of the same subjects (n,): the bootstrap's 95 % interval of the mean gain, and sign flips' p."""
    differences = np.asarray(after - before, np.float64)
    low, high = np.percentile(bootstrap(differences, SAMPLES, 0), (2.5, 97.5)).tolist()
    (flips,) = sign_flips(differences[:, None])
    return Significance((low, high), flips.p)
