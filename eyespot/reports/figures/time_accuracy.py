"""What accuracy costs: a measure against seconds, with the line of what nothing beats in both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.reports.figures._sheet import (
    MUTED,
    MethodStyle,
    columns_for,
    house_style,
    look,
    plain_number,
    sheet,
    wrapped,
)
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


Reals = NDArray[np.float64]
ANGLES = np.deg2rad((0, 45, -45, 90, -90, 135, -135, 180, 22.5, -22.5, 67.5, -67.5, 112.5, -112.5, 157.5, -157.5))
OVER_A_LABEL, OUTSIDE, OVER_A_MARK = 1e6, 1e4, 10.0  # what a square pixel of overlap costs, in pixels of distance
ACROSS_A_LABEL = 50.0  # what each thirtieth of a line costs that runs over another label


def places(anchors: Reals, sizes: Reals, area: Reals, marks: Reals) -> Reals:
    """The centre of each label's box, (n, 2), near its anchor.

    All in pixels: `anchors` and `sizes` (n, 2), `area` (4,) and `marks` (m, 4) as left, bottom, right, top. Labels are
    placed from left to right, each where it costs least: never over an earlier label while any place is free, inside
    the area before over marks, near before far. The same input gives the same places.
    """
    taken = np.empty((0, 4))
    centres = np.zeros_like(anchors)
    for at in np.lexsort((anchors[:, 1], anchors[:, 0])):
        tried = _candidates(anchors[at], sizes[at], area)
        boxes = np.hstack([tried - sizes[at] / 2, tried + sizes[at] / 2])  # (candidates, 4)
        cost = OVER_A_LABEL * _overlap(boxes, taken) + OVER_A_MARK * _overlap(boxes, marks)
        ways = _steps(anchors[at], boxes)[:, :, None]  # (n, 30, 1, 2)
        within = (ways > taken[:, :2]) & (ways < taken[:, 2:])  # (n, 30, m, 2)
        cost += ACROSS_A_LABEL * within.all(axis=3).sum(axis=(1, 2)).astype(np.float64)
        cost += OUTSIDE * (np.prod(sizes[at]) - _overlap(boxes, area[None])) + np.linalg.norm(
            _nearest(anchors[at], boxes) - anchors[at], axis=1
        )
        best = int(cost.argmin())
        centres[at], taken = tried[best], np.vstack([taken, boxes[best]])
        # The way from the anchor to its label as small boxes, (30, 4), for later labels to keep off
        steps = _steps(anchors[at], boxes[best][None])[0]
        marks = np.vstack([marks, np.hstack([steps - 1, steps + 1])])
    return centres


def _candidates(anchor: Reals, size: Reals, area: Reals) -> Reals:
    """Centres all around the anchor, then a grid over the whole area, for where it is crowded."""
    ways = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)  # (16, 2)
    gaps = size[1] * np.array([0.5, 0.9, 1.5, 2.5, 4.0, 6.0])
    near = [anchor + ways * (size / 2 + gap) for gap in gaps]
    across = np.arange(area[0] + size[0] / 2, area[2], size[0] / 2)
    up = np.arange(area[1] + size[1] / 2, area[3], size[1])
    return np.vstack([*near, np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)])


def _overlap(boxes: Reals, others: Reals) -> Reals:
    """The area that each box, (n, 4), shares with others, (m, 4), in sum, (n,)."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.asarray(np.clip(high - low, 0, None).prod(axis=2).sum(axis=1))


def _steps(anchor: Reals, boxes: Reals) -> Reals:
    """Thirty places on the way to each box, (n, 30, 2)."""
    ways = _nearest(anchor, boxes) - anchor  # (n, 2)
    return np.asarray(anchor + ways[:, None] * np.linspace(0, 1, 30)[:, None])


def _nearest(anchor: Reals, boxes: Reals) -> Reals:
    return np.clip(anchor, boxes[:, :2], boxes[:, 2:])
