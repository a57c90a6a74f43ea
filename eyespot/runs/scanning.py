"""The compiled scans of `scan`: fields of lines, numbers to the last bit, and tables of ids compared as bytes.

Text is looked at eight bytes at a time, as a word: one number of 64 bits whose lowest byte is the first. numba compiles
a kernel anew only when its own file changes: who changes `memory` has to change this file, too.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-any-return, assignment"
# (numba's own types tell nothing about what a kernel takes; the comments here do)

from __future__ import annotations

import numpy as np

from eyespot.runs.memory import byte, compiled, part, text_of, word

RUN_SHAPE = (6, 5)  # fields in a line, and which of them (from 1) is the value; the third is the image
QRELS_SHAPE = (4, 4)
TENS = 10.0 ** np.arange(23)  # exact in double precision
WHOLE_TENS = 10 ** np.arange(9, dtype=np.uint64)
NEWLINE, RETURN, SPACE = 10, 13, 32
BLOCK = 128  # bytes whose lines are counted in one byte
ROOM = 8  # slots of a table for each id in it: most ids then meet an empty one, and the processor guesses so

# the same byte eight times
TOPS, LOWER = np.uint64(0x8080808080808080), np.uint64(0x7F7F7F7F7F7F7F7F)  # the top bit of each, and all others
OVER_SPACE = np.uint64(0x2121212121212121)  # one more than a space
ZEROS = np.uint64(0x3030303030303030)  # the digit
TO_TOP = np.uint64(0x7676767676767676)  # added to 10 or more it sets a byte's top bit, to 9 or less it does not
POSITIONS = np.uint64(0x0001020304050607)
PAIRS = np.uint64(0x000000FF000000FF)
MIXER = np.uint64(0x9E3779B97F4A7C15)  # odd, near 2^64 over the golden ratio


# -- words ------------------------------------------------------------------------------------------------------


@part
def first_of(bits):
    """Which byte of a word is the first with its top bit set, where no other bits are set and at least one is."""
    lowest = bits & (~bits + np.uint64(1))
    return ((lowest >> np.uint64(7)) * POSITIONS) >> np.uint64(56)


@part
def start_of(found, size):
    """A word's first 1 to 8 bytes."""
    return found & (~np.uint64(0) >> np.uint64(64 - 8 * size))


@part
def same(one, at, other, there, size):
    """Whether `size` bytes, one or more, are the same in both places."""
    while size > 8:
        if word(one, at) != word(other, there):
            return False
        at, there, size = at + 8, there + 8, size - 8
    return start_of(word(one, at) ^ word(other, there), size) == 0


@part
def hashed(text, at, stop):
    """64 bits of an id's bytes, of which there is at least one."""
    value = np.uint64(stop - at)
    while stop - at > 8:
        value = (value ^ word(text, at)) * MIXER
        value ^= value >> np.uint64(32)
        at += 8
    value = (value ^ start_of(word(text, at), stop - at)) * MIXER
    value = (value ^ (value >> np.uint64(32))) * MIXER
    return value ^ (value >> np.uint64(29))


@part
def alike(text, id, other_text, other):
    """Whether two ids (place, length, hash) are the same bytes."""
    if id[2] != other[2] or id[1] != other[1]:
        return False
    return same(text, id[0], other_text, other[0], id[1])


@compiled
def hashes(data, places, lengths):
    """The hash of each id, (ids,); 0 for an empty one."""
    text = text_of(data)
    found = np.zeros(len(places), np.uint64)
    for row in range(len(places)):
        if lengths[row] > 0:
            found[row] = hashed(text, places[row], places[row] + lengths[row])
    return found


# -- numbers ----------------------------------------------------------------------------------------------------


@part
def number(text, at, stop):
    """The double nearest to the decimal in text[at:stop]; nan if only a slower reader can tell.

    What follows must be no digit. Up to 19 digits over a power of ten up to 22, divided in twice double precision: the
    quotient is right to the last bit unless it lies so near to the middle of two doubles that the rest cannot tell, and
    then it is nan.
    """
    sign = 1.0
    if at < stop and (byte(text, at) == 45 or byte(text, at) == 43):
        sign = -1.0 if byte(text, at) == 45 else 1.0
        at += 1
    start = at
    at, digits = few_digits(text, at, stop)
    places, power = at - start, 0
    if at < stop and byte(text, at) == 46:
        point = at + 1
        at, digits = many_digits(text, point, digits)
        power = at - point
        places += power
    shift, well = exponent(text, at, stop)
    power -= shift
    if not well or places == 0 or power < 0 or power > 22:
        return np.nan
    if places > 19 and places - leading_zeros(text, start, stop) > 19:
        return np.nan
    return sign * quotient(digits, TENS[power])


