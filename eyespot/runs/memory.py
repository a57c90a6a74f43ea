"""Bytes read from where they lie in memory, by compiled code.

A `text` is where an array of bytes lies, and how many they are. An array itself is counted by numba whenever it is
handed on, and counting costs more than all that is read of a line.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-any-return, call-arg"
# (numba's own types tell nothing about what compiled code takes; the comments here do)

from __future__ import annotations

from typing import Any

from eyespot.kernels.cache import keep_compiled_kernels

keep_compiled_kernels()

import numba  # noqa: E402
import numpy as np  # noqa: E402
from llvmlite import ir  # noqa: E402
from numba import types  # noqa: E402
from numba.extending import intrinsic  # noqa: E402


def compiled(function: Any) -> Any:
    """Compiled without the GIL, kept on disk where numba finds a place for it."""
    try:
        return numba.njit(function, nogil=True, cache=True, error_model="numpy")
    except RuntimeError:
        return numba.njit(function, nogil=True, error_model="numpy")


def part(function: Any) -> Any:
    """Compiled into the kernels that call it: a call costs more than most of these do."""
    return numba.njit(function, nogil=True, forceinline=True, error_model="numpy")


@intrinsic
def loaded_byte(_context, address):
    """The byte at an address."""
    return types.uint8(types.uintp), _loading(8)


@intrinsic
def loaded_word(_context, address):
    """The eight bytes at an address."""
    return types.uint64(types.uintp), _loading(64)


def _loading(bits):
    def load(_context, builder, _signature, addresses):
        place = builder.inttoptr(addresses[0], ir.IntType(bits).as_pointer())
        return builder.load(place, align=1)

    return load


@part
def text_of(data):
    """Where an array's bytes lie, and how many they are; the array must outlive it."""
    return data.ctypes.data, len(data)


@part
def byte(text, at):
    """The byte at a place that is in the text."""
    return loaded_byte(np.uintp(text[0] + at))


@part
def word(text, at):
    """Eight bytes from `at`, zeros for those beyond the end."""
    if at + 8 <= text[1]:
        return loaded_word(np.uintp(text[0] + at))
    found = np.uint64(0)
    for ahead in range(text[1] - at):
        found |= np.uint64(byte(text, at + ahead)) << np.uint64(8 * ahead)
    return found
