"""Figures show the numbers they are given, the same bytes each time, and nothing covers anything."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.reports.figures.bars import MEANS, Bar, grouped_bars, kind_bars, two_way_bars
from eyespot.reports.figures.histograms import category_distribution, matches_distribution
from eyespot.reports.figures.sheet import DISTINCT, PALETTE, as_svg, method_style, save
from eyespot.reports.figures.time_accuracy import MethodPoint, pareto, time_accuracy
from eyespot.types import UsageError
from tests.lazy_import import lazy_import, requires
from tests.wording import raises

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

matplotlib = lazy_import("matplotlib")
pytestmark = requires("matplotlib")

AP = "AP@50 (norm=min-k, ties=average)"
SCORES = {
    "ours": [Bar("Species", 0.5, 0.4, 0.6, 22), Bar("Context", 0.3, 0.2, 0.4, 61)],
    "theirs": [Bar("Species", 0.7), Bar("Context", 0.1)],
}


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_visible()]


def rows(axes: Axes) -> list[str]:
    return [label.get_text().split("\n")[0] for label in axes.get_yticklabels()]


def widths(axes: Axes, series: str | None = None) -> dict[str, float]:
    """What was drawn for a series, or for all, by row, read back from the bars."""
    containers = [c for c in axes.containers if isinstance(c, matplotlib.container.BarContainer)]
    bars = [c.patches[0] for c in containers if series in (None, c.get_label())]
    names = rows(axes.figure.axes[0])  # panels side by side share their rows
    return {names[round(bar.get_y() + bar.get_height() / 2)]: bar.get_width() for bar in bars}


def test_bars_are_as_long_as_their_values_the_hardest_first() -> None:
    """The means over methods are 0.2 and 0.6; rows run from top to bottom."""
    figure = grouped_bars(SCORES, AP)
    (axes,) = panels(figure)
    ends = {tuple(segment[:, 0]) for lines in axes.collections for segment in lines.get_segments()}

    assert widths(axes, "ours") == {"Species": 0.5, "Context": 0.3}
    assert (rows(axes), axes.yaxis_inverted()) == (["Context", "Species"], True)
    assert ends == {(0.4, 0.6), (0.2, 0.4)}  # only ours has intervals
    figure.draw_without_rendering()
    assert AP in [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_visible()]


def test_published_bars_are_outlined_and_ours_filled() -> None:
    figure = grouped_bars(SCORES, AP, published=["theirs"])
    inside = {c.get_label(): c.patches[0].get_facecolor()[:3] for c in panels(figure)[0].containers}

    assert inside["theirs (published)"] == (1, 1, 1) != inside["ours"]


def test_a_missing_value_is_said_and_one_below_zero_in_sight() -> None:
    """NaN, and a row that a method lacks."""
    methods = {"a": [Bar("x", math.nan), Bar("y", -0.25, -0.5, 0.1)], "b": [Bar("y", 0.4)]}
    (axes,) = panels(grouped_bars(methods, AP))

    assert [text.get_text().strip() for text in axes.texts] == ["no value"] * 2
    assert widths(axes, "a") == {"y": -0.25}
    assert axes.get_xlim()[0] < -0.5 < 0.4 < axes.get_xlim()[1]


def test_twelve_methods_get_a_panel_each() -> None:
    methods = {f"method {at}": [Bar(f"category {row}", (row + at) / 30) for row in range(16)] for at in range(12)}
    figure = grouped_bars(methods, AP)
    drawn = [list(widths(axes).values()) for axes in panels(figure)]

    assert drawn == [[bar.value for bar in bars] for bars in methods.values()]
    assert len({axes.get_xlim() for axes in panels(figure)}) == 1


def test_both_directions_have_the_same_rows() -> None:
    """Ordered by the mean over both: x is 0.4, y is 0.35."""
    i2t, t2i = [Bar("x", 0.6), Bar("y", 0.3)], [Bar("x", 0.2), Bar("y", 0.4)]
    left, right = panels(two_way_bars({"CLIP": i2t}, {"CLIP": t2i}, "Hit@1"))

    assert (left.get_title("left"), right.get_title("left")) == ("image → text", "text → image")
    assert list(widths(left, "CLIP").items()) == [("y", 0.3), ("x", 0.6)]
    assert widths(right, "CLIP") == {"x": 0.2, "y": 0.4}


def test_kinds_keep_their_order_and_means_stand_last() -> None:
    """Below a rule between the third and the fourth row."""
    names = [MEANS[1], "functional", "temporal", "causal", MEANS[0]]
    cut = {"QuARI": [Bar(name, 0.1 * at) for at, name in enumerate(names, 1)]}
    left, _ = panels(kind_bars({"R@20": cut, "R@50": cut}))

    assert rows(left) == ["functional", "temporal", "causal", *MEANS]
    assert [line.get_ydata()[0] for line in left.lines] == [2.5]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: grouped_bars({}, AP),
        lambda: grouped_bars({"a": []}, AP),
        lambda: grouped_bars({"CLIP": [Bar("Other", 0.5), Bar("Sex", 0.5), Bar("Other", 0.5)]}, AP),  # one twice
        lambda: grouped_bars(SCORES, AP, published=["their"]),
        lambda: category_distribution({}),
        lambda: category_distribution({"Context": {"Human Impact": 0}}),
        lambda: matches_distribution({"Species": [3, -1]}),  # lost on a log axis
        lambda: time_accuracy([MethodPoint("random", 1, math.nan)], AP),
        lambda: save(grouped_bars(SCORES, AP), Path("/nowhere/ap")),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Callable[[], object]) -> None:
    with raises(UsageError):
        draw()


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", PALETTE)
def test_colours_stand_out_from_white(colour: str) -> None:
    assert 1.05 / (luminance(colour) + 0.05) >= 3


def test_methods_differ_in_hatch_and_marker_as_well_as_in_colour() -> None:
    looks = [method_style(at) for at in range(DISTINCT)]

    parts = ("colour", "hatch", "outlined", "marker")
    assert all(len({getattr(each, part) for each in looks}) == DISTINCT for part in parts)


def test_categories_stand_under_their_supercategories_largest_first() -> None:
    figure = category_distribution({"Context": {"Human Impact": 1}, "Behavior": {"Feeding": 3, "Mating": 8}})
    top, bottom = panels(figure)

    assert [bar.get_width() for bar in top.patches] == [8, 3]
    assert [text.get_text() for text in top.texts] == ["8 (67%)", "3 (25%)"]
    assert (rows(top), bottom.get_title("left")) == (["Mating", "Feeding"], "Context: 1 queries")


@given(st.lists(st.integers(1, 5_000_000), min_size=1, max_size=20))
@settings(max_examples=15, deadline=None)
def test_no_number_of_matches_falls_between_bars(numbers: list[int]) -> None:
    """Heights add up to the number of queries that have any."""
    (axes,) = panels(matches_distribution({"all": [0, *numbers]}))

    assert sum(bar.get_height() for bar in axes.patches) == len(numbers)
    assert axes.get_title("left").endswith("1 with none")


SOME = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, math.nan])


def beats(one: MethodPoint, two: MethodPoint) -> bool:
    no_worse = one.seconds <= two.seconds and one.value >= two.value
    return no_worse and (one.seconds, one.value) != (two.seconds, two.value)


@given(st.lists(st.builds(MethodPoint, st.just("p"), SOME, SOME), max_size=12))
def test_the_front_is_what_nothing_beats(points: list[MethodPoint]) -> None:
    drawable = [p for p in points if p.seconds > 0 and math.isfinite(p.value)]
    unbeaten = [p for p in drawable if not any(beats(other, p) for other in drawable)]

    assert sorted((p.seconds, p.value) for p in pareto(points)) == sorted((p.seconds, p.value) for p in unbeaten)


def crowd() -> list[MethodPoint]:
    rng = np.random.default_rng(7)
    drawn = zip(np.exp(rng.normal(0, 0.4, 25)), rng.normal(0.4, 0.03, 25), strict=True)
    return [MethodPoint(f"method number {at}", seconds, value) for at, (seconds, value) in enumerate(drawn)]


def test_ranges_stand_in_their_order_under_the_name_of_their_axis() -> None:
    bars = {"ours": [Bar("0 to 18", 30.0), Bar("18 to 33", 10.0), Bar("33 and more", 20.0)]}

    (axes,) = panels(grouped_bars(bars, AP, ordered="clutter"))

    assert [label.get_text() for label in axes.get_yticklabels()] == ["0 to 18", "18 to 33", "33 and more"]
    assert axes.get_ylabel() == "clutter"


def test_the_legend_names_every_point() -> None:
    figure = time_accuracy(crowd(), AP)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [point.name for point in crowd()]


def test_points_are_drawn_where_they_are() -> None:
    points = [MethodPoint("exact", 0.9, 0.41), MethodPoint("HNSW", 0.004, 0.38)]
    (axes,) = panels(time_accuracy(points, AP))
    drawn = [tuple(marks.get_offsets()[0]) for marks in axes.collections if len(marks.get_offsets())]

    assert [place for place in drawn if place != (0, 0)] == [(0.9, 0.41), (0.004, 0.38)]


def test_points_without_a_place_are_named() -> None:
    figure = time_accuracy(
        [MethodPoint("exact", 1, 0.4), MethodPoint("random", math.nan, 0.1), MethodPoint("oracle", 0, 1)], AP
    )

    assert panels(figure)[0].get_xlabel().endswith("no value: random, oracle")


FIGURES = {
    "bars": lambda: grouped_bars(SCORES, AP, "The same title", published=["theirs"]),
    "time": lambda: time_accuracy(crowd()[:4], AP, "The same title"),
    "counts": lambda: category_distribution({"Context": {"Human Impact": 1}}),
}


def ids(svg: str) -> list[str]:
    return [element.attrib["id"] for element in ET.fromstring(svg).iter() if "id" in element.attrib]


def test_figures_on_one_page_share_no_ids() -> None:
    found = [name for make in FIGURES.values() for name in ids(as_svg(make()))]

    assert found and len(found) == len(set(found))


def test_what_an_embedded_figure_refers_to_is_in_it() -> None:
    svg = as_svg(FIGURES["bars"]())
    wanted = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))

    assert wanted and wanted <= set(ids(svg))


def test_an_embedded_figure_is_an_element_with_text() -> None:
    """No prolog; names can be searched and read aloud, are taken as they are written, and need no glyphs."""
    name = 'a $x$ <b> & "id=" #1 翻译'
    root = ET.fromstring(as_svg(grouped_bars({name: SCORES["ours"]}, AP)))
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}

    assert as_svg(FIGURES["time"]()).startswith("<svg ")
    assert {name, AP} <= texts
