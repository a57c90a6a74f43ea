"""Methods side by side in bars: by category (INQUIRE, fig. 5, 6), sub-task (ReCoS, fig. 6, 7), kind (RMIR, table 2).

Up to six methods stand side by side in each row; more than six get a panel each, all with the same rows and scale.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

from eyespot.reports.figures.sheet import (
    DISTINCT,
    INK,
    MUTED,
    WIDTH,
    MethodStyle,
    bare,
    house_style,
    legend,
    method_style,
    plain_number,
    sheet,
    wrapped,
)
from eyespot.types import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Bar:
    """One value with its 95% interval; NaN where there is none. `count` says of how many."""

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    count: int = 0

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return math.isfinite(self.value)

    @property
    def bounded(self) -> bool:
        """Whether there is a value with an interval."""
        return self.known and math.isfinite(self.low) and math.isfinite(self.high)


Methods: TypeAlias = Mapping[str, Sequence[Bar]]


def refuse_nothing(sides: Iterable[Methods], published: Collection[str]) -> None:
    """`UsageError` where there are no bars, where one stands twice, and where a published method is unknown."""
    methods = [pair for side in sides for pair in side.items()]
    if not any(bars for _, bars in methods):
        raise UsageError("there are no bars to draw; give at least one method with one value")
    for name, bars in methods:
        rows = [bar.name for bar in bars]
        if twice := [name for at, name in enumerate(rows) if name in rows[:at]]:
            raise UsageError(f"{name} has the bar {twice[0]!r} twice; keep one of the two")
    known = dict(methods)
    if unknown := [name for name in published if name not in known]:
        raise UsageError(f"no {unknown[0]!r} among the methods to mark as published; there are: {', '.join(known)}")


def rows_of(sides: Iterable[Methods]) -> dict[str, list[Bar]]:
    """Every row in order of first appearance, with its bars."""
    found: dict[str, list[Bar]] = {}
    for bar in (bar for side in sides for bars in side.values() for bar in bars):
        found.setdefault(bar.name, []).append(bar)
    return found


def hardest_first(sides: Iterable[Methods]) -> list[str]:
    """Rows by the mean of their values, lowest first; those without any value last."""
    found = rows_of(sides)
    values = {row: [bar.value for bar in bars if bar.known] for row, bars in found.items()}
    return sorted(values, key=lambda row: fmean(values[row]) if values[row] else math.inf)


@house_style()
def grouped_bars(
    methods: Methods, measure: str, title: str = "", published: Collection[str] = (), ordered: str = ""
) -> Figure:
    """A row for each bar's name, by the mean over methods from low to high; {method: bars}.

    Rows that are ranges of something stay in the order given; `ordered` names it on their axis. Lines through the bars
    are the 95% intervals. Methods named in `published` are outlined, ours are filled. Beyond six methods each gets its
    own panel. `UsageError` without any bar.
    """
    rows = list(rows_of([methods])) if ordered else hardest_first([methods])
    figure = bars_figure({"": methods}, [rows], measure, title, published)
    figure.axes[0].set_ylabel(ordered)
    return figure


@house_style()
def two_way_bars(
    image_to_text: Methods, text_to_image: Methods, measure: str, title: str = "", published: Collection[str] = ()
) -> Figure:
    """Both directions with the same rows: sub-tasks by the mean over methods and directions, from low to high.

    Up to six methods share a panel for each direction; beyond that each method gets a panel with both directions.
    `UsageError` without any bar.
    """
    sides = {"image → text": image_to_text, "text → image": text_to_image}
    return bars_figure(sides, [hardest_first(sides.values())], measure, title, published)


MEANS = ("mean over queries", "mean over kinds")  # these rows stand last, below a rule


@house_style()
def kind_bars(
    cutoffs: Mapping[str, Methods], measure: str = "R@k", title: str = "", published: Collection[str] = ()
) -> Figure:
    """{"R@20": {method: bars}, "R@50": …}: kinds in the order given, then the rows named as in `MEANS`.

    Up to six methods share a panel for each cutoff; beyond that each method gets a panel with all cutoffs.
    `UsageError` without any bar.
    """
    found = rows_of(cutoffs.values())
    kinds = [row for row in found if row not in MEANS]
    means = sorted((row for row in found if row in MEANS), key=MEANS.index)
    return bars_figure(cutoffs, [kinds, means], measure, title, published)


THICK = 2.3  # mm, a bar
LINE = 3.1  # mm, a line of a row's label
LETTER = 1.42  # mm, on average
SHARE = 0.84  # of a row's height that its bars take

Sides: TypeAlias = Mapping[str, Methods]  # "R@20", "image → text"; "" where there is only one


@dataclass(frozen=True)
class Series:
    """Some bars of a panel, {row: bar}, in one style."""

    name: str
    bars: dict[str, Bar]
    method: MethodStyle
    published: bool

    @property
    def style(self) -> dict[str, Any]:
        """How its bars are drawn."""
        return self.method.published if self.published else self.method.measured


@dataclass(frozen=True)
class RowAxis:
    """The rows from top to bottom with their labels, and those above which a rule is drawn."""

    keys: list[str]
    labels: list[str]
    rules: list[int]

    @classmethod
    def of(cls, blocks: list[list[str]], sides: Sides) -> RowAxis:
        """The rows of blocks."""
        found, keys, labels = rows_of(sides.values()), [row for block in blocks for row in block], []
        for name in keys:
            # The count of a row, or its range where methods differ in it; "" where none is given
            counts = {bar.count for bar in found[name]} - {0}
            text = "–".join(f"{count:,}" for count in dict.fromkeys((min(counts), max(counts)))) if counts else ""
            labels.append(wrapped(name, 34) + (f"\nn = {text}" if text else ""))
        starts = (sum(map(len, blocks[:at])) for at in range(1, len(blocks)))
        return cls(keys, labels, [start for start in starts if 0 < start < len(keys)])


def bars_figure(sides: Sides, blocks: list[list[str]], measure: str, title: str, published: Collection[str]) -> Figure:
    """Methods compared row by row, once for each side; blocks of rows are parted by rules."""
    refuse_nothing(sides.values(), published)
    names = list(dict.fromkeys(name for methods in sides.values() for name in methods))
    marked = {name: f"{name} (published)" if name in published else name for name in names}

    def series(label: str, name: str, side: str, at: int) -> Series:
        return Series(label, {bar.name: bar for bar in sides[side].get(name, ())}, method_style(at), name in published)

    if len(names) <= DISTINCT:
        panels = {side: [series(marked[name], name, side, at) for at, name in enumerate(names)] for side in sides}
        key = next(iter(panels.values()))
    else:
        panels = {marked[name]: [series(side, name, side, at) for at, side in enumerate(sides)] for name in names}
        key = min(panels.values(), key=lambda several: several[0].published)
    return _figure(panels, RowAxis.of(blocks, sides), measure, title, key)


def _figure(panels: Mapping[str, list[Series]], rows: RowAxis, measure: str, title: str, key: list[Series]) -> Figure:
    """A set of axes for each title of `panels`."""
    used = len(panels)
    # Two side by side; more in threes or fours, whichever leaves fewer places empty
    columns = used if used <= 2 else min((4, 3), key=lambda columns: -used % columns)
    down = math.ceil(used / columns)
    width = LETTER * max(len(line) for label in rows.labels for line in label.split("\n"))  # of labels, about, in mm
    lines = max(label.count("\n") + 1 for label in rows.labels)
    letters = int((WIDTH - width) / columns / LETTER) - 3
    heads = [wrapped(name, letters) for name in panels]
    breaks = max(head.count("\n") for head in heads)
    row = max(lines * LINE + 0.8, len(next(iter(panels.values()))) * THICK / SHARE)
    height = 26 + down * (len(rows.keys) * row + 9 + breaks * LINE)
    figure = sheet(title, height, measure)
    grid = figure.subplots(down, columns, sharex=True, sharey=True, squeeze=False)
    for axes, panel, head in zip(grid.flat, panels.values(), heads, strict=False):
        _draw(axes, panel, rows)
        axes.set_title(head)
    # Leave out unused places, and number the axis of the last panel in each column
    for unused in grid.flat[used:]:
        unused.set_visible(False)
    for lowest in grid.flat[max(0, used - columns) : used]:
        lowest.tick_params(labelbottom=True)
    # From 0 to beyond the longest bar and interval, or to both sides where values are below 0
    bars = [bar for each in panels.values() for series in each for bar in series.bars.values() if bar.known]
    ends = [0.0, *(bar.value for bar in bars), *(end for bar in bars if bar.bounded for end in (bar.low, bar.high))]
    grid.flat[0].set_xlim(min(ends) * 1.04, max(ends) * 1.04 if max(ends) > min(ends) else 1.0)
    grid.flat[0].xaxis.set_major_formatter(plain_number)
    grid.flat[0].locator_params(axis="x", nbins=5)
    legend(figure, [(each.name, each.style) for each in key if each.name], measure)
    return figure


def _draw(axes: Axes, panel: list[Series], rows: RowAxis) -> None:
    thick = SHARE / len(panel)
    for at, series in enumerate(panel):
        middle = (at - (len(panel) - 1) / 2) * thick
        heights = {key: row + middle for row, key in enumerate(rows.keys)}
        for series_row, y in heights.items():
            bar = series.bars.get(series_row)
            if bar is None or not bar.known:
                axes.text(0, y, " no value", va="center", size=6, color=MUTED, style="italic")
                continue
            axes.barh([y], [bar.value], thick * 0.88, label=series.name, **series.style)
            if bar.bounded:
                # the light line below keeps the dark one in sight over dark bars and hatches
                axes.hlines(y, bar.low, bar.high, color="white", linewidth=2.4)
                axes.hlines(y, bar.low, bar.high, color=INK, linewidth=0.9)
    for rule in rows.rules:
        axes.axhline(rule - 0.5, color=MUTED, linewidth=0.6)
    axes.set_yticks(range(len(rows.keys)), rows.labels)
    axes.set_ylim(len(rows.keys) - 0.5, -0.5)
    bare(axes, "x")
