"""What accuracy costs: a measure against seconds, with the line of what nothing beats in both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eyespot.reports.figures.sheet import MUTED, columns_for, house_style, method_style, plain_number, sheet, wrapped
from eyespot.types import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class MethodPoint:
    """One method: how long it takes and what it reaches, with the 95% interval of that if there is one."""

    name: str
    seconds: float
    value: float
    low: float = math.nan
    high: float = math.nan

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
    """Points over a log axis of time, each in a style that the legend names; the line is the Pareto front.

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
    names = [wrapped(point.name, 60) for point in drawn]
    for at, point in enumerate(drawn):
        style = method_style(at)
        marks: dict[str, Any] = {"marker": style.marker, "edgecolors": "white", "linewidths": 0.5, "zorder": 3}
        axes.scatter([point.seconds], [point.value], 32, label=names[at], color=style.colour, **marks)
        axes.vlines([point.seconds], [point.low], [point.high], color=style.colour, linewidth=1)
    _log_axis(axes, [point.seconds for point in drawn])
    axes.set_ylabel(measure)
    without = [point.name for point in points if not point.drawable]
    caption = f"{time} (log scale); line: nothing is faster and better"
    axes.set_xlabel(f"{caption}\n{wrapped('no value: ' + ', '.join(without), 100)}" if without else caption)
    figure.legend(loc="outside lower center", ncols=columns_for(names))
    return figure


def _log_axis(axes: Axes, times: Sequence[float]) -> None:
    """Scale the axes for these times, with a margin."""
    from matplotlib.ticker import LogLocator, NullFormatter

    decades = math.log10(max(times) / min(times))
    room = max(0.15, 0.08 * decades)
    axes.set(xscale="log", xlim=(min(times) / 10**room, max(times) * 10**room))
    axes.margins(y=0.12)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.5 else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(plain_number)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="both")
