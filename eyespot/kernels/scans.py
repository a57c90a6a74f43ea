"""Fast scans over int8 codes, compiled by numba: what exact search spends its time in.

Importing this file imports numba (about half a second with a warm cache, a few seconds the very first time), so
import it only where a gallery is large enough to repay that. Every kernel releases the GIL and runs on one thread:
callers spread chunks of rows over a thread pool, which is safe in servers where numba's own threading layers are not.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="call-arg, call-overload, no-any-return, assignment"
# (numba's own types tell nothing about what a kernel takes; the signatures here do)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eyespot.kernels import keep_compiled_kernels

BLOCK = 16  # rows whose codes stay in the first-level cache while all queries pass over them

keep_compiled_kernels()

import numba  # noqa: E402
import numpy as np  # noqa: E402
from numba import types  # noqa: E402

from eyespot.kernels.tiles import TILE, WIDTH, fetch, tile  # noqa: E402


def _read_only(dtype: Any, ndim: int) -> Any:
    return types.Array(dtype, ndim, "C", readonly=True)


_REORDER = {"reassoc", "contract"}  # sums may use vector registers; NaN and infinity keep their meaning
_FLOATS, _ROWS = _read_only(types.float32, 2), types.int64[::1]
_REAL, _REALS = types.float64[::1], types.float64[:, ::1]
_MASKS = _read_only(types.uint8, 1)
_GALLERY = types.Tuple((_read_only(types.int8, 2), _FLOATS, _MASKS))
_FEW = types.Tuple((types.int16[:, ::1], _REALS, _MASKS))
_MANY = types.Tuple((types.uint8[:, ::1], _REALS, _MASKS, types.int16[:, ::1], _REALS))
_SHORTLIST = types.Tuple((_REALS, _REAL, types.int64[:, ::1], types.float64[:, :, ::1], _ROWS))
_SPAN = types.UniTuple(types.int64, 3)


def _kernel(*signature: Any, **options: Any) -> Callable[[Any], Any]:
    """Compiled when this file is first imported, and cached on disk."""
    return numba.njit(*signature, nogil=True, cache=True, error_model="numpy", **options)


def _part(function: Any) -> Any:
    """Compiled into the kernels that call it."""
    return numba.njit(nogil=True, error_model="numpy", fastmath=_REORDER)(function)


# -- the shortlist: per query the rows that may still be among its k best --------------------------------------


@_part
def _keep(shortlist, j, row, low, high):
    """Note a row whose score lies between low and high; True when the list may overflow with the next block."""
    heaps, floors, rows, limits, counts = shortlist
    at = counts[j]
    rows[j, at], limits[j, at, 0], limits[j, at, 1] = row, low, high
    counts[j] = at + 1
    if low > floors[j]:
        heap, place = heaps[j], 0  # its least value gives way
        while 2 * place + 1 < heap.size:
            child = 2 * place + 1
            if child + 1 < heap.size and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= low:
                break
            heap[place] = heap[child]
            place = child
        heap[place] = low
        floors[j] = heaps[j, 0]
    return at + 1 + BLOCK > rows.shape[1]


@_part
def _crowded(shortlist):
    """The first query whose list is full of rows that cannot be forgotten; -1 if there is none.

    Rows that fell below the floor are forgotten, which must free a quarter of the list.
    """
    _, floors, rows, limits, counts = shortlist
    for j in range(counts.size):
        if counts[j] + BLOCK > rows.shape[1] and floors[j] < np.inf:
            count = 0
            for i in range(counts[j]):
                if not limits[j, i, 1] < floors[j]:
                    rows[j, count], limits[j, count, 0], limits[j, count, 1] = (
                        rows[j, i],
                        limits[j, i, 0],
                        limits[j, i, 1],
                    )
                    count += 1
            counts[j] = count
            if 4 * count > 3 * rows.shape[1]:
                return j
    return -1


# -- a few queries: bound by memory ----------------------------------------------------------------------------


@_part
def _dot(codes, row, queries, j):
    total = np.int32(0)
    for at in range(queries.shape[1]):
        total = np.int32(total + np.int32(codes[row, at]) * np.int32(queries[j, at]))
    return total


@_part
def _reach(terms, j, bounds, row):
    return bounds[row, 1] * terms[2, j] + bounds[row, 2] * terms[3, j] + terms[4, j]


@_part
def _lets(allowed, row, mask):
    """Whether a mask, a bit of those in `allowed`, lets a row through."""
    return allowed.size == 0 or (allowed[row] & mask) != 0


@_kernel(types.int64(_GALLERY, _FEW, _SHORTLIST, _SPAN))
def scan_few(gallery, batch, shortlist, span):
    """Rows start to stop against a few 16-bit queries; the row reached, less than `stop` if a list must grow first.

    `gallery`: codes (n, width), bounds (n, 4: scale, error norm, code norm, sum of codes), allowed (n or 0,), whose
    bits are masks.
    `batch`: queries (m, width), terms (5, m: offset, step, and what multiplies error norm, code norm and 1), and the
    bit of each query's mask (m,).
    `shortlist`: heaps (m, k) and floors (m,) of the best lower limits, rows (m, room), limits (m, room, 2: low,
    high), counts (m,); changed in place. `span`: the number of the gallery's first row, start, stop.
    """
    codes, bounds, allowed = gallery
    queries, terms, masks = batch
    floors, full = shortlist[1], True
    for row in range(span[1], span[2]):
        if allowed.size > 0 and not allowed[row]:
            continue
        if full and _crowded(shortlist) >= 0:
            return row
        full = False
        for j in range(queries.shape[0]):
            if not _lets(allowed, row, masks[j]):
                continue
            middle = terms[0, j] + np.float64(bounds[row, 0]) * (terms[1, j] * _dot(codes, row, queries, j))
            reach = _reach(terms, j, bounds, row)
            if not middle + reach < floors[j]:
                full |= _keep(shortlist, j, span[0] + row, middle - reach, middle + reach)
    return span[2]


# -- many queries: bound by arithmetic -------------------------------------------------------------------------


@_part
def _fetch_block(codes, start):
    """Rows in their order: four streams at once defeat the processor's own prefetcher and halve its speed."""
    for row in range(start, min(start + BLOCK, codes.shape[0])):
        for at in range(0, codes.shape[1], WIDTH):
            fetch(codes, row, at)


