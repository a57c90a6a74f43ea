"""How long people wait who search at once: one query at a time in each copy of a gallery, in the order of arrival."""

from __future__ import annotations

from functools import cache

import numpy as np

_ARRIVALS = 100_000
# From so little that hardly a query in a thousand waits: if one alone ends in time, some load always fits.
_LOADS = np.concatenate([np.geomspace(0.0004, 0.01, 8), np.linspace(0.02, 0.96, 48)])


def busiest(room: float, percentile: float) -> float:
    """The share of its time that a copy may be busy, so that so many per cent of queries end in time; 0 if none may.

    room: the time allowed, in times of one query alone. Queries arrive independently of each other (Poisson), each
    takes the same time, and waits for those before it (an M/D/1 queue; Lindley's recursion, drawn once by a seed).
    """
    fit = np.flatnonzero(_times(percentile) <= room)
    return float(_LOADS[fit[-1]]) if len(fit) else 0.0


@cache
def _times(percentile: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The percentile of waiting and answering for each load, in times of one query alone; (loads,), rising."""
    gaps = np.random.default_rng(0).exponential(1.0, _ARRIVALS)
    found = []
    for load in _LOADS.tolist():
        steps = np.cumsum(1.0 - gaps / load)  # of the work that is left when the next query comes
        waits = steps - np.minimum.accumulate(np.minimum(steps, 0.0))
        found.append(1.0 + float(np.percentile(waits, percentile)))
    return np.maximum.accumulate(np.array(found))
