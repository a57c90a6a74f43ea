"""Histograms and counts: what a benchmark is made of (INQUIRE, fig. 2, 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from eyespot.reports.figures.sheet import INK, PALETTE, bare, house_style, method_style, plain_number, sheet, wrapped
from eyespot.types import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRIP = 21.0  # mm, one histogram


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
        counts_of = sorted(within.items(), key=lambda row: (-row[1], row[0]))
        bars = axes.barh(range(len(within)), [count for _, count in counts_of], 0.72, color=method_style(at).colour)
        axes.bar_label(bars, [f"{count:,} ({count / total:.0%})" for _, count in counts_of], padding=2, size=7)
        axes.set_yticks(range(len(within)), [wrapped(category, 40) for category, _ in counts_of])
        axes.set_ylim(len(within) - 0.5, -0.5)
        # the numbers stand beside the bars: an axis would say them again
        axes.set_xticks([])
        axes.tick_params(axis="y", length=0)
        axes.spines["bottom"].set_visible(False)
        axes.set_title(f"{wrapped(name, 80)}: {sum(within.values()):,} {counted}", weight="bold")
    panels[0].set_xlim(0, 1.15 * max(max(within.values()) for _, within in groups))
    return figure


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
    strips = {}
    for name, numbers in groups.items():
        median, none = np.median(numbers), int((numbers == 0).sum())
        heading = f"{name}: {len(numbers):,} {counted}, median {median:g}, {numbers.min():g} to {numbers.max():,g}"
        strips[f"{heading}, {none:,} with none" if none else heading] = numbers[numbers > 0]
    top = max(2.0, *(numbers.max() for numbers in groups.values()))
    edges = 10 ** (np.arange(math.floor(math.log10(top) * DECADE) + 2) / DECADE)  # from 1 to beyond the largest
    height = 18 + (STRIP if len(strips) > 1 else 2 * STRIP) * len(strips)
    figure = sheet(title, height, f"relevant images per {counted}")
    panels = figure.subplots(len(strips), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (heading, values) in zip(panels, strips.items(), strict=True):
        axes.hist(values, edges, color=PALETTE[0], edgecolor="white", linewidth=0.5)
        if len(values):
            axes.axvline(float(np.median(values)), color=INK, linewidth=1, linestyle=(0, (4, 2)))
        axes.set_title(wrapped(heading, 105))
        axes.locator_params(axis="y", nbins=4, integer=True)
        bare(axes, "y")
        axes.spines["bottom"].set_visible(True)
        axes.tick_params(axis="x", length=3)
    panels[0].set_xscale("log")
    panels[0].xaxis.set_major_formatter(plain_number)
    # over less than a decade matplotlib writes powers at the small ticks; plain numbers serve there, nothing beyond it
    panels[0].xaxis.set_minor_formatter(plain_number if top < 10 else "")
    panels[-1].set_xlabel("relevant images of a query (log scale)")
    figure.supylabel(counted, size=8)
    return figure
