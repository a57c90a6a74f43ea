"""Panels of horizontal bars: what the figures that compare methods share.

Up to six methods stand side by side in each row; more than six get a panel each, all with the same rows and scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from eyespot.reports.figures._bars import Bar, Methods, Row, refuse_nothing, rows_of
from eyespot.reports.figures._looks import DISTINCT, MethodStyle, look
from eyespot.reports.figures._sheet import INK, MUTED, WIDTH, bare, legend, plain_number, sheet, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

THICK = 2.3  # mm, a bar
LINE = 3.1  # mm, a line of a row's label
LETTER = 1.42  # mm, on average
SHARE = 0.84  # of a row's height that its bars take

Sides: TypeAlias = Mapping[str, Methods]  # "R@20", "image → text"; "" where there is only one
Looks: TypeAlias = Mapping[str, MethodStyle]


class Series(NamedTuple):
    """Some bars of a panel, {row: bar}, and the look of each parent's ("" for all others)."""

    name: str
    bars: dict[Row, Bar]
    looks: Looks
    published: bool

    def style(self, parent: str = "") -> dict[str, Any]:
        """How a bar of this parent is drawn."""
        chosen = self.looks[parent if parent in self.looks else ""]
        return chosen.published if self.published else chosen.measured


class FigurePanel(NamedTuple):
    """One set of axes."""

    title: str
    series: list[Series]


class RowAxis(NamedTuple):
    """The rows from top to bottom with their labels, and those above which a rule is drawn."""

    keys: list[Row]
    labels: list[str]
    rules: list[int]

    @property
    def lines(self) -> int:
        """How many lines the tallest label has."""
        return max(label.count("\n") + 1 for label in self.labels)

    @property
    def width(self) -> float:
        """About how wide the widest label is, in mm."""
        return LETTER * max(len(line) for label in self.labels for line in label.split("\n"))


def bars_figure(sides: Sides, blocks: list[list[Row]], measure: str, title: str, published: Collection[str]) -> Figure:
    """Methods compared row by row, once for each side; blocks of rows are parted by rules.

    Where each method has a panel to itself and there is one side, colours are free to tell the rows' parents.
    """
    refuse_nothing(sides.values(), published)
    names = list(dict.fromkeys(name for methods in sides.values() for name in methods))
    parents = list(dict.fromkeys(parent for block in blocks for parent, _ in block))
    if len(names) <= DISTINCT:
        panels = []
        for side, methods in sides.items():
            series = [
                Series(_legend_label(name, published), _by_row(methods, name), {"": look(at)}, name in published)
                for at, name in enumerate(names)
            ]
            panels.append(FigurePanel(side, series))
        return _figure(panels, _rows(blocks, sides, _full), measure, title, panels[0].series)
    if len(sides) > 1 or not 1 < len(parents) <= DISTINCT:
        panels = _a_panel_each_method(sides, names, {}, published)
        plainest = min(panels, key=lambda panel: panel.series[0].published)
        return _figure(panels, _rows(blocks, sides, _full), measure, title, plainest.series)
    looks = {parent: look(at) for at, parent in enumerate(parents)}
    panels = _a_panel_each_method(sides, names, looks, published)
    outlined = all(name in published for name in names)
    key = [Series(parent or "other", {}, {"": each}, outlined) for parent, each in looks.items()]
    return _figure(panels, _rows(blocks, sides, _short), measure, title, key)


def _a_panel_each_method(sides: Sides, names: list[str], looks: Looks, published: Collection[str]) -> list[FigurePanel]:
    def series(name: str, at: int, side: str) -> Series:
        return Series(side, _by_row(sides[side], name), looks or {"": look(at)}, name in published)

    return [
        FigurePanel(_legend_label(name, published), [series(name, at, s) for at, s in enumerate(sides)])
        for name in names
    ]


def _legend_label(name: str, published: Collection[str]) -> str:
    return f"{name} (published)" if name in published else name


def _by_row(methods: Methods, name: str) -> dict[Row, Bar]:
    return {bar.row: bar for bar in methods.get(name, ())}


