"""Where compiled kernels are kept: whoever compiles some calls this before numba is imported."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def keep_compiled_kernels() -> None:
    """numba keeps kernels beside their file or in the user's cache; failing both, in a folder of this process alone."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    places = (Path(__file__).parent, *(folder for folder in (cache, *cache.parents) if folder.exists()))
    if "NUMBA_CACHE_DIR" not in os.environ and not any(os.access(place, os.W_OK) for place in places[:2]):
        os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="eyespot-numba-")
