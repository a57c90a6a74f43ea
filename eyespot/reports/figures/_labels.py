"""Places for labels beside points, so that none covers another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
ANGLES = np.deg2rad((0, 45, -45, 90, -90, 135, -135, 180, 22.5, -22.5, 67.5, -67.5, 112.5, -112.5, 157.5, -157.5))
OVER_A_LABEL, OUTSIDE, OVER_A_MARK = 1e6, 1e4, 10.0  # what a square pixel of overlap costs, in pixels of distance
ACROSS_A_LABEL = 50.0  # what each thirtieth of a line costs that runs over another label


def places(anchors: Reals, sizes: Reals, area: Reals, marks: Reals) -> Reals:
    """The centre of each label's box, (n, 2), near its anchor.

    All in pixels: `anchors` and `sizes` (n, 2), `area` (4,) and `marks` (m, 4) as left, bottom, right, top. Labels are
    placed from left to right, each where it costs least: never over an earlier label while any place is free, inside
    the area before over marks, near before far. The same input gives the same places.
    """
    taken = np.empty((0, 4))
    centres = np.zeros_like(anchors)
    for at in np.lexsort((anchors[:, 1], anchors[:, 0])):
        tried = _candidates(anchors[at], sizes[at], area)
        boxes = np.hstack([tried - sizes[at] / 2, tried + sizes[at] / 2])  # (candidates, 4)
        cost = OVER_A_LABEL * _overlap(boxes, taken) + OVER_A_MARK * _overlap(boxes, marks)
        crossings_steps = _steps(anchors[at], boxes)[:, :, None]  # (n, 30, 1, 2)
        within = (crossings_steps > taken[:, :2]) & (crossings_steps < taken[:, 2:])  # (n, 30, m, 2)
        crossings = np.asarray(within.all(axis=3).sum(axis=(1, 2)), np.float64)
        cost += ACROSS_A_LABEL * crossings
        cost += OUTSIDE * (np.prod(sizes[at]) - _overlap(boxes, area[None])) + np.linalg.norm(
            _nearest(anchors[at], boxes) - anchors[at], axis=1
        )
        best = int(cost.argmin())
        centres[at], taken = tried[best], np.vstack([taken, boxes[best]])
        # The way from the anchor to its label as small boxes, (30, 4), for later labels to keep off
        steps = _steps(anchors[at], boxes[best][None])[0]
        marks = np.vstack([marks, np.hstack([steps - 1, steps + 1])])
    return centres


def _candidates(anchor: Reals, size: Reals, area: Reals) -> Reals:
    """Centres all around the anchor, then a grid over the whole area, for where it is crowded."""
    ways = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)  # (16, 2)
    gaps = size[1] * np.array([0.5, 0.9, 1.5, 2.5, 4.0, 6.0])
    near = [anchor + ways * (size / 2 + gap) for gap in gaps]
    across = np.arange(area[0] + size[0] / 2, area[2], size[0] / 2)
    up = np.arange(area[1] + size[1] / 2, area[3], size[1])
    return np.vstack([*near, np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)])


def _overlap(boxes: Reals, others: Reals) -> Reals:
    """The area that each box, (n, 4), shares with others, (m, 4), in sum, (n,)."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.asarray(np.clip(high - low, 0, None).prod(axis=2).sum(axis=1))


def _steps(anchor: Reals, boxes: Reals) -> Reals:
    """Thirty places on the way to each box, (n, 30, 2)."""
    ways = _nearest(anchor, boxes) - anchor  # (n, 2)
    return np.asarray(anchor + ways[:, None] * np.linspace(0, 1, 30)[:, None])


def _nearest(anchor: Reals, boxes: Reals) -> Reals:
    return np.clip(anchor, boxes[:, :2], boxes[:, 2:])
