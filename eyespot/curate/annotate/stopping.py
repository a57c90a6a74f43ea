"""The stopping rule: go down the list until some photos in a row are not relevant (INQUIRE, section 3.2: 100)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

IN_A_ROW = 100


class Descent(NamedTuple):
    """How far down a list somebody is: ranks judged without a gap, and how many of the last were not relevant."""

    depth: int
    in_a_row: int
    stopped_at: int | None  # the rank, from 1, at which the rule fired first


def descent(labels: Iterable[bool | None], in_a_row: int = IN_A_ROW) -> Descent:
    """How far the labels of a list go, best first; the first None (unjudged) ends it, whatever comes behind."""
    depth = barren = 0
    stopped: int | None = None
    for label in labels:
        if label is None:
            break
        depth += 1
        barren = 0 if label else barren + 1
        if stopped is None and barren >= in_a_row:
            stopped = depth
    return Descent(depth, barren, stopped)