@part
def few_digits(text, at, stop):
    """Where the digits from `at` end, and their value: one by one, since most scores have one before the point."""
    digits = np.uint64(0)
    while at < stop and 48 <= byte(text, at) <= 57:
        digits = digits * np.uint64(10) + np.uint64(byte(text, at) - 48)
        at += 1
    return at, digits


@part
def many_digits(text, at, digits):
    """Where the digits from `at` end, and the value of `digits` with these behind: eight at once, then the rest."""
    while True:
        found = word(text, at) ^ ZEROS
        others = (((found & LOWER) + TO_TOP) | found) & TOPS
        if others:
            break
        digits = digits * WHOLE_TENS[8] + eight_digits(found)
        at += 8
    left = first_of(others)
    rest = (found << (np.uint64(56) - np.uint64(8) * left)) << np.uint64(8)  # with zeros before, and all zeros for none
    return at + np.int64(left), digits * WHOLE_TENS[left] + eight_digits(rest)


@part
def eight_digits(found):
    """The number whose eight digits, 0 to 9, are the bytes of a word: pairs, then pairs of them, then the two fours."""
    pairs = found * np.uint64(10) + (found >> np.uint64(8))
    high = (pairs & PAIRS) * np.uint64(100 + (1000000 << 32))
    return (high + ((pairs >> np.uint64(16)) & PAIRS) * np.uint64(1 + (10000 << 32))) >> np.uint64(32)


@part
def leading_zeros(text, at, stop):
    """How many zeros stand before a number's first other digit."""
    zeros = 0
    while at < stop and (byte(text, at) == 48 or byte(text, at) == 46):
        zeros += byte(text, at) == 48
        at += 1
    return zeros


@part
def exponent(text, at, stop):
    """The power of ten after a number's digits, 0 if there is none, and whether it is well formed."""
    if at == stop:
        return 0, True
    if byte(text, at) != 101 and byte(text, at) != 69:
        return 0, False
    at += 1
    sign = 1
    if at < stop and (byte(text, at) == 45 or byte(text, at) == 43):
        sign = -1 if byte(text, at) == 45 else 1
        at += 1
    value, first = 0, at
    while at < stop and 48 <= byte(text, at) <= 57 and value < 1000:
        value = value * 10 + int(byte(text, at) - 48)
        at += 1
    return sign * value, at == stop and at > first


@part
def quotient(digits, ten):
    """digits / ten, rounded once; nan in doubt. `ten` is exact, `digits` has 64 bits."""
    high = float(digits >> np.uint64(32)) * 4294967296.0
    low = float(digits & np.uint64(4294967295))
    top = high + low
    rest = low - (top - high)  # top + rest is digits, exactly
    first = top / ten
    whole, lost = product(first, ten)
    second = ((top - whole) - lost + rest) / ten
    value = first + second
    error = second - (value - first)
    # No `or`: which scores have more than 53 bits is chance, and guessing it wrong costs more than the arithmetic.
    certain = (value + error * 1.000001 == value) | (digits < np.uint64(1 << 53))
    return value if certain else np.nan


@part
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


# -- lines and fields -------------------------------------------------------------------------------------------


@compiled
def count(data, start, stop):
    """Lines in data[start:stop], and whether all of it is ASCII."""
    lines, high = 0, np.uint8(0)
    for block in range(start, stop, BLOCK):
        ends = np.uint8(0)  # a narrow sum, so that many bytes are counted at once
        for at in range(block, min(block + BLOCK, stop)):
            byte = data[np.uint64(at)]
            ends += np.uint8(byte == NEWLINE)
            high |= byte
        lines += np.int64(ends)
    return lines + (stop > start and data[stop - 1] != NEWLINE), high < 128


