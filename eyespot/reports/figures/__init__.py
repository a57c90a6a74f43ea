"""The figures of the papers: plain numbers in, a matplotlib figure out; one file for each kind.

    figure = grouped_bars({"starter": [Bar("Species", 0.31, 0.27, 0.35, count=22), …]}, "AP@50 (norm=min-k)")
    save(figure, "categories")      # categories.svg and categories.png
    page += as_svg(figure)          # for a page of HTML

matplotlib comes with the extra [plots] and is imported when a figure is drawn. The files whose names begin with an
underscore are what figures are made of.
"""

from eyespot.reports.figures._sheet import as_svg, save
from eyespot.reports.figures.bars import MEANS, Bar, grouped_bars, kind_bars, two_way_bars
from eyespot.reports.figures.histograms import category_distribution, matches_distribution
from eyespot.reports.figures.time_accuracy import MethodPoint, pareto, time_accuracy

__all__ = [
    "MEANS",
    "Bar",
    "MethodPoint",
    "as_svg",
    "category_distribution",
    "grouped_bars",
    "kind_bars",
    "matches_distribution",
    "pareto",
    "save",
    "time_accuracy",
    "two_way_bars",
]
