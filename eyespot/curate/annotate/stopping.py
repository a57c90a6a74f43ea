"""The stopping rule: go down the list until some photos in a row are not relevant (INQUIRE, section 3.2: 100)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import NamedTuple

IN_A_ROW = 100


class Descent(NamedTuple):
    """How far down a list somebody is: ranks judged without a gap, and how many of the last were not relevant."""

    depth: int
    in_a_row: int
    stopped_at: int | None  # the rank, from 1, at which the rule fired first


def descent(labels: Iterable[bool | None], in_a_row: int = IN_A_ROW, looks: Iterable[bool] | None = None) -> Descent:
    """How far the labels of a list go, best first; the first None (unjudged) ends it, whatever comes behind.

    `looks` says which photos somebody looked at by themselves: those of a group that was marked at once are not counted
    in a row, or a burst of a hundred frames would end a labelling after one look.
    """
    depth = barren = 0
    stopped: int | None = None
    for label, look in zip(labels, repeat(True) if looks is None else looks, strict=False):
        if label is None:
            break
        depth += 1
        barren = 0 if label else barren + look
        if stopped is None and barren >= in_a_row:
            stopped = depth
    return Descent(depth, barren, stopped)
