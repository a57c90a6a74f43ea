"""The compiled scans of `scan`: fields of lines, numbers to the last bit, and ids compared as bytes."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, disable-error-code="no-any-return"
# (numba's own types tell nothing about what a kernel takes; the comments here do)

from __future__ import annotations

from typing import Any

import numba
import numpy as np

RUN_SHAPE = (6, 5)  # fields in a line, and which of them (from 1) is the value; the third is the image
QRELS_SHAPE = (4, 4)
TENS = 10.0 ** np.arange(23)  # exact in double precision
NEWLINE, RETURN, SPACE = 10, 13, 32


def compiled(function: Any) -> Any:
    """Compiled without the GIL, kept on disk where numba finds a place for it."""
    try:
        return numba.njit(function, nogil=True, cache=True)
    except RuntimeError:
        return numba.njit(function, nogil=True)


@compiled
def count(data, start, stop):
    """Lines in data[start:stop]."""
    lines = 0
    for at in range(start, stop):
        lines += data[at] == NEWLINE
    return lines + (stop > start and data[stop - 1] != NEWLINE)


@compiled
def line_starts(data, start, parts):
    """Bounds of about equal parts that end with a line, (parts + 1,)."""
    bounds = np.empty(parts + 1, np.int64)
    bounds[0] = start
    for part in range(1, parts + 1):
        at = max(bounds[part - 1], start + (len(data) - start) * part // parts)
        while at < len(data) and at > start and data[at - 1] != NEWLINE:
            at += 1
        bounds[part] = at
    return bounds


@compiled
def field_end(data, at, stop, mark):
    """Where the field that starts at `at` ends; -1 if it is empty or has blanks where none belong."""
    start = at
    while at < stop:
        byte = data[at]
        if byte <= SPACE:
            if byte in (mark, NEWLINE):
                break
            if byte == RETURN and at + 1 < stop and data[at + 1] == NEWLINE:
                break
            if byte != SPACE:
                return -1
        at += 1
    return -1 if at == start or data[start] == SPACE or data[at - 1] == SPACE else at


@compiled
def hashed(data, start, stop):
    """64 bits of an id's bytes: two chains, so that one multiplication need not wait for the other."""
    even, odd = np.uint64(14695981039346656037), np.uint64(stop - start)
    for at in range(start, stop - 1, 2):
        even = (even ^ np.uint64(data[at])) * np.uint64(1099511628211)
        odd = (odd ^ np.uint64(data[at + 1])) * np.uint64(6364136223846793005)
    even = (even ^ np.uint64(data[stop - 1])) * np.uint64(1099511628211)
    value = even ^ (odd >> np.uint64(7)) ^ (odd << np.uint64(25))
    return value ^ (value >> np.uint64(29))


@compiled
def number(data, at, stop):
    """The double nearest to the decimal in data[at:stop]; nan if only a slower reader can tell.

    Up to 19 digits over a power of ten up to 22, divided in twice double precision: the quotient is right to the last
    bit unless it lies so near to the middle of two doubles that the rest cannot tell, and then it is nan.
    """
    sign = 1.0
    if at < stop and (data[at] == 45 or data[at] == 43):
        sign = -1.0 if data[at] == 45 else 1.0
        at += 1
    digits, places, point = np.uint64(0), 0, -1
    while at < stop and (48 <= data[at] <= 57 or (data[at] == 46 and point < 0)):
        if data[at] == 46:
            point = places
        else:
            digits = digits * np.uint64(10) + np.uint64(data[at] - 48)
            places += 1
        at += 1
    power = places - point if point >= 0 else 0
    shift, well = exponent(data, at, stop)
    power -= shift
    if not well or places == 0 or places > 19 or power < 0 or power > 22:
        return np.nan
    return sign * quotient(digits, TENS[power])


@compiled
def exponent(data, at, stop):
    """The power of ten after a number's digits, 0 if there is none, and whether it is well formed."""
    if at == stop:
        return 0, True
    if data[at] != 101 and data[at] != 69:
        return 0, False
    at += 1
    sign = 1
    if at < stop and (data[at] == 45 or data[at] == 43):
        sign = -1 if data[at] == 45 else 1
        at += 1
    value, first = 0, at
    while at < stop and 48 <= data[at] <= 57 and value < 1000:
        value = value * 10 + int(data[at] - 48)
        at += 1
    return sign * value, at == stop and at > first


@compiled
def quotient(digits, ten):
    """digits / ten, rounded once; nan in doubt. `ten` is exact, `digits` has 64 bits."""
    if digits < np.uint64(1 << 53):
        return float(digits) / ten
    high = float(digits >> np.uint64(32)) * 4294967296.0
    low = float(digits & np.uint64(4294967295))
    top = high + low
    rest = low - (top - high)  # top + rest is digits, exactly
    first = top / ten
    left = (top - product(first, ten)[0]) - product(first, ten)[1] + rest
    second = left / ten
    value = first + second
    error = second - (value - first)
    certain = value + error * 1.000001 == value
    return value if certain else np.nan


