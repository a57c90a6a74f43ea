"""What a benchmark is made of: queries by category, and how many images are relevant to each (INQUIRE, fig. 2, 3)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eyespot.reports.figures._histograms import Strip, histograms
from eyespot.reports.figures._looks import look
from eyespot.reports.figures._sheet import house_style, plain_number, sheet, wrapped
from eyespot.types import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW = 4.6  # mm
BINS = 5  # of a decade: each holds at least one whole number


@house_style()
def category_distribution(counts: Mapping[str, Mapping[str, int]], counted: str = "queries", title: str = "") -> Figure:
    """{supercategory: {category: how many}} as bars with count and share of all, largest first.

    One supercategory alone serves for iconic groups (INQUIRE, fig. 3) and sub-tasks (ReCoS, fig. 3). `UsageError` if
    there is nothing to count.
    """
    groups = sorted(((name, dict(within)) for name, within in counts.items() if within), key=_size, reverse=True)
    total = sum(_size(group) for group in groups)
    _refuse_negative(count for _, within in groups for count in within.values())
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


def _size(group: tuple[str, dict[str, int]]) -> int:
    return sum(group[1].values())


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
    _refuse_negative(number for numbers in groups.values() for number in numbers)
    strips = [Strip(_heading(name, numbers, counted), numbers[numbers > 0]) for name, numbers in groups.items()]
    top = max(2.0, *(numbers.max() for numbers in groups.values()))
    edges = 10 ** (np.arange(math.floor(math.log10(top) * BINS) + 2) / BINS)  # from 1 to beyond the largest
    figure, panels = histograms(strips, edges, title, f"relevant images per {counted}")
    panels[0].set_xscale("log")
    panels[0].xaxis.set_major_formatter(plain_number)
    # over less than a decade matplotlib writes powers at the small ticks; plain numbers serve there, nothing beyond it
    panels[0].xaxis.set_minor_formatter(plain_number if top < 10 else "")
    panels[-1].set_xlabel("relevant images of a query (log scale)")
    figure.supylabel(counted, size=8)
    return figure


def _heading(name: str, numbers: NDArray[np.float64], counted: str) -> str:
    none = int((numbers == 0).sum())
    text = f"{name}: {len(numbers):,} {counted}, median {np.median(numbers):g}, {numbers.min():g} to {numbers.max():,g}"
    return f"{text}, {none:,} with none" if none else text


def _refuse_negative(counts: Iterable[float]) -> None:
    if any(count < 0 for count in counts):
        raise UsageError("a count is below 0; count what is there")
