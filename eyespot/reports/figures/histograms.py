"""Histograms and counts: what a benchmark is made of (INQUIRE, fig. 2, 3), and values with the band that is accepted
(ReCoS, fig. 5; RMIR's TSR).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eyespot.reports.figures._sheet import INK, PALETTE, bare, house_style, look, plain_number, sheet, wrapped
from eyespot.types import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Reals: TypeAlias = NDArray[np.float64]
STRIP = 21.0  # mm, one histogram


def histograms(strips: Mapping[str, Reals], edges: Reals, title: str, name: str) -> tuple[Figure, list[Axes]]:
    """{heading: values (n,), all finite} one above the other, sharing both axes; a line marks each median."""
    figure = sheet(title, 18 + (STRIP if len(strips) > 1 else 2 * STRIP) * len(strips), name)
    panels = list(figure.subplots(len(strips), 1, sharex=True, sharey=True, squeeze=False)[:, 0])
    for axes, (heading, values) in zip(panels, strips.items(), strict=True):
        axes.hist(values, edges, color=PALETTE[0], edgecolor="white", linewidth=0.5)
        if len(values):
            axes.axvline(float(np.median(values)), color=INK, linewidth=1, linestyle=(0, (4, 2)))
        axes.set_title(wrapped(heading, 105))
        axes.locator_params(axis="y", nbins=4, integer=True)
        bare(axes, "y")
        axes.spines["bottom"].set_visible(True)
        axes.tick_params(axis="x", length=3)
    return figure, panels


ROW = 4.6  # mm
NEGATIVE = "a count is below 0; count what is there"
DECADE = 5  # bins of a decade: each holds at least one whole number


@house_style()
def category_distribution(counts: Mapping[str, Mapping[str, int]], counted: str = "queries", title: str = "") -> Figure:
    """{supercategory: {category: how many}} as bars with count and share of all, largest first.

    One supercategory alone serves for iconic groups (INQUIRE, fig. 3) and sub-tasks (ReCoS, fig. 3). `UsageError` if
    there is nothing to count.
    """
    groups = sorted(
        ((name, dict(within)) for name, within in counts.items() if within),
        key=lambda group: sum(group[1].values()),
        reverse=True,
    )
    total = sum(sum(within.values()) for _, within in groups)
    if any(count < 0 for _, within in groups for count in within.values()):
        raise UsageError(NEGATIVE)
    if not total:
        raise UsageError(f"there are no {counted} to count; give at least one category that has some")
    rows = [len(within) for _, within in groups]
    figure = sheet(title, 6 + ROW * sum(rows) + 7 * len(rows), f"{counted} by category")
    panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False, height_ratios=rows)[:, 0]
    for at, (axes, (name, within)) in enumerate(zip(panels, groups, strict=True)):
        _draw(axes, within, total, look(at).colour)
        axes.set_title(f"{wrapped(name, 80)}: {sum(within.values()):,} {counted}", weight="bold")
    panels[0].set_xlim(0, 1.15 * max(max(within.values()) for _, within in groups))
    return figure


def _draw(axes: Axes, within: dict[str, int], total: int, colour: str) -> None:
    rows = sorted(within.items(), key=lambda row: (-row[1], row[0]))
    bars = axes.barh(range(len(rows)), [count for _, count in rows], 0.72, color=colour)
    axes.bar_label(bars, [f"{count:,} ({count / total:.0%})" for _, count in rows], padding=2, size=7)
    axes.set_yticks(range(len(rows)), [wrapped(name, 40) for name, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    # the numbers stand beside the bars: an axis would say them again
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    axes.spines["bottom"].set_visible(False)


@house_style()
def matches_distribution(
    relevant_per_query: Mapping[str, Sequence[int]], counted: str = "queries", title: str = ""
) -> Figure:
    """{supercategory: relevant images of each of its queries} as histograms over one log axis.

    Queries without a relevant image have no place on a log axis: they are counted in the heading. `UsageError`
    without any query.
    """
    groups = {name: np.asarray(numbers, np.float64) for name, numbers in relevant_per_query.items() if len(numbers)}
    if not groups:
        raise UsageError(f"there are no {counted} to draw; give the number of relevant images of at least one")
    if any((numbers < 0).any() for numbers in groups.values()):
        raise UsageError(NEGATIVE)
    strips = {_heading(name, numbers, counted): numbers[numbers > 0] for name, numbers in groups.items()}
    top = max(2.0, *(numbers.max() for numbers in groups.values()))
    edges = 10 ** (np.arange(math.floor(math.log10(top) * DECADE) + 2) / DECADE)  # from 1 to beyond the largest
    figure, panels = histograms(strips, edges, title, f"relevant images per {counted}")
    panels[0].set_xscale("log")
    panels[0].xaxis.set_major_formatter(plain_number)
    # over less than a decade matplotlib writes powers at the small ticks; plain numbers serve there, nothing beyond it
    panels[0].xaxis.set_minor_formatter(plain_number if top < 10 else "")
    panels[-1].set_xlabel("relevant images of a query (log scale)")
    figure.supylabel(counted, size=8)
    return figure


def _heading(name: str, numbers: Reals, counted: str) -> str:
    none = int((numbers == 0).sum())
    text = f"{name}: {len(numbers):,} {counted}, median {np.median(numbers):g}, {numbers.min():g} to {numbers.max():,g}"
    return f"{text}, {none:,} with none" if none else text


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
    strips = {_heading_of_values(name, numbers, band, counted): finite[name] for name, numbers in given.items()}
    edges = np.histogram_bin_edges(np.concatenate(list(finite.values())), BINS)
    figure, panels = histograms(strips, edges, title, measure)
    for axes in panels:
        if band:
            axes.axvspan(*band, color=PALETTE[1], alpha=0.15, linewidth=0, zorder=0)
    panels[-1].set_xlabel(measure if band is None else f"{measure}; shaded: {band[0]:.3g} to {band[1]:.3g}")
    figure.supylabel(counted, size=8)
    return figure


def _heading_of_values(name: str, numbers: Reals, band: Band | None, counted: str) -> str:
    finite = numbers[np.isfinite(numbers)]
    parts = [f"{name}: {len(finite):,} {counted}"]
    if len(finite):
        parts.append(f"median {np.median(finite):.3g}")
    if band and len(finite):
        parts.append(f"{((finite >= band[0]) & (finite <= band[1])).mean():.0%} in the band")
    if len(finite) < len(numbers):
        parts.append(f"{len(numbers) - len(finite):,} without a value")
    return ", ".join(parts)
