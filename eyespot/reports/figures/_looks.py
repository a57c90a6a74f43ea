"""What tells methods apart: colour, hatch and marker together, so that none is needed alone.

Blue to green are Okabe and Ito's; each colour has a contrast of 3 or more on white, and any two stay apart for readers
with protanopia, deuteranopia or tritanopia (simulated after Machado, Oliveira and Fernandes, 2009).
"""

from __future__ import annotations

from typing import Any, NamedTuple

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#332288", "#882255")
HATCHES = ("", "////", "||||", "\\\\\\\\", "xxxx", "----")
OUTLINED = ("////", "\\\\\\\\", "||||", "xxxx", "----", "++++")  # an outline is never empty
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # seven beside six colours: 42 pairs before one comes again
DISTINCT = len(PALETTE)  # so many bars side by side can be told apart


class MethodStyle(NamedTuple):
    """How one method is drawn."""

    colour: str
    hatch: str
    outlined: str
    marker: str

    @property
    def measured(self) -> dict[str, Any]:
        """A bar of ours: filled."""
        return {"facecolor": self.colour, "edgecolor": "white", "hatch": self.hatch, "linewidth": 0.0}

    @property
    def published(self) -> dict[str, Any]:
        """A bar of a paper: an outline, hatched."""
        return {"facecolor": "white", "edgecolor": self.colour, "hatch": self.outlined, "linewidth": 0.8}


def look(position: int) -> MethodStyle:
    """The look of the method at this position, from 0."""
    at = position % DISTINCT
    return MethodStyle(PALETTE[at], HATCHES[at], OUTLINED[at], MARKERS[position % len(MARKERS)])