@compiled
def line_starts(data, start, parts):
    """Bounds of about equal parts that end with a line, (parts + 1,)."""
    bounds = np.empty(parts + 1, np.int64)
    bounds[0] = start
    for of in range(1, parts + 1):
        at = max(bounds[of - 1], start + (len(data) - start) * of // parts)
        while at < len(data) and at > start and data[at - 1] != NEWLINE:
            at += 1
        bounds[of] = at
    return bounds


@part
def first_blank(text, at):
    """The first byte from `at` that is a space or below, or the end."""
    while at < text[1]:
        found = word(text, at)
        blank = (found - OVER_SPACE) & ~found & TOPS  # exact up to its first
        if blank:
            return min(at + np.int64(first_of(blank)), text[1])
        at += 8
    return text[1]


@part
def field_end(text, at, mark):
    """Where the field that starts at `at` ends; -1 if it is empty or has blanks where none belong."""
    end = first_blank(text, at)
    while mark != SPACE and at < end < text[1] and byte(text, end) == SPACE:
        end = first_blank(text, end + 1)
    if end == at or byte(text, end - 1) == SPACE:
        return -1
    return end if end == text[1] or byte(text, end) == mark or is_line_end(text, end) else -1


@part
def is_line_end(text, at):
    """Whether a line ends here, with a carriage return or without."""
    return byte(text, at) == NEWLINE or (
        byte(text, at) == RETURN and at + 1 < text[1] and byte(text, at + 1) == NEWLINE
    )


# -- files ------------------------------------------------------------------------------------------------------


@compiled
def scan(data, bounds, mark, shape, columns):
    """Fill the columns with the lines of data[start:stop]: how many rows and stretches; -1 rows for an odd line.

    A row is its image's place, length and hash, and its value. A stretch is rows of one query: the first of them, and
    the place and length of the query's id.
    """
    place, length, hash, value, first, name, size = columns
    text, (at, stop) = text_of(data), bounds
    row, stretches = 0, 0
    while at < stop:
        if is_line_end(text, at):
            at += 1 + (byte(text, at) == RETURN)
            continue
        for field in range(1, shape[0] + 1):
            end = field_end(text, at, mark)
            if end < 0 or (end < stop and byte(text, end) == mark) != (field < shape[0]):
                return -1, 0
            if field == 1:
                first[stretches], name[stretches], size[stretches] = row, at, end - at
                last = stretches - 1
                stretches += row == 0 or size[last] != end - at or not same(text, name[last], text, at, end - at)
            elif field == 3:
                place[row], length[row] = at, end - at
                hash[row] = hashed(text, at, end)
            if field == shape[1]:
                value[row] = number(text, at, end)
            at = end + 1
        at += end < stop and byte(text, end) == RETURN
        row += 1
    return row, stretches


@compiled
def number_in(data):
    """The number that the whole of some bytes is, or nan."""
    return number(text_of(data), 0, len(data))


# -- tables of ids ----------------------------------------------------------------------------------------------


@part
def table_for(rows):
    """An empty table for as many ids: a power of two of slots."""
    slots = 8
    while slots < ROOM * rows:
        slots *= 2
    return np.full(slots, -1, np.int32)


@part
def table_of(hashes):
    """A table of distinct ids: each in the first empty slot from that of its hash."""
    table = table_for(len(hashes))
    end = np.uint64(len(table) - 1)
    for row in range(len(hashes)):
        slot = hashes[row] & end
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & end
        table[slot] = row
    return table


@compiled
def repeats(data, places, lengths, hashes, offsets):
    """Whether a query has an image twice."""
    text = text_of(data)
    for query in range(len(offsets) - 1):
        start, stop = offsets[query], offsets[query + 1]
        table = table_for(stop - start)
        end = np.uint64(len(table) - 1)
        for row in range(start, stop):
            id, slot = (places[row], lengths[row], hashes[row]), hashes[row] & end
            while table[slot] >= 0:
                other = start + table[slot]
                if alike(text, id, text, (places[other], lengths[other], hashes[other])):
                    return True
                slot = (slot + np.uint64(1)) & end
            table[slot] = row - start
    return False


@compiled
def grades(run, qrels, at, grade):
    """The grade of each hit of a run, -1 for unjudged ones, (hits,); `at` says which judged query each query is."""
    hits, places, lengths, hashes, offsets = run
    judged, there, sizes, theirs, bounds = qrels
    ours, text = text_of(hits), text_of(judged)
    found = np.full(len(places), -1, np.int32)
    for query in range(len(at)):
        if at[query] < 0:
            continue
        start = bounds[at[query]]
        table = table_of(theirs[start : bounds[at[query] + 1]])
        end = np.uint64(len(table) - 1)
        for hit in range(offsets[query], offsets[query + 1]):
            id, slot = (places[hit], lengths[hit], hashes[hit]), hashes[hit] & end
            while table[slot] >= 0:
                row = start + table[slot]
                if alike(ours, id, text, (there[row], sizes[row], theirs[row])):
                    found[hit] = grade[row]
                    break
                slot = (slot + np.uint64(1)) & end
    return found
