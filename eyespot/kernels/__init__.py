"""Scans at the speed of memory, which indexes and adapters share: int8 codes with a proven bound, and their kernels.

And k-means, which builders share. numba compiles the kernels, if the extra [fast] is installed; else their twins in
numpy do the work, `NAME_numpy.py` beside `NAME.py`. This module alone decides which. Only `cache`, `codes`, `rows`,
`prefetch`, `kmeans` and the twins may be imported freely; the others load numba, half a second that a small gallery
never repays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar, cast

from eyespot.kernels.cache import keep_compiled_kernels

F = TypeVar("F", bound=Callable[..., Any])


@functools.cache
def compiled() -> bool:
    """Whether kernels are compiled: whether numba is installed. Does not load it."""
    return find_spec("numba") is not None


def kernels_in(module: str) -> Any:
    """A module of compiled kernels, or without numba its twin in numpy."""
    return import_module(module if compiled() else f"{module}_numpy")


def compile_loops(function: F) -> F:
    """A function of loops that numpy has no other form for, compiled; without numba as it stands, and far slower."""
    if not compiled():
        return function
    keep_compiled_kernels()
    import numba

    made: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    return cast(F, made)
