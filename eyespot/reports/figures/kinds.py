"""Recall by kind of reasoning and in the mean, at several cutoffs (RMIR, table 2 as a figure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from eyespot.reports.figures._bars import Methods, rows_of
from eyespot.reports.figures._panels import bars_figure
from eyespot.reports.figures._sheet import house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    kinds = [row for row in found if row[1] not in MEANS]
    means = sorted((row for row in found if row[1] in MEANS), key=lambda row: MEANS.index(row[1]))
    return bars_figure(cutoffs, [kinds, means], measure, title, published)