@compiled
def product(one, other):
    """one · other as a double and what rounding lost (Dekker's splitting)."""
    whole = one * other
    split = 134217729.0 * one
    one_high = split - (split - one)
    split = 134217729.0 * other
    other_high = split - (split - other)
    one_low, other_low = one - one_high, other - other_high
    lost = ((one_high * other_high - whole) + one_high * other_low + one_low * other_high) + one_low * other_low
    return whole, lost


@compiled
def scan(data, bounds, mark, shape, columns):
    """Fill the columns with the lines of data[start:stop]; how many there are, or -1 for a line of another shape."""
    place, start, length, hash, value, fresh = columns
    at, stop = bounds
    row, before, size = 0, at, 0  # the query of the row before lies at `before`
    while at < stop:
        if data[at] == NEWLINE or (data[at] == RETURN and at + 1 < stop and data[at + 1] == NEWLINE):
            at += 1 + (data[at] == RETURN)
            continue
        line = at
        for field in range(1, shape[0] + 1):
            end = field_end(data, at, stop, mark)
            if end < 0 or (end < stop and data[end] == mark) != (field < shape[0]):
                return -1
            if field == 1:
                fresh[row] = row == 0 or size != end - at or not same(data, before, data, at, size)
                before, size = at, end - at
            elif field == 3:
                place[row], start[row], length[row] = at, at - line, end - at
                hash[row] = hashed(data, at, end)
            if field == shape[1]:
                value[row] = number(data, at, end)
            at = end + 1
        at += end < stop and data[end] == RETURN
        row += 1
    return row


@compiled
def same(one, at, other, there, size):
    """Whether `size` bytes are the same in both places."""
    byte = 0
    while byte < size and one[at + byte] == other[there + byte]:
        byte += 1
    return byte == size


@compiled
def slots_for(rows):
    """A power of two that leaves at least half of a table empty."""
    slots = 8
    while slots < 2 * rows:
        slots *= 2
    return slots


@compiled
def placed(table, ids, id, row):
    """The row of the table's entry for an id, which becomes `row` if there is none."""
    data, places, lengths, hashes = ids
    text, at, size, hash = id
    slot = np.int64(hash & np.uint64(len(table) - 1))
    while table[slot] >= 0:
        other = table[slot]
        if hashes[other] == hash and lengths[other] == size and same(text, at, data, places[other], size):
            return other
        slot = (slot + 1) & (len(table) - 1)
    table[slot] = row
    return row


@compiled
def repeats(data, places, lengths, hashes, offsets):
    """Whether a query has an image twice."""
    ids = (data, places, lengths, hashes)
    for query in range(len(offsets) - 1):
        table = np.full(slots_for(offsets[query + 1] - offsets[query]), -1, np.int32)
        for row in range(offsets[query], offsets[query + 1]):
            if placed(table, ids, (data, places[row], lengths[row], hashes[row]), row) != row:
                return True
    return False


@compiled
def gathered(data, places, lengths):
    """The ids one after the other (bytes,), and where each starts and the last ends (rows + 1,)."""
    bounds = np.zeros(len(places) + 1, np.int64)
    for row in range(len(places)):
        bounds[row + 1] = bounds[row] + lengths[row]
    text = np.empty(bounds[-1], np.uint8)
    for row in range(len(places)):
        for byte in range(lengths[row]):
            text[bounds[row] + byte] = data[places[row] + byte]
    return text, bounds


@compiled
def best_first(offsets, values):
    """The order of rows by query and descending value, equal values as they stand; empty if they are in order."""
    for query in range(len(offsets) - 1):
        for row in range(offsets[query] + 1, offsets[query + 1]):
            if values[row] > values[row - 1]:
                return sorted_rows(offsets, values)
    return np.empty(0, np.int64)


@compiled
def sorted_rows(offsets, values):
    """The order of rows by query and descending value, equal values as they stand."""
    order = np.empty(len(values), np.int64)
    for query in range(len(offsets) - 1):
        start, stop = offsets[query], offsets[query + 1]
        order[start:stop] = start + np.argsort(-values[start:stop], kind="mergesort")
    return order


@compiled
def grades(run, qrels, at, grade):
    """The grade of each hit of a run, -1 for unjudged ones, (hits,); `at` says which judged query each query is."""
    hits, places, lengths, hashes, offsets = run
    judged, there, sizes, theirs, bounds = qrels
    ids = (judged, there, sizes, theirs)
    found = np.full(len(places), -1, np.int32)
    for query in range(len(at)):
        if at[query] < 0:
            continue
        start, stop = bounds[at[query]], bounds[at[query] + 1]
        table = np.full(slots_for(stop - start), -1, np.int64)
        for row in range(start, stop):
            placed(table, ids, (judged, there[row], sizes[row], theirs[row]), row)
        for hit in range(offsets[query], offsets[query + 1]):
            row = looked_up(table, ids, (hits, places[hit], lengths[hit], hashes[hit]))
            if row >= 0:
                found[hit] = grade[row]
    return found


@compiled
def looked_up(table, ids, id):
    """The row of an id in a table, or -1."""
    data, places, lengths, hashes = ids
    text, at, size, hash = id
    slot = np.int64(hash & np.uint64(len(table) - 1))
    while table[slot] >= 0:
        other = table[slot]
        if hashes[other] == hash and lengths[other] == size and same(text, at, data, places[other], size):
            return other
        slot = (slot + 1) & (len(table) - 1)
    return -1
