"""Where methods do well and where not: a measure by supercategory or category, hardest first (INQUIRE, fig. 5, 6)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from eyespot.reports.figures._bars import Methods, hardest_first
from eyespot.reports.figures._panels import bars_figure
from eyespot.reports.figures._sheet import house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@house_style()
def grouped_bars(methods: Methods, measure: str, title: str = "", published: Collection[str] = ()) -> Figure:
    """A row for each bar's name (and parent), by the mean over methods from low to high; {method: bars}.

    Lines through the bars are the 95% intervals. Methods named in `published` are outlined, ours are filled. Beyond
    six methods each gets its own panel. `UsageError` without any bar.
    """
    return bars_figure({"": methods}, [hardest_first([methods])], measure, title, published)