@_part
def _choose(allowed, chosen, start, stop):
    """The rows of this block that may be found, filled up to whole tiles with the first of them."""
    count = 0
    for row in range(start, stop):
        chosen[count] = row
        count += allowed.size == 0 or allowed[row] != 0
    for i in range(count, BLOCK):
        chosen[i] = chosen[0]
    return count


@_part
def _dot_block(codes, chosen, count, queries, dots):
    for first in range(0, queries.shape[0], TILE):
        for at in range(0, count, TILE):
            tile(codes, chosen, queries, dots, at, first)


@_part
def _need(terms, floors, j, unit):
    """What scale · dot must reach, in `unit`s, before a row can matter to query j, its own errors aside."""
    need = np.float32((floors[j] - terms[0, j] - terms[4, j]) / terms[1, j] / unit)
    if abs(need) >= 1e-25:  # far from where float32 loses precision
        return need
    return np.float32(0) if need >= 0 else np.float32(-1e-25)


@_part
def _any_near(dots, i, needs, cut):
    inverse, least = cut
    hit = False
    for j in range(needs.size):
        hit |= not np.float32(dots[i, j]) < needs[j] * inverse + least
    return hit


@_part
def _cut(bounds, row, widest):
    """The row's inverse scale, and how far its own errors and the sum of its codes shift a dot that matters."""
    scale = np.float64(bounds[row, 0])
    reach = (bounds[row, 1] * widest[0] + bounds[row, 2] * widest[1]) / scale
    return np.float32(widest[3] / scale), np.float32(128 * np.float64(bounds[row, 3]) - reach - widest[2])


