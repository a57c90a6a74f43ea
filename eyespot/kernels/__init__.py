"""Scans at the speed of memory, which indexes and adapters share: int8 codes with a proven bound, and their kernels.

And k-means, which builders share. numba compiles the kernels, if the extra [fast] is installed; this module alone says
whether it is. Only `codes`, `rows`, `prefetch` and `kmeans` may be imported freely; the others load numba,
half a second that a small gallery never repays.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


@functools.cache
def compiled() -> bool:
    """Whether kernels are compiled: whether numba is installed. Does not load it."""
    return find_spec("numba") is not None


def keep_compiled_kernels() -> None:
    """Let numba keep kernels in a folder named by all their sources: beside them, or in the user's cache.

    By itself numba compiles a kernel anew when its own file has changed, not when that of a function it calls has:
    after an upgrade it would go on with parts of the old one. Where no folder can be written, kernels last as long as
    the process. A folder that `NUMBA_CACHE_DIR` names is taken as it is.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    there = next(folder for folder in (cache, *cache.parents) if folder.exists())
    own = Path(__file__).parent
    places = {own: own / "__pycache__", there: cache / "eyespot"}
    usable = next((inner for place, inner in places.items() if os.access(place, os.W_OK)), None)
    sources = hashlib.blake2b(digest_size=8)  # of every file with something to compile
    for text in (file.read_bytes() for file in sorted(own.glob("*.py"))):
        if b"numba" in text:
            sources.update(text)
    folder = str((usable or Path(tempfile.mkdtemp(prefix="eyespot-numba-"))) / f"numba-{sources.hexdigest()}")
    os.environ["NUMBA_CACHE_DIR"] = folder
    if "numba" in sys.modules:  # another library has loaded it, which read the setting then
        sys.modules["numba"].config.CACHE_DIR = folder


def compile_loops(function: F) -> F:
    """A function of loops that numpy has no other form for, compiled; without numba as it stands, and far slower."""
    if not compiled():
        return function
    keep_compiled_kernels()
    import numba

    made: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    return cast(F, made)