def _rows(blocks: list[list[Row]], sides: Sides, label: Callable[[Row, str], str]) -> RowAxis:
    found = rows_of(sides.values())
    keys = [row for block in blocks for row in block]
    starts = (sum(map(len, blocks[:at])) for at in range(1, len(blocks)))
    rules = [start for start in starts if 0 < start < len(keys)]
    labels = []
    for row in keys:
        # The count of a row, or its range where methods differ in it; "" where none is given
        counts = {bar.count for bar in found[row]} - {0}
        text = "–".join(f"{count:,}" for count in dict.fromkeys((min(counts), max(counts)))) if counts else ""
        labels.append(label(row, text))
    return RowAxis(keys, labels, rules)


def _full(row: Row, counted: str) -> str:
    parent, name = row
    detail = ", ".join(part for part in (parent, counted and f"n = {counted}") if part)
    return "\n".join(wrapped(part, 34) for part in (name, detail) if part)


def _short(row: Row, counted: str) -> str:
    return wrapped(f"{row[1]} ({counted})" if counted else row[1], 40)


def _figure(panels: list[FigurePanel], rows: RowAxis, measure: str, title: str, key: list[Series]) -> Figure:
    used = len(panels)
    # Two side by side; more in threes or fours, whichever leaves fewer places empty
    columns = used if used <= 2 else min((4, 3), key=lambda columns: -used % columns)
    down = math.ceil(used / columns)
    letters = int((WIDTH - rows.width) / columns / LETTER) - 3
    heads = [wrapped(panel.title, letters) for panel in panels]
    breaks = max(head.count("\n") for head in heads)
    row = max(rows.lines * LINE + 0.8, len(panels[0].series) * THICK / SHARE)
    height = 26 + down * (len(rows.keys) * row + 9 + breaks * LINE)
    figure = sheet(title, height, measure)
    grid = figure.subplots(down, columns, sharex=True, sharey=True, squeeze=False)
    for axes, panel, head in zip(grid.flat, panels, heads, strict=False):
        _draw(axes, panel, rows)
        axes.set_title(head)
    # Leave out unused places, and number the axis of the last panel in each column
    for unused in grid.flat[used:]:
        unused.set_visible(False)
    for lowest in grid.flat[max(0, used - columns) : used]:
        lowest.tick_params(labelbottom=True)
    _scale(grid.flat[0], [bar for panel in panels for series in panel.series for bar in series.bars.values()])
    legend(figure, [(each.name, each.style()) for each in key if each.name], measure)
    return figure


def _draw(axes: Axes, panel: FigurePanel, rows: RowAxis) -> None:
    thick = SHARE / len(panel.series)
    for at, series in enumerate(panel.series):
        middle = (at - (len(panel.series) - 1) / 2) * thick
        heights = {key: row + middle for row, key in enumerate(rows.keys)}
        for series_row, y in heights.items():
            bar = series.bars.get(series_row)
            if bar is None or not bar.known:
                axes.text(0, y, " no value", va="center", size=6, color=MUTED, style="italic")
                continue
            axes.barh([y], [bar.value], thick * 0.88, label=series.name, **series.style(series_row[0]))
            if bar.bounded:
                # the light line below keeps the dark one in sight over dark bars and hatches
                axes.hlines(y, bar.low, bar.high, color="white", linewidth=2.4)
                axes.hlines(y, bar.low, bar.high, color=INK, linewidth=0.9)
    for rule in rows.rules:
        axes.axhline(rule - 0.5, color=MUTED, linewidth=0.6)
    axes.set_yticks(range(len(rows.keys)), rows.labels)
    axes.set_ylim(len(rows.keys) - 0.5, -0.5)
    bare(axes, "x")


def _scale(axes: Axes, bars: list[Bar]) -> None:
    """From 0 to beyond the longest bar and interval, or to both sides where values are below 0."""
    known = [bar for bar in bars if bar.known]
    ends = [bar.value for bar in known] + [end for bar in known if bar.bounded for end in (bar.low, bar.high)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    axes.set_xlim(low * 1.04, high * 1.04 if high > low else 1.0)
    axes.xaxis.set_major_formatter(plain_number)
    axes.locator_params(axis="x", nbins=5)
