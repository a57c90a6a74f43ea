"""Image → text beside text → image, by sub-task (ReCoS, fig. 6, 7)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from eyespot.reports.figures._bars import Methods, hardest_first
from eyespot.reports.figures._panels import bars_figure
from eyespot.reports.figures._sheet import house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
