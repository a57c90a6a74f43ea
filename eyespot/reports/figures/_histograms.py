"""Histograms one above the other over the same bins."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.reports.figures._looks import PALETTE
from eyespot.reports.figures._sheet import INK, bare, sheet, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STRIP = 21.0  # mm, one histogram


class Strip(NamedTuple):
    """One histogram: its heading and values, (n,), all finite."""

    heading: str
    values: NDArray[np.float64]


def histograms(strips: list[Strip], edges: NDArray[np.float64], title: str, name: str) -> tuple[Figure, list[Axes]]:
    """A histogram for each strip, sharing both axes; a line marks each median."""
    figure = sheet(title, 18 + (STRIP if len(strips) > 1 else 2 * STRIP) * len(strips), name)
    panels = list(figure.subplots(len(strips), 1, sharex=True, sharey=True, squeeze=False)[:, 0])
    for axes, strip in zip(panels, strips, strict=True):
        axes.hist(strip.values, edges, color=PALETTE[0], edgecolor="white", linewidth=0.5)
        if len(strip.values):
            axes.axvline(float(np.median(strip.values)), color=INK, linewidth=1, linestyle=(0, (4, 2)))
        axes.set_title(wrapped(strip.heading, 105))
        axes.locator_params(axis="y", nbins=4, integer=True)
        bare(axes, "y")
        axes.spines["bottom"].set_visible(True)
        axes.tick_params(axis="x", length=3)
    return figure, panels
