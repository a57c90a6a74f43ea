"""Histograms of one value for each query or text, with the band that is accepted (ReCoS, fig. 5; RMIR's TSR)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eyespot.reports.figures._histograms import Strip, histograms
from eyespot.reports.figures._looks import PALETTE
from eyespot.reports.figures._sheet import house_style
from eyespot.types import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 40
Band = tuple[float, float]


@house_style()
def score_histogram(
    values: Mapping[str, Sequence[float]],
    measure: str,
    band: Band | None = None,
    counted: str = "queries",
    title: str = "",
) -> Figure:
    """{name: a value for each query} over the same bins; `band` (low, high), both included, is shaded.

    Headings say how many values there are, their median, how many lie in the band, and how many are missing (NaN).
    `UsageError` without any value and for a band that is none.
    """
    given = {name: np.asarray(numbers, np.float64) for name, numbers in values.items()}
    finite = {name: numbers[np.isfinite(numbers)] for name, numbers in given.items()}
    if not any(len(numbers) for numbers in finite.values()):
        raise UsageError(f"there are no values of {measure} to draw; give at least one number")
    if band and not (math.isfinite(band[0]) and math.isfinite(band[1]) and band[0] < band[1]):
        raise UsageError(f"the band {band[0]:g} to {band[1]:g} holds nothing; give the lower end first")
    strips = [Strip(_heading(name, numbers, band, counted), finite[name]) for name, numbers in given.items()]
    edges = np.histogram_bin_edges(np.concatenate(list(finite.values())), BINS)
    figure, panels = histograms(strips, edges, title, measure)
    for axes in panels:
        if band:
            axes.axvspan(*band, color=PALETTE[1], alpha=0.15, linewidth=0, zorder=0)
    panels[-1].set_xlabel(measure if band is None else f"{measure}; shaded: {band[0]:.3g} to {band[1]:.3g}")
    figure.supylabel(counted, size=8)
    return figure


def _heading(name: str, numbers: NDArray[np.float64], band: Band | None, counted: str) -> str:
    finite = numbers[np.isfinite(numbers)]
    parts = [f"{name}: {len(finite):,} {counted}"]
    if len(finite):
        parts.append(f"median {np.median(finite):.3g}")
    if band and len(finite):
        parts.append(f"{((finite >= band[0]) & (finite <= band[1])).mean():.0%} in the band")
    if len(finite) < len(numbers):
        parts.append(f"{len(numbers) - len(finite):,} without a value")
    return ", ".join(parts)
