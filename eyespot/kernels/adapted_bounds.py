"""The kernel of searches under an adapted query: upper bounds on the scores of coded rows, compiled by numba.

Import it only where a gallery is large enough to repay loading numba; see `scans`.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="call-arg, call-overload, no-any-return, assignment"
# (numba's own types tell nothing about what a kernel takes; the signatures here do)

from __future__ import annotations

from eyespot.kernels import keep_compiled_kernels

keep_compiled_kernels()

import numpy as np  # noqa: E402
from numba import types  # noqa: E402

from eyespot.kernels.lanes import FEW, ROWS, few_lanes, lanes  # noqa: E402
from eyespot.kernels.scans import BLOCK, _kernel, _part, _read_only  # noqa: E402
from eyespot.kernels.tiles import TILE, WIDTH, fetch  # noqa: E402

_GALLERY = types.Tuple((_read_only(types.int8, 2), _read_only(types.float32, 2), _read_only(types.float32, 1)))
_ASKED = types.Tuple((types.uint8[:, :, :, ::1], types.float64[:, :, ::1], types.float64[:, ::1]))


@_part
def _multiply(codes, chosen, columns, dots):
    """Products of the first block of chosen rows; the second is fetched meanwhile."""
    few = columns.shape[1] == FEW
    for group in range(columns.shape[0]):
        for at in range(0, BLOCK, FEW if few else ROWS):
            if few:
                few_lanes(codes, chosen, columns, dots, at, group)
            else:
                lanes(codes, chosen, columns, dots, at, group)
    if few:  # the rows that `few_lanes` leaves out
        for i in range(BLOCK + TILE - 1, chosen.size, TILE):
            for at in range(0, codes.shape[1], WIDTH):
                fetch(codes, chosen[i], at)


@_part
def _sum_up(dots, terms, place, about, sums):
    """sums (3, BLOCK): the product with the query's direction, and the squares that are added and subtracted."""
    groups, first = place
    across = terms.shape[2]
    sums[:] = 0
    for at in range(first, first + groups):
        for lane in range(across):
            offset, step, shift = terms[at, 0, lane], terms[at, 1, lane], terms[at, 2, lane]
            top, gain, owed = terms[at, 3, lane], terms[at, 4, lane], terms[at, 5, lane]
            for i in range(BLOCK):
                whole = np.float64(dots[at * across + lane, i]) - shift * about[4, i]
                value = offset + about[0, i] * (step * whole)
                sums[0, i] += top * value
                sums[1, i] += gain * (value * value)
                sums[2, i] += owed * (value * value)


@_part
def _bound(sums, about, form, out):
    """No score is above `out`; form: own, floor, slack, vanished, then how errors count in each of the three sums."""
    for i in range(BLOCK):
        error, code, length = about[1, i], about[2, i], about[3, i]
        top = max(0.0, sums[0, i] + form[4] * error + form[5] * code + form[6])
        gain = max(0.0, np.sqrt(sums[1, i]) - (form[7] * error + form[8] * code + form[9]))
        owed = np.sqrt(sums[2, i]) + form[10] * error + form[11] * code + form[12]
        rest = form[1] * length * length + gain * gain - owed * owed - length * (form[2] * length + form[3])
        whole = max(form[0] * top * top + max(0.0, rest), top * top)
        score = top / np.sqrt(whole) if whole > 0 else np.float64(top > 0)
        out[i] = score if score < 1 else 1.0  # of NaN too, where numbers outgrow float64


@_kernel(types.void(_GALLERY, _ASKED, types.int64[::1], types.float32[:, ::1]))
def ceilings(gallery, batch, rows, out):
    """out[j, i]: what the score of rows[i] under query j surely does not exceed, never below 0.

    `gallery`: codes (n, width), bounds (n, 4: scale, error norm, code norm, sum of codes), lengths (n,).
    `batch`: for m queries of g groups of LANES bytes each: columns above 0 by their `shift` (m g, width / 4, LANES, 4),
    or for groups of FEW (m g, FEW, width / 4, 4); terms (m g, 6, LANES or FEW: offset, step, shift, and 1 where a lane
    is added to the query's direction, where its square is added, where it is subtracted); forms (m, 13), see `_bound`.
    The direction has 16 bits, in two lanes.
    """
    codes, bounds, lengths = gallery
    columns, terms, forms = batch
    chosen, dots = np.empty(2 * BLOCK, np.int64), np.empty((columns.shape[0] * terms.shape[2], BLOCK), np.int32)
    about, sums, bound = np.empty((5, BLOCK)), np.empty((3, BLOCK)), np.empty(BLOCK)
    groups = columns.shape[0] // forms.shape[0]
    for at in range(0, rows.size, BLOCK):
        count = min(BLOCK, rows.size - at)
        for i in range(chosen.size):  # two blocks, filled up with the last row; the second is fetched meanwhile
            chosen[i] = rows[min(at + i, rows.size - 1)]
        _multiply(codes, chosen, columns, dots)
        for i in range(BLOCK):  # scale, error, code norm, length, sum of codes
            row = chosen[i]
            about[0, i], about[1, i], about[2, i] = bounds[row, 0], bounds[row, 1], bounds[row, 2]
            about[3, i], about[4, i] = lengths[row], bounds[row, 3]
        for j in range(forms.shape[0]):
            _sum_up(dots, terms, (groups, j * groups), about, sums)
            _bound(sums, about, forms[j], bound)
            for i in range(count):
                out[j, at + i] = np.float32(bound[i] * (1 + 1e-6) + 1e-9)