@_part
def _keep_near(gallery, batch, shortlist, work, place):
    (codes, bounds, allowed), (_, terms, masks, fine, fine_terms), (dots, needs, cut, unit) = gallery, batch, work
    first, row, i = place
    scale, shift = np.float64(bounds[row, 0]), 128 * np.float64(bounds[row, 3])
    floors, full = shortlist[1], False
    for j in range(needs.size):
        if not np.float32(dots[i, j]) < needs[j] * cut[0] + cut[1] and _lets(allowed, row, masks[j]):
            middle = terms[0, j] + scale * (terms[1, j] * (dots[i, j] - shift))
            if not floors[j] < np.inf or middle + _reach(terms, j, bounds, row) < floors[j]:
                continue
            middle = fine_terms[0, j] + scale * (fine_terms[1, j] * _dot(codes, row, fine, j))
            reach = _reach(fine_terms, j, bounds, row)
            if not middle + reach < floors[j]:
                full |= _keep(shortlist, j, first + row, middle - reach, middle + reach)
                needs[j] = _need(terms, floors, j, unit)
    return full


@_kernel(types.void(_GALLERY, _MANY, _SHORTLIST, _SPAN))
def scan_many(gallery, batch, shortlist, span):
    """`scan_few` for many queries of unsigned bytes, 128 above their values: codes are read once for all of them.

    `batch` ends with the queries of 16 bits and their terms: what the bytes cannot rule out is looked at by them, while
    its codes are in the cache. Their narrower bounds leave few rows to be scored, and raise the floors sooner.
    The number of queries is a multiple of TILE; a query that only fills up has the floor +inf. A query whose list
    is full of rows that tie gets the floor +inf too, and must be scanned again by `scan_few`.
    """
    codes, bounds, allowed = gallery
    queries, terms = batch[0], batch[1]
    floors, first = shortlist[1], span[0]
    chosen, dots = np.empty(BLOCK, np.int64), np.empty((BLOCK, floors.size), np.int32)
    needs, widest = np.empty(floors.size, np.float32), np.zeros(4)
    unit = widest[3] = np.float64(max(bounds[span[1] : span[2], 0].max(), np.float32(1e-45)))
    widest[2] = 2 + 0.05 * codes.shape[1]  # more than float32 rounds off any sum that is in doubt
    for j in range(floors.size):
        needs[j] = _need(terms, floors, j, unit)
        widest[0], widest[1] = max(widest[0], terms[2, j] / terms[1, j]), max(widest[1], terms[3, j] / terms[1, j])
    full = True
    for at in range(span[1], span[2], BLOCK):
        crowded = _crowded(shortlist) if full else -1
        while crowded >= 0:
            floors[crowded] = needs[crowded] = np.inf
            crowded = _crowded(shortlist)
        count = _choose(allowed, chosen, at, min(at + BLOCK, span[2]))
        _fetch_block(codes, at + BLOCK)
        _dot_block(codes, chosen, count, queries, dots)
        full = False
        for i in range(count):
            cut = _cut(bounds, chosen[i], widest)
            if _any_near(dots, i, needs, cut):
                full |= _keep_near(gallery, batch, shortlist, (dots, needs, cut, unit), (first, chosen[i], i))


# -- the true scores --------------------------------------------------------------------------------------------


@_kernel(types.void(_FLOATS, _ROWS, _REAL, _REAL))
def inner(vectors, rows, query, scores):
    """`eyespot.kernels.rows.add_products`, bit for bit and several times as fast."""
    whole = query.size // 8 * 8
    for i in range(rows.size):
        row, rest = rows[i], 0.0
        a = b = c = d = e = f = g = h = 0.0  # one order, and still the width of vector registers
        for at in range(0, whole, 8):
            a += np.float64(vectors[row, at]) * query[at]
            b += np.float64(vectors[row, at + 1]) * query[at + 1]
            c += np.float64(vectors[row, at + 2]) * query[at + 2]
            d += np.float64(vectors[row, at + 3]) * query[at + 3]
            e += np.float64(vectors[row, at + 4]) * query[at + 4]
            f += np.float64(vectors[row, at + 5]) * query[at + 5]
            g += np.float64(vectors[row, at + 6]) * query[at + 6]
            h += np.float64(vectors[row, at + 7]) * query[at + 7]
        for at in range(whole, query.size):
            rest += np.float64(vectors[row, at]) * query[at]
        scores[i] = ((a + b) + (c + d)) + ((e + f) + (g + h)) + rest
