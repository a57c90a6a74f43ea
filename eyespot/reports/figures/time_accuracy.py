"""What accuracy costs: a measure against seconds, with the line of what nothing beats in both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eyespot.reports.figures._sheet import MUTED, columns_for, house_style, method_style, plain_number, sheet, wrapped
from eyespot.types import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

APART = 0.05  # of the width of the time axis: labels that are nearer to each other would touch


@dataclass(frozen=True)
class MethodPoint:
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
        last = front[-1] if front else None
        if last is None or point.value > last.value or (point.seconds, point.value) == (last.seconds, last.value):
            front.append(point)
    return front


@house_style()
def time_accuracy(
    points: Sequence[MethodPoint], measure: str, title: str = "", time: str = "seconds per query"
) -> Figure:
    """Points over a log axis of time, each with its own style or that of its group; the line is the Pareto front.

    The legend names the styles. Points of a group are labelled on the front, as far as there is room. Points without a
    value or a time are named below the axis. `UsageError` if none can be drawn.
    """
    drawn = [point for point in points if point.drawable]
    if not drawn:
        raise UsageError("no point has both a value and a time above 0; give at least one")
    figure = sheet(title, 105, f"{measure} by time")
    axes = figure.subplots()
    front = pareto(drawn)
    seconds, values = [point.seconds for point in front], [point.value for point in front]
    axes.plot(seconds, values, color=MUTED, linewidth=1, drawstyle="steps-post", zorder=1)
    series: dict[str, list[MethodPoint]] = {}
    for point in drawn:
        series.setdefault(point.group or point.name, []).append(point)
    for at, (name, several) in enumerate(series.items()):
        style = method_style(at)
        across, up = [point.seconds for point in several], [point.value for point in several]
        marks: dict[str, Any] = {"marker": style.marker, "edgecolors": "white", "linewidths": 0.5, "zorder": 3}
        axes.scatter(across, up, 32, label=wrapped(name, 60), color=style.colour, **marks)
        axes.vlines(across, [p.low for p in several], [p.high for p in several], color=style.colour, linewidth=1)
    width = _log_axis(axes, [point.seconds for point in drawn])
    axes.set_ylabel(measure)
    labelled = -math.inf
    for point in (one for one in front if one.group):
        if math.log10(point.seconds) - labelled >= APART * width:
            labelled = math.log10(point.seconds)
            # below the line of the front, where no other point of it is
            axes.annotate(point.name, (point.seconds, point.value), (4, -9), textcoords="offset points", size=7)
    without = [point.name for point in points if not point.drawable]
    caption = f"{time} (log scale); line: nothing is faster and better"
    axes.set_xlabel(f"{caption}\n{wrapped('no value: ' + ', '.join(without), 100)}" if without else caption)
    figure.legend(loc="outside lower center", ncols=columns_for([wrapped(name, 60) for name in series]))
    return figure


def _log_axis(axes: Axes, times: Sequence[float]) -> float:
    """Scale the axes for these times, with a margin; gives the width in decades."""
    from matplotlib.ticker import LogLocator, NullFormatter

    decades = math.log10(max(times) / min(times))
    room = max(0.15, 0.08 * decades)
    axes.set(xscale="log", xlim=(min(times) / 10**room, max(times) * 10**room))
    axes.margins(y=0.12)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.5 else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(plain_number)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="both")
    return decades + 2 * room
