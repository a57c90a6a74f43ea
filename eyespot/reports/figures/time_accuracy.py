"""What accuracy costs: a measure against seconds, with the line of what nothing beats in both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eyespot.reports.figures._labels import Reals, places
from eyespot.reports.figures._looks import MethodStyle, look
from eyespot.reports.figures._sheet import MUTED, columns_for, house_style, plain_number, sheet, wrapped
from eyespot.types import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARK = 3.5  # points, half a marker with its margin
FAR = 9.0  # points from its marker at which a label gets a line


class MethodPoint(NamedTuple):
    """One method: how long it takes and what it reaches, with the 95% interval of that if there is one."""

    name: str
    seconds: float
    value: float
    low: float = math.nan
    high: float = math.nan
    group: str = ""

    @property
    def drawable(self) -> bool:
        """Whether it has a place on a log axis of time."""
        return math.isfinite(self.value) and math.isfinite(self.seconds) and self.seconds > 0


def pareto(points: Iterable[MethodPoint]) -> list[MethodPoint]:
    """Those that no other beats: none is as fast and better, or as good and faster; by time. Equals all stay."""
    front: list[MethodPoint] = []
    for point in sorted((p for p in points if p.drawable), key=lambda p: (p.seconds, -p.value)):
        if not front or point.value > front[-1].value or (point[1:3] == front[-1][1:3]):
            front.append(point)
    return front


@house_style()
def time_accuracy(
    points: Sequence[MethodPoint], measure: str, title: str = "", time: str = "seconds per query"
) -> Figure:
    """Points over a log axis of time; groups differ in colour and marker, the line is the Pareto front.

    Points without a value or a time are named below the axis. `UsageError` if none can be drawn.
    """
    drawn = [point for point in points if point.drawable]
    if not drawn:
        raise UsageError("no point has both a value and a time above 0; give at least one")
    figure = sheet(title, 105, f"{measure} by time")
    axes = figure.subplots()
    front = pareto(drawn)
    seconds, values = [point.seconds for point in front], [point.value for point in front]
    axes.plot(seconds, values, color=MUTED, linewidth=1, drawstyle="steps-post", zorder=1)
    groups = dict.fromkeys(point.group for point in drawn)
    for at, group in enumerate(groups):
        _draw_group(axes, [point for point in drawn if point.group == group], look(at))
    without = [point.name for point in points if not point.drawable]
    caption = f"{time} (log scale); line: nothing is faster and better"
    below = f"{caption}\n{wrapped('no value: ' + ', '.join(without), 100)}" if without else caption
    _frame(axes, drawn, measure, below)
    if any(groups):
        axes.figure.legend(loc="outside lower center", ncols=columns_for(list(groups)))
    _label(figure, axes, drawn)
    return figure


def _draw_group(axes: Axes, group: list[MethodPoint], drawn: MethodStyle) -> None:
    seconds = [point.seconds for point in group]
    style: dict[str, Any] = {"marker": drawn.marker, "color": drawn.colour, "edgecolors": "white", "linewidths": 0.5}
    axes.scatter(seconds, [point.value for point in group], 32, label=group[0].group or "other", zorder=3, **style)
    known = [point for point in group if math.isfinite(point.low) and math.isfinite(point.high)]
    axes.vlines(
        [p.seconds for p in known], [p.low for p in known], [p.high for p in known], color=drawn.colour, linewidth=1
    )


def _frame(axes: Axes, drawn: list[MethodPoint], measure: str, below: str) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    seconds = [point.seconds for point in drawn]
    decades = math.log10(max(seconds) / min(seconds))
    axes.set_xscale("log")
    room = 10 ** max(0.15, 0.08 * decades)
    axes.set_xlim(min(seconds) / room, max(seconds) * room)
    axes.margins(y=0.12)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.5 else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(plain_number)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="both")
    axes.set_xlabel(below)
    axes.set_ylabel(measure)


def _label(figure: Figure, axes: Axes, drawn: list[MethodPoint]) -> None:
    """Names beside the points; the layout is settled first, for places are worked out in pixels."""
    texts = [
        axes.annotate(wrapped(p.name, 26), (p.seconds, p.value), (0, 0), textcoords="offset points", size=7)
        for p in drawn
    ]
    for text in texts:
        text.set_in_layout(False)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    pixels = figure.dpi / 72
    anchors = axes.transData.transform([(p.seconds, p.value) for p in drawn])  # (n, 2)
    extents = [text.get_window_extent() for text in texts]
    sizes = np.array([(box.width + 3 * pixels, box.height + 2 * pixels) for box in extents])
    found = places(anchors, sizes, np.array(axes.bbox.extents), _marks(axes, drawn, MARK * pixels))
    for text, point, anchor, size, centre in zip(texts, drawn, anchors, sizes, found, strict=True):
        text.set(position=(centre - anchor) / pixels, ha="center", va="center", multialignment="center")
        # A thin line to a label that is not right beside its point, in points
        end = np.clip(0, (centre - anchor - size / 2) / pixels, (centre - anchor + size / 2) / pixels)
        if np.linalg.norm(end) > FAR:
            line = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.5, "shrinkA": 0, "shrinkB": MARK}
            axes.annotate("", (point.seconds, point.value), end, textcoords="offset points", arrowprops=line)


def _marks(axes: Axes, drawn: list[MethodPoint], half: float) -> Reals:
    """What labels keep off: markers, intervals and the line of the front, as boxes (m, 4) in pixels."""
    at = axes.transData.transform
    marks = [(*(at((p.seconds, p.value)) - half), *(at((p.seconds, p.value)) + half)) for p in drawn]
    spans = [(at((p.seconds, p.low)), at((p.seconds, p.high))) for p in drawn if math.isfinite(p.low + p.high)]
    front = pareto(drawn)
    for one, two in pairwise(front):
        corner = (two.seconds, one.value)
        spans += [(at((one.seconds, one.value)), at(corner)), (at(corner), at((two.seconds, two.value)))]
    lines = [(*(np.minimum(a, b) - half / 3), *(np.maximum(a, b) + half / 3)) for a, b in spans]
    return np.array(marks + lines)
